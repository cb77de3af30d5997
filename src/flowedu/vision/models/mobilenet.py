"""MobileNetV2 (Sandler et al., 2018): depthwise convolutions between 1 x 1 convolutions."""
from __future__ import annotations

from flowedu import nn
from flowedu.errors import ArgumentError
from flowedu.vision.models.weights import model_function

# (expansion, channels, number of blocks, stride of the first)
BLOCKS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
          (6, 320, 1, 1))


def make_divisible(channels: float, divisor: int = 8) -> int:
    """Return the multiple of `divisor` that is nearest to `channels`, at least 90% of it."""
    near = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return near + divisor if near < 0.9 * channels else near


class ConvBNActivation(nn.Sequential):
    """Convolution without bias, batch norm, and ReLU6.

    Args:
        in_planes: number of input channels.
        out_planes: number of output channels.
        kernel_size: size of the square window, in pixels; default: 3.
        stride: stride in pixels; default: 1.
        groups: number of groups of channels; default: 1.

    Shape:
        (N, in_planes, H, W) to (N, out_planes, H / stride, W / stride).
    """

    def __init__(self, in_planes: int, out_planes: int, kernel_size: int = 3, stride: int = 1,
                 groups: int = 1):
        super().__init__(
            nn.Conv2d(in_planes, out_planes, kernel_size, stride, (kernel_size - 1) // 2, groups=groups,
                      bias=False),
            nn.BatchNorm2d(out_planes),
            nn.ReLU6(inplace=True))
        self.out_channels = out_planes


class InvertedResidual(nn.Module):
    """Expansion, depthwise convolution, and projection, with a residual connection if the shapes allow it.

    Args:
        inp: number of input channels.
        oup: number of output channels.
        stride: stride of the depthwise convolution, in pixels.
        expand_ratio: channels of the depthwise convolution per input channel; with 1 there is no expansion.

    Shape:
        (N, inp, H, W) to (N, oup, H / stride, W / stride).
    """

    def __init__(self, inp: int, oup: int, stride: int, expand_ratio: int):
        super().__init__()
        hidden = round(inp * expand_ratio)
        self.stride, self.use_res_connect = stride, stride == 1 and inp == oup
        widen = [ConvBNActivation(inp, hidden, 1)] if expand_ratio != 1 else []
        self.conv = nn.Sequential(*widen, ConvBNActivation(hidden, hidden, 3, stride, groups=hidden),
                                  nn.Conv2d(hidden, oup, 1, bias=False), nn.BatchNorm2d(oup))
        self.out_channels = oup

    def forward(self, x):
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(nn.Module):
    """MobileNetV2: (N, 3, H, W) to (N, num_classes), with H and W of 32 or more (224 in the paper).

    Attributes: last_channel, the number of features of the classifier's input.

    Args:
        num_classes: number of classes.
        width_mult: factor of the number of channels, which is rounded to multiples of round_nearest.
        inverted_residual_setting: (expansion, channels, blocks, stride) of each stage; default: the paper's.
        round_nearest: see width_mult.
        dropout: dropout probability before the last layer.
    """

    def __init__(self, num_classes: int = 1000, width_mult: float = 1.0, inverted_residual_setting=None,
                 round_nearest: int = 8, dropout: float = 0.2):
        super().__init__()
        blocks = BLOCKS if inverted_residual_setting is None else inverted_residual_setting
        if not blocks or any(len(b) != 4 for b in blocks):
            raise ArgumentError("MobileNetV2: inverted_residual_setting should be non-empty or a "
                                "4-element list",
                                expected="rows (t, c, n, s)", got=repr(inverted_residual_setting),
                                fix="leave it out")
        channels = make_divisible(32 * width_mult, round_nearest)
        self.last_channel = make_divisible(1280 * max(1.0, width_mult), round_nearest)
        features: list[nn.Module] = [ConvBNActivation(3, channels, stride=2)]
        for t, c, n, s in blocks:
            out = make_divisible(c * width_mult, round_nearest)
            for i in range(n):
                features.append(InvertedResidual(channels, out, s if i == 0 else 1, t))
                channels = out
        features.append(ConvBNActivation(channels, self.last_channel, 1))
        self.features = nn.Sequential(*features)
        self.adaptive_avg_pool2d = nn.AdaptiveAvgPool2d((1, 1))
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(self.last_channel, num_classes))
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out")
            elif isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, 0, 0.01)
                nn.init.zeros_(m.bias)

    def forward(self, x):
        return self.classifier(self.adaptive_avg_pool2d(self.features(x)).flatten(1))


@model_function
def mobilenet_v2(**kwargs) -> MobileNetV2:
    """Return a MobileNetV2 with 3,504,872 parameters (num_classes=1000, width_mult=1.0)."""
    return MobileNetV2(**kwargs)
