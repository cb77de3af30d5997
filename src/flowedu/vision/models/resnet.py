"""Residual networks (He et al., 2015): every block adds its output to its input."""
from __future__ import annotations

from typing import Any

from flowedu import nn
from flowedu.vision.models.weights import model_function


def _conv(inp: int, out: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inp, out, kernel, stride, padding=kernel // 2, bias=False)


class BasicBlock(nn.Module):
    """Residual block of two 3 x 3 convolutions.

    Args:
        inplanes: number of input channels.
        planes: number of output channels.
        stride: stride of the first convolution; default: 1.
        downsample: module that converts the input to the shape of the output; default: None, add the input
            itself.

    Shape:
        (N, inplanes, H, W) to (N, planes, H / stride, W / stride).
    """

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
    """Residual block of 1 x 1, 3 x 3 (with the stride), and 1 x 1 convolutions, to four times the channels.

    Args:
        inplanes: number of input channels.
        planes: number of channels of the 3 x 3 convolution; the output has 4 * planes.
        stride: stride of the 3 x 3 convolution; default: 1.
        downsample: module that converts the input to the shape of the output; default: None, add the input
            itself.

    Shape:
        (N, inplanes, H, W) to (N, 4 * planes, H / stride, W / stride).
    """

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
    """Residual network: (N, 3, H, W) to (N, num_classes).

    Args:
        block: BasicBlock or Bottleneck.
        layers: number of blocks in each of the four stages.
        num_classes: number of classes.
        zero_init_residual: initialize every block so that it adds 0.
        width_mult: factor of the number of channels.
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
        self.fc = nn.Linear(self.inplanes, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif zero_init_residual and isinstance(m, (BasicBlock, Bottleneck)):
                nn.init.zeros_((m.bn3 if isinstance(m, Bottleneck) else m.bn2).weight)

    def _stage(self, block: Any, planes: int, count: int, stride: int) -> nn.Sequential:
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


@model_function
def resnet18(**kwargs) -> ResNet:
    """Return a ResNet-18 with 11,689,512 parameters."""
    return ResNet(BasicBlock, (2, 2, 2, 2), **kwargs)


@model_function
def resnet34(**kwargs) -> ResNet:
    """Return a ResNet-34 with 21,797,672 parameters."""
    return ResNet(BasicBlock, (3, 4, 6, 3), **kwargs)


@model_function
def resnet50(**kwargs) -> ResNet:
    """Return a ResNet-50 with 25,557,032 parameters."""
    return ResNet(Bottleneck, (3, 4, 6, 3), **kwargs)


@model_function
def resnet101(**kwargs) -> ResNet:
    """Return a ResNet-101 with 44,549,160 parameters."""
    return ResNet(Bottleneck, (3, 4, 23, 3), **kwargs)


@model_function
def resnet152(**kwargs) -> ResNet:
    """Return a ResNet-152 with 60,192,808 parameters."""
    return ResNet(Bottleneck, (3, 8, 36, 3), **kwargs)
