"""Models for two libraries: `lib` is flowedu or torch. share_weights copies weights to the second."""
from __future__ import annotations

MOBILENET = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
             (6, 320, 1, 1))


def mlp(lib, sizes):
    nn, parts = lib.nn, []
    for i, o in zip(sizes, sizes[1:]):
        parts += [nn.Linear(i, o), nn.ReLU()]
    return nn.Sequential(*parts[:-1])


def lenet(lib):
    nn = lib.nn
    return nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 5, padding=2),
                         nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(),
                         nn.Linear(512, 10))


def mobilenet(lib, classes=1000):
    nn = lib.nn

    def conv(i, o, k, stride=1, groups=1):
        return [nn.Conv2d(i, o, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o)]

    class Block(nn.Module):
        def __init__(self, parts, residual):
            super().__init__()
            self.conv, self.residual = nn.Sequential(*parts), residual

        def forward(self, x):
            return x + self.conv(x) if self.residual else self.conv(x)

    whole, c = [*conv(3, 32, 3, 2), nn.ReLU6()], 32
    for t, out, repeat, first in MOBILENET:
        for i in range(repeat):
            stride = first if i == 0 else 1
            parts = [*conv(c, c * t, 1), nn.ReLU6()] if t > 1 else []
            parts += [*conv(c * t, c * t, 3, stride, c * t), nn.ReLU6(), *conv(c * t, out, 1)]
            whole.append(Block(parts, stride == 1 and c == out))
            c = out
    return nn.Sequential(*whole, *conv(c, 1280, 1), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(1280, classes))


def resnet18(lib, classes=1000):
    nn = lib.nn

    def conv(i, o, k, stride):
        return [nn.Conv2d(i, o, k, stride, k // 2, bias=False), nn.BatchNorm2d(o)]

    class Block(nn.Module):
        def __init__(self, i, o, stride):
            super().__init__()
            self.conv = nn.Sequential(*conv(i, o, 3, stride), nn.ReLU(), *conv(o, o, 3, 1))
            self.short = nn.Sequential(*conv(i, o, 1, stride)) if stride > 1 or i != o else nn.Identity()
            self.relu = nn.ReLU()

        def forward(self, x):
            return self.relu(self.conv(x) + self.short(x))

    stages = [Block(i, o, s) if j == 0 else Block(o, o, 1)
              for i, o, s in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)) for j in range(2)]
    return nn.Sequential(*conv(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *stages,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


def small_vit(lib, size=64, patch=8, width=192, heads=3, depth=6, classes=1000):
    """Return a vision transformer: patches as tokens, blocks without a mask, classifier of the mean token."""
    nn = lib.nn
    words = (size // patch) ** 2

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.fc, self.out, self.act = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.GELU()

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = (h.reshape(b, t, heads, d // heads).transpose(1, 2)
                       for h in self.qkv(self.ln1(x)).split(d, 2))
            y = nn.functional.scaled_dot_product_attention(q, k, v)
            x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
            return x + self.out(self.act(self.fc(self.ln2(x))))

    class ViT(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2d(3, width, patch, patch)
            self.place = nn.Parameter(lib.randn(1, words, width) * 0.02)
            self.blocks = nn.Sequential(*(Block() for _ in range(depth)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

        def forward(self, x):
            words = self.patches(x).flatten(2).transpose(1, 2) + self.place
            return self.head(self.norm(self.blocks(words)).mean(1))

    return ViT()


def gpt_block(lib, length, width, heads, fused=False):
    """Return a pre-norm block of causal self-attention and an MLP of 4 times the width with exact GELU."""
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.fc, self.out, self.act = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.GELU()
            self.register_buffer("mask", lib.triu(lib.ones(length, length), 1) == 1)

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = (h.reshape(b, t, heads, d // heads).transpose(1, 2)
                       for h in self.qkv(self.ln1(x)).split(d, 2))
            if fused:
                y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            else:
                scores = (q @ k.transpose(2, 3)) * (d // heads) ** -0.5
                y = lib.softmax(scores.masked_fill(self.mask, float("-inf")), -1) @ v
            x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
            return x + self.out(self.act(self.fc(self.ln2(x))))

    return Block()


def recurrent(lib, kind="LSTM", size=64, hidden=128):
    """Return a module with one recurrent layer that returns all outputs."""
    class Outputs(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = getattr(lib.nn, kind)(size, hidden)

        def forward(self, x):
            return self.net(x)[0]

    return Outputs()


def share_weights(source, target, tensor) -> None:
    """Copy parameters and buffers of `source` (flowedu) to `target` (torch), in order."""
    for a, b in zip((*source.parameters(), *source.buffers()), (*target.parameters(), *target.buffers())):
        b.data.copy_(tensor(a.detach().numpy()))


def graph_step(flow, model, optimizer, loss):
    """Return a compiled training step. flow: flowedu."""
    class Train(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer)

        def build(self, x, y):
            value = loss(self.model(x), y)
            value.backward()
            return value

    return Train()


def predictor(flow, model):
    class Predict(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model

        def build(self, x):
            return self.model(x)

    return Predict()


def eager_step(model, optimizer, loss):
    """Return an eager training step, for both libraries."""
    def step(x, y):
        value = loss(model(x), y)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        return value
    return step
