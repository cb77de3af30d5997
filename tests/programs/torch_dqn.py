import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward", "done"))

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)


class Corridor:
    """Walk to the right end of a corridor of seven cells."""

    def reset(self):
        self.at, self.steps = 3, 0
        return self._state()

    def _state(self):
        return np.eye(7, dtype=np.float32)[self.at]

    def step(self, action):
        self.at = max(0, min(6, self.at + (1 if action == 1 else -1)))
        self.steps += 1
        reward = 1.0 if self.at == 6 else -0.05
        return self._state(), reward, self.at == 6 or self.steps >= 20


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, 32)
        self.layer2 = nn.Linear(32, 32)
        self.layer3 = nn.Linear(32, n_actions)

    def forward(self, x):
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        return self.layer3(x)


device = torch.device("cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available()
                      else "cpu")
policy_net = DQN(7, 2).to(device)
target_net = DQN(7, 2).to(device)
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.AdamW(policy_net.parameters(), lr=3e-3, amsgrad=True)
memory = ReplayMemory(2000)
GAMMA, TAU, BATCH = 0.95, 0.05, 32


def select_action(state, epsilon):
    if random.random() < epsilon:
        return torch.tensor([[random.randrange(2)]], device=device, dtype=torch.long)
    with torch.no_grad():
        return policy_net(state).max(1).indices.view(1, 1)


def optimize_model():
    if len(memory) < BATCH:
        return None
    batch = Transition(*zip(*memory.sample(BATCH)))
    states, actions = torch.cat(batch.state), torch.cat(batch.action)
    rewards = torch.tensor(batch.reward, device=device)
    not_done = 1 - torch.tensor(batch.done, dtype=torch.float32, device=device)
    q = policy_net(states).gather(1, actions).squeeze(1)
    with torch.no_grad():
        next_q = target_net(torch.cat(batch.next_state)).max(1).values
    loss = nn.SmoothL1Loss()(q, rewards + GAMMA * next_q * not_done)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    target, policy = target_net.state_dict(), policy_net.state_dict()
    for key in policy:
        target[key] = policy[key] * TAU + target[key] * (1 - TAU)
    target_net.load_state_dict(target)
    return loss.item()


env, losses, lengths = Corridor(), [], []
for episode in range(40):
    state = torch.from_numpy(env.reset()).unsqueeze(0).to(device)
    done = False
    while not done:
        action = select_action(state, epsilon=max(0.05, 0.9 - episode / 25))
        observation, reward, done = env.step(action.item())
        next_state = torch.tensor(observation, dtype=torch.float32, device=device).unsqueeze(0)
        memory.push(state, action, next_state, reward, done)
        state = next_state
        loss = optimize_model()
        if loss is not None:
            losses.append(loss)
    lengths.append(env.steps)

print(f"steps of the first and the last five episodes: {lengths[:5]} {lengths[-5:]}")
print(f"first loss: {np.mean(losses[:20]):.4f}")
print(f"last loss: {np.mean(losses[-20:]):.4f}")
torch.save(policy_net.state_dict(), "dqn.pth")
policy_net.load_state_dict(torch.load("dqn.pth", weights_only=True))
