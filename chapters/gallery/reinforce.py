"""A policy that balances a pole on a cart (REINFORCE, Williams 1992).

The simulation of the cart is in this file.

    python chapters/gallery/reinforce.py [--episodes 300] [--out FOLDER] [--quick]

300 episodes take about ten seconds.
"""
import argparse
import math
from pathlib import Path

import numpy as np
from curves import draw_curves
from tqdm.auto import tqdm

import flowedu as flow
from flowedu import nn
from flowedu.distributions import Categorical

GRAVITY = 9.8                    # m/s^2
CART, POLE = 1.0, 0.1            # kg
HALF = 0.5                       # m
FORCE, TICK = 10.0, 0.02         # N, s
LONGEST = 300


class CartPole:
    """A pole on a cart (Barto, Sutton, Anderson 1983).

    The state has the position and velocity of the cart, and the angle and angular velocity of the pole. The
    two actions push the cart to the left or right. An episode ends if the angle exceeds 12 degrees or the
    cart leaves its track.
    """

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)

    def reset(self) -> np.ndarray:
        self.state, self.age = self.rng.uniform(-0.05, 0.05, 4), 0
        return self.state

    def step(self, action: int) -> tuple[np.ndarray, bool]:
        """Return (the state after one tick, True if the episode has ended)."""
        x, v, angle, spin = self.state
        sin, cos, mass = math.sin(angle), math.cos(angle), CART + POLE
        push = ((FORCE if action else -FORCE) + POLE * HALF * spin ** 2 * sin) / mass
        turning = (GRAVITY * sin - cos * push) / (HALF * (4 / 3 - POLE * cos ** 2 / mass))
        moving = push - POLE * HALF * turning * cos / mass
        self.state = np.array([x + TICK * v, v + TICK * moving, angle + TICK * spin, spin + TICK * turning])
        self.age += 1
        return (self.state, abs(self.state[0]) > 2.4 or abs(self.state[2]) > math.radians(12)
                or self.age >= LONGEST)


def compute_returns(rewards: list[float], discount: float = 0.99) -> np.ndarray:
    """Return the discounted sum of later rewards for each step, with mean 0 and standard deviation 1."""
    total, returns = 0.0, []
    for r in reversed(rewards):
        total = r + discount * total
        returns.append(total)
    g = np.array(returns[::-1], np.float32)
    return (g - g.mean()) / (g.std() + 1e-6)


def main(options) -> None:
    flow.manual_seed(0)
    cart = CartPole(0)
    policy = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = flow.optim.Adam(policy.parameters(), lr=1e-2)
    episodes, lengths = 8 if options.quick else options.episodes, []
    bar = tqdm(range(episodes), desc="learning", unit=" episodes", leave=False, disable=None)
    for _ in bar:
        state, done = cart.reset(), False
        states, actions = [], []
        while not done:
            with flow.no_grad():
                action = Categorical(logits=policy(flow.tensor(state, dtype=flow.float32))).sample().item()
            states.append(state)
            actions.append(action)
            state, done = cart.step(action)
        policies = Categorical(logits=policy(flow.tensor(np.array(states), dtype=flow.float32)))
        advantages = flow.from_numpy(compute_returns([1.0] * len(states)))
        loss = -(policies.log_prob(flow.tensor(actions)) * advantages).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lengths.append(len(states))
        bar.set_postfix_str(f"{np.mean(lengths[-20:]):.0f} ticks", refresh=False)
    smooth = [float(np.mean(lengths[max(0, i - 20):i + 1])) for i in range(len(lengths))]
    print(f"mean length of the first 20 episodes {np.mean(lengths[:20]):.0f} ticks, "
          f"of the last 20 {np.mean(lengths[-20:]):.0f} (at most {LONGEST})")
    print(draw_curves(options.out / "reinforce.svg", "ticks per episode", episode=lengths, mean_of_20=smooth))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="REINFORCE on a pole on a cart.")
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--out", type=Path, default=Path("build/gallery"))
    parser.add_argument("--quick", action="store_true", help="8 episodes; takes seconds")
    main(parser.parse_args())
