"""Residual networks (He et al., 2015): every block adds its output to its input."""
from __future__ import annotations

from flowedu import nn
from flowedu.vision.models.weights import finished


def _conv(inp: int, out: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inp, out, kernel, stride, padding=kernel // 2, bias=False)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions."""

    expansion = 1

    def __init__(self, inplanes: int, planes: int, stride: int = 1, downsample: nn.Module | None = None):
        super().__init__()
        self.conv1, self.bn1 = _conv(inplanes, planes, 3, stride), nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2, self.bn2 = _conv(planes, planes, 3), nn.BatchNorm2d(planes)
        self.downsample, self.stride = downsample, stride

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    """1x1, 3x3 (with the stride), 1x1 to four times the channels."""

    expansion = 4

    def __init__(self, inplanes: int, planes: int, stride: int = 1, downsample: nn.Module | None = None):
        super().__init__()
        self.conv1, self.bn1 = _conv(inplanes, planes, 1), nn.BatchNorm2d(planes)
        self.conv2, self.bn2 = _conv(planes, planes, 3, stride), nn.BatchNorm2d(planes)
        self.conv3, self.bn3 = _conv(planes, 4 * planes, 1), nn.BatchNorm2d(4 * planes)
        self.relu = nn.ReLU(inplace=True)
        self.downsample, self.stride = downsample, stride

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn3(self.conv3(self.relu(self.bn2(self.conv2(out)))))
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    """x (N, 3, H, W) -> (N, num_classes).

    Args: block, BasicBlock or Bottleneck; layers, how many in each of the four stages; zero_init_residual, let every block
    begin as "add nothing"; width_mult, times as many channels.
    """

    def __init__(self, block: type, layers, num_classes: int = 1000, zero_init_residual: bool = False,
                 width_mult: float = 1.0):
        super().__init__()
        width = round(64 * width_mult)
        self.inplanes = width
        self.conv1 = nn.Conv2d(3, width, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._stage(block, width, layers[0], 1)
        self.layer2 = self._stage(block, 2 * width, layers[1], 2)
        self.layer3 = self._stage(block, 4 * width, layers[2], 2)
        self.layer4 = self._stage(block, 8 * width, layers[3], 2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(8 * width * block.expansion, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif zero_init_residual and isinstance(m, (BasicBlock, Bottleneck)):
                nn.init.zeros_((m.bn3 if isinstance(m, Bottleneck) else m.bn2).weight)

    def _stage(self, block: type, planes: int, count: int, stride: int) -> nn.Sequential:
        out, down = planes * block.expansion, None
        if stride != 1 or self.inplanes != out:
            down = nn.Sequential(_conv(self.inplanes, out, 1, stride), nn.BatchNorm2d(out))
        blocks = [block(self.inplanes, planes, stride, down)]
        self.inplanes = out
        return nn.Sequential(*blocks, *(block(out, planes) for _ in range(1, count)))

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


def resnet18(pretrained: bool = False, progress: bool = True, *, weights=None, **kwargs) -> ResNet:
    """11,689,512 parameters."""
    return finished(ResNet(BasicBlock, (2, 2, 2, 2), **kwargs), "resnet18", pretrained or weights is not None)


def resnet34(pretrained: bool = False, progress: bool = True, *, weights=None, **kwargs) -> ResNet:
    """21,797,672 parameters."""
    return finished(ResNet(BasicBlock, (3, 4, 6, 3), **kwargs), "resnet34", pretrained or weights is not None)


def resnet50(pretrained: bool = False, progress: bool = True, *, weights=None, **kwargs) -> ResNet:
    """25,557,032 parameters."""
    return finished(ResNet(Bottleneck, (3, 4, 6, 3), **kwargs), "resnet50", pretrained or weights is not None)


def resnet101(pretrained: bool = False, progress: bool = True, *, weights=None, **kwargs) -> ResNet:
    """44,549,160 parameters."""
    return finished(ResNet(Bottleneck, (3, 4, 23, 3), **kwargs), "resnet101", pretrained or weights is not None)


def resnet152(pretrained: bool = False, progress: bool = True, *, weights=None, **kwargs) -> ResNet:
    """60,192,808 parameters."""
    return finished(ResNet(Bottleneck, (3, 8, 36, 3), **kwargs), "resnet152", pretrained or weights is not None)
