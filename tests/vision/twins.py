"""The same networks in PyTorch with the same parameter names."""
import math

import torch
from torch import nn
from torch.nn import functional as F


class ConvBN(nn.Sequential):
    def __init__(self, i, o, k=3, s=1, g=1):
        super().__init__(nn.Conv2d(i, o, k, s, (k - 1) // 2, groups=g, bias=False), nn.BatchNorm2d(o),
                         nn.ReLU6())


class InvertedResidual(nn.Module):
    def __init__(self, i, o, s, t):
        super().__init__()
        h = i * t
        self.add = s == 1 and i == o
        self.conv = nn.Sequential(*([ConvBN(i, h, 1)] if t != 1 else []), ConvBN(h, h, 3, s, h),
                                  nn.Conv2d(h, o, 1, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        return x + self.conv(x) if self.add else self.conv(x)


class MobileNetV2(nn.Module):
    """MobileNetV2 with the channels of the stem, the seven groups of blocks, and the head."""

    def __init__(self, channels, classes):
        super().__init__()
        parts, last = [ConvBN(3, channels[0], 3, 2)], channels[0]
        table = [(1, 1, 1), (6, 2, 2), (6, 3, 2), (6, 4, 2), (6, 3, 1), (6, 3, 2), (6, 1, 1)]
        for c, (t, n, s) in zip(channels[1:-1], table):
            for i in range(n):
                parts.append(InvertedResidual(last, c, s if i == 0 else 1, t))
                last = c
        self.features = nn.Sequential(*parts, ConvBN(last, channels[-1], 1))
        self.classifier = nn.Sequential(nn.Dropout(0), nn.Linear(channels[-1], classes))

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


class ResBlock(nn.Module):
    def __init__(self, i, w, s, deep):
        super().__init__()
        o = 4 * w if deep else w
        sizes = [(i, w, 1, 1), (w, w, 3, s), (w, o, 1, 1)] if deep else [(i, w, 3, s), (w, o, 3, 1)]
        self.n = len(sizes)
        for j, (a, b, k, stride) in enumerate(sizes, 1):
            setattr(self, f"conv{j}", nn.Conv2d(a, b, k, stride, k // 2, bias=False))
            setattr(self, f"bn{j}", nn.BatchNorm2d(b))
        self.downsample = (nn.Sequential(nn.Conv2d(i, o, 1, s, bias=False), nn.BatchNorm2d(o)) if s > 1
                           or i != o else None)

    def forward(self, x):
        y = x
        for j in range(1, self.n + 1):
            y = getattr(self, f"bn{j}")(getattr(self, f"conv{j}")(y))
            y = F.relu(y) if j < self.n else y
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, deep, counts, width, classes):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        i = width
        for stage, n in enumerate(counts):
            w, blocks = width << stage, []
            for k in range(n):
                blocks.append(ResBlock(i, w, 2 if k == 0 and stage else 1, deep))
                i = 4 * w if deep else w
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(i, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        return self.fc(self.layer4(self.layer3(self.layer2(self.layer1(x)))).mean((2, 3)))


class VGG(nn.Module):
    def __init__(self, plan, norm, hidden, classes):
        super().__init__()
        parts, i = [], 3
        for c in plan:
            if c == "M":
                parts.append(nn.MaxPool2d(2))
                continue
            parts += [nn.Conv2d(i, c, 3, padding=1), *([nn.BatchNorm2d(c)] if norm else []), nn.ReLU()]
            i = c
        self.features = nn.Sequential(*parts)
        self.classifier = nn.Sequential(nn.Linear(49 * i, hidden), nn.ReLU(), nn.Dropout(0),
                                        nn.Linear(hidden, hidden),
                                        nn.ReLU(), nn.Dropout(0), nn.Linear(hidden, classes))

    def forward(self, x):
        return self.classifier(F.adaptive_avg_pool2d(self.features(x), 7).flatten(1))


class AlexNet(nn.Module):
    def __init__(self, a, b, c, d, hidden, classes):
        super().__init__()

        def pool():
            return nn.MaxPool2d(3, 2)

        self.features = nn.Sequential(
            nn.Conv2d(3, a, 11, 4, 2), nn.ReLU(), pool(), nn.Conv2d(a, b, 5, padding=2), nn.ReLU(), pool(),
            nn.Conv2d(b, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, d, 3, padding=1), nn.ReLU(),
            nn.Conv2d(d, d, 3, padding=1), nn.ReLU(), pool())
        self.classifier = nn.Sequential(nn.Dropout(0), nn.Linear(36 * d, hidden), nn.ReLU(), nn.Dropout(0),
                                        nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, classes))

    def forward(self, x):
        return self.classifier(F.adaptive_avg_pool2d(self.features(x), 6).flatten(1))


class LeNet5(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                                      nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Sequential(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                                        nn.Linear(84, 10))

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


class Conv(nn.Module):
    def __init__(self, i, o, k, s, up=None):
        super().__init__()
        self.up, self.pad, self.conv2d = up, k // 2, nn.Conv2d(i, o, k, s)

    def forward(self, x):
        x = F.interpolate(x, scale_factor=self.up) if self.up else x
        return self.conv2d(F.pad(x, (self.pad,) * 4, "reflect"))


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv1, self.in1 = Conv(c, c, 3, 1), nn.InstanceNorm2d(c, affine=True)
        self.conv2, self.in2 = Conv(c, c, 3, 1), nn.InstanceNorm2d(c, affine=True)

    def forward(self, x):
        return x + self.in2(self.conv2(F.relu(self.in1(self.conv1(x)))))


class StyleNet(nn.Module):
    def __init__(self, a, b, c):
        super().__init__()
        rows = [("conv1", "in1", Conv(3, a, 9, 1), a), ("conv2", "in2", Conv(a, b, 3, 2), b),
                ("conv3", "in3", Conv(b, c, 3, 2), c), ("deconv1", "in4", Conv(c, b, 3, 1, 2), b),
                ("deconv2", "in5", Conv(b, a, 3, 1, 2), a)]
        for name, norm, conv, n in rows:
            setattr(self, name, conv)
            setattr(self, norm, nn.InstanceNorm2d(n, affine=True))
        for i in range(1, 6):
            setattr(self, f"res{i}", Residual(c))
        self.deconv3 = Conv(a, 3, 9, 1)

    def forward(self, x):
        for i in (1, 2, 3):
            x = F.relu(getattr(self, f"in{i}")(getattr(self, f"conv{i}")(x)))
        for i in range(1, 6):
            x = getattr(self, f"res{i}")(x)
        for i in (1, 2):
            x = F.relu(getattr(self, f"in{i + 3}")(getattr(self, f"deconv{i}")(x)))
        return self.deconv3(x).clamp(0, 255)


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.qkv, self.proj = heads, nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        score = (q @ k.transpose(-1, -2)) / math.sqrt(d // self.heads)
        score = score.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), -math.inf)
        return self.proj((score.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.ln1, self.attn, self.ln2 = nn.LayerNorm(d), Attention(d, heads), nn.LayerNorm(d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, vocab, layers, heads, d, block):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, d), nn.Embedding(block, d)
        self.blocks, self.ln_f = nn.Sequential(*(Block(d, heads) for _ in range(layers))), nn.LayerNorm(d)

    def forward(self, idx):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        return self.ln_f(self.blocks(x)) @ self.wte.weight.T
