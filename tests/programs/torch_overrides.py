"""Programs override methods of layers and mark tensors: a convolution with a low-rank update of its weight,
one that computes in the dtype of its input, a positional table, and repeated samples of an encoder.
"""
import torch
import torch.nn.functional as F
from torch import nn


class LowRankConv(nn.Conv1d):
    """Convolution whose frozen weight gets a trained update of rank 2."""

    def __init__(self, channels, size):
        super().__init__(channels, channels, size, padding=size // 2)
        self.weight.requires_grad = False
        self.down = nn.Parameter(torch.zeros(2, channels * size))
        self.up = nn.Parameter(torch.randn(channels, 2) * 0.3)

    def _conv_forward(self, input, weight, bias):
        update = (self.up @ self.down).view_as(weight)
        return super()._conv_forward(input, weight + update, bias)


class CastingConv(nn.Conv1d):
    """Convolution that converts its parameters to the dtype of the input."""

    def _conv_forward(self, input, weight, bias):
        bias = None if bias is None else bias.to(input.dtype)
        return super()._conv_forward(input, weight.to(input.dtype), bias)


class Positions(nn.Module):
    def __init__(self, size, length=16):
        super().__init__()
        table = torch.zeros(length, size)
        table.require_grad = False
        angle = torch.arange(length).unsqueeze(1) / 10000 ** (torch.arange(0, size, 2) / size)
        table[:, 0::2], table[:, 1::2] = torch.sin(angle), torch.cos(angle)
        self.register_buffer("table", table.unsqueeze(0))

    def forward(self, x):
        return x + self.table[:, :x.size(1)]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.update, self.cast = LowRankConv(4, 3), CastingConv(4, 4, 1)
        self.positions, self.mean = Positions(4), nn.Linear(4, 2)
        self.decode = nn.Linear(2, 4)

    def forward(self, x, samples):
        x = self.positions(self.cast(self.update(x)).transpose(1, 2))
        mean = self.mean(x).unsqueeze(0)
        latent = mean.repeat(samples, 1, 1, 1) + 0.01 * torch.randn(samples, *mean.shape[1:])
        return self.decode(latent).transpose(2, 3)


torch.manual_seed(0)
net = Net()
x = torch.randn(8, 4, 6)
optimizer = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=0.02)
for step in range(31):
    loss = F.mse_loss(net(x, 3), x.repeat(3, 1, 1, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f}")
assert net.update.down.abs().sum() > 0 and net.cast(x.double()).dtype == torch.float64
