"""Milestone 2: trains a network to separate two spirals, with your gradients and your backward pass."""
import time

import numpy as np

import flowedu as flow
from flowedu.core.ops.call import interpreter
from flowedu.core.ops.reverse import Recorder, reverse

POINTS, HIDDEN = 200, 24
STEPS, RATE, WANTED = 600, 0.02, 0.97


def spirals(rng):
    """Return points (n, 2) on two spirals, and the spiral of each point, 0 or 1 (n, 1)."""
    turn = np.sqrt(rng.random(POINTS)) * 2 * np.pi
    which = rng.integers(0, 2, POINTS)
    angle = turn + np.pi * which
    points = np.stack([np.cos(angle), np.sin(angle)],
                      1) * turn[:, None] / 3 + rng.normal(0, 0.03, (POINTS, 2))
    return points.astype(np.float32), which.astype(np.float32)[:, None]


def network(x, w1, b1, w2, b2, w3, b3):
    """Return a logit for each point. A positive logit predicts the second spiral."""
    return ((x @ w1 + b1).tanh() @ w2 + b2).tanh() @ w3 + b3


def main() -> None:
    rng = np.random.default_rng(0)
    points, which = spirals(rng)
    x, y = flow.tensor(points), flow.tensor(which)
    shapes = [(2, HIDDEN), (HIDDEN,), (HIDDEN, HIDDEN), (HIDDEN,), (HIDDEN, 1), (1,)]
    weights = [flow.tensor(rng.normal(0, 1 / np.sqrt(s[0]), s) * (len(s) > 1), dtype=flow.float32)
               for s in shapes]
    # Running means of the gradients and of their squares.
    means = [np.zeros((2, *s), np.float32) for s in shapes]
    start = time.perf_counter()
    for step in range(1, STEPS + 1):
        with interpreter(Recorder()) as recorder:
            z = network(x, *weights)
            # -log of the probability of the right spiral
            loss = (flow.ops.REGISTRY["softplus"](z) - z * y).mean()
        gradients = reverse(recorder.calls, [(loss, flow.ones(tuple(loss.shape)))], weights)
        for w, g, m in zip(weights, gradients, means):
            g = g.numpy()
            m[0] += 0.1 * (g - m[0])
            m[1] += 0.01 * (g * g - m[1])
            w.numpy()[...] -= RATE * m[0] / (np.sqrt(m[1]) + 1e-6)
        if step % 200 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    right = float(((network(x, *weights).sigmoid().numpy() > 0.5) == (which > 0.5)).mean())
    print(f"{right:.1%} of {POINTS} points are right after {STEPS} steps in "
          f"{time.perf_counter() - start:.0f} s; the forward pass has {len(recorder.calls)} calls")
    if right < WANTED:
        print(f"milestone 2 missed: {right:.1%} of the points are right, expected {WANTED:.0%}")
        raise SystemExit(1)
    print("milestone 2 reached: the network learned with your gradients")


if __name__ == "__main__":
    main()
