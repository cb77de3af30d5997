"""Small models of all kinds, with inputs."""
import numpy as np

import flowedu as flow
from flowedu import nn


class Attention(nn.Module):
    """Embedding, attention with a mask, layer norm, dropout, convolution, batch norm, nested outputs."""

    def __init__(self, words=10, width=8, heads=2):
        super().__init__()
        self.emb, self.norm, self.heads = nn.Embedding(words, width), nn.LayerNorm(width), heads
        self.qkv, self.out, self.drop = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Dropout(0.1)
        self.conv, self.bn = nn.Conv1d(width, width, 3, padding=1), nn.BatchNorm1d(width)

    def forward(self, ids):
        x = self.norm(self.emb(ids))
        n, t, c = x.shape
        q, k, v = (a.reshape(n, t, self.heads, -1).transpose(1, 2) for a in self.qkv(x).chunk(3, -1))
        scores = flow.matmul(q, k.transpose(2, 3)) / (c // self.heads) ** 0.5
        mask = flow.tril(flow.ones(t, t)) == 0
        mixed = flow.matmul(scores.masked_fill(mask, float("-inf")).softmax(-1),
                            v).transpose(1, 2).reshape(n, t, c)
        x = x + self.drop(self.out(mixed))
        y = self.conv(self.bn(x.transpose(1, 2)))
        return {"y": y, "more": (nn.functional.gelu(y).mean(dim=(1, 2)), [y.max(2)[0], None])}


class Two(nn.Module):
    """Model with two inputs, one of them int64, and several activations."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x, picks):
        h = nn.functional.leaky_relu(self.a(x), 0.2) + nn.functional.silu(self.a(x)) * x.mean(1, keepdim=True)
        y = self.b(nn.functional.hardswish(h)).log_softmax(1)
        return y.gather(1, picks), flow.where(y > -1, y, -y), (y < -1).long().sum(1)


class Picture(nn.Module):
    """Convolutions of all kinds, pooling, upsampling."""

    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8),
                                  nn.ReLU6(),
                                  nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.MaxPool2d(3, 2, 1),
                                  nn.InstanceNorm2d(8))
        self.up = nn.Sequential(nn.Upsample(scale_factor=2, mode="nearest"), nn.ReflectionPad2d(1),
                                nn.Conv2d(8, 6, 3),
                                nn.Upsample(scale_factor=2, mode="bilinear"),
                                nn.ConvTranspose2d(6, 3, 2, stride=2), nn.Sigmoid())
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))

    def forward(self, x):
        y = self.down(x)
        return self.up(y), self.head(nn.functional.avg_pool2d(y, 2))


def modules_with_inputs(seed=0):
    """Return {name: (module, inputs)}."""
    rng = np.random.default_rng(seed)

    def real(*s):
        return flow.tensor(rng.standard_normal(s).astype(np.float32))

    def whole(n, *s):
        return flow.tensor(rng.integers(0, n, s))

    return {"attention": (Attention, [whole(10, 2, 5)]), "two": (Two, [real(3, 4), whole(3, 3, 2)]),
            "picture": (Picture, [real(2, 3, 16, 16)])}


def collect_tensors(out) -> list:
    """Return the tensors of nested outputs, in order."""
    if isinstance(out, flow.Tensor):
        return [out]
    if out is None:
        return []
    return [t for part in (out.values() if isinstance(out, dict) else out) for t in collect_tensors(part)]
