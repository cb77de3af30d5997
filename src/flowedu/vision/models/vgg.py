"""VGG (Simonyan and Zisserman, 2014): 3x3 convolutions, one after the other."""
from __future__ import annotations

from flowedu import nn
from flowedu.vision.models.weights import finished

# channels of the convolutions of each stage; a pool ends a stage
STAGES = {11: ((64,), (128,), (256, 256), (512, 512), (512, 512)),
          13: ((64, 64), (128, 128), (256, 256), (512, 512), (512, 512)),
          16: ((64, 64), (128, 128), (256,) * 3, (512,) * 3, (512,) * 3),
          19: ((64, 64), (128, 128), (256,) * 4, (512,) * 4, (512,) * 4)}


class VGG(nn.Module):
    """x (N, 3, H, W) -> (N, num_classes). H and W of 32 or more.

    Args: depth, 11, 13, 16 or 19 layers with weights; batch_norm, one after every convolution; width_mult, times as many
    channels, in the hidden layers of the classifier, too.
    """

    def __init__(self, depth: int, batch_norm: bool = False, num_classes: int = 1000, dropout: float = 0.5,
                 width_mult: float = 1.0):
        super().__init__()
        layers, channels = [], 3
        for stage in STAGES[depth]:
            for wide in stage:
                out = round(wide * width_mult)
                layers.append(nn.Conv2d(channels, out, kernel_size=3, padding=1))
                layers += [nn.BatchNorm2d(out)] if batch_norm else []
                layers.append(nn.ReLU(inplace=True))
                channels = out
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
        hidden = round(4096 * width_mult)
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(channels * 7 * 7, hidden), nn.ReLU(True), nn.Dropout(dropout),
            nn.Linear(hidden, hidden), nn.ReLU(True), nn.Dropout(dropout),
            nn.Linear(hidden, num_classes))
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
                nn.init.zeros_(m.bias)
            elif isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, 0, 0.01)
                nn.init.zeros_(m.bias)

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def vgg11(pretrained: bool = False, progress: bool = True, *, weights=None, **kwargs) -> VGG:
    """132,863,336 parameters."""
    return finished(VGG(11, **kwargs), "vgg11", pretrained or weights is not None)


def vgg11_bn(pretrained: bool = False, progress: bool = True, *, weights=None, **kwargs) -> VGG:
    """132,868,840 parameters."""
    return finished(VGG(11, True, **kwargs), "vgg11_bn", pretrained or weights is not None)


def vgg13(pretrained: bool = False, progress: bool = True, *, weights=None, **kwargs) -> VGG:
    """133,047,848 parameters."""
    return finished(VGG(13, **kwargs), "vgg13", pretrained or weights is not None)


def vgg13_bn(pretrained: bool = False, progress: bool = True, *, weights=None, **kwargs) -> VGG:
    """133,053,736 parameters."""
    return finished(VGG(13, True, **kwargs), "vgg13_bn", pretrained or weights is not None)


def vgg16(pretrained: bool = False, progress: bool = True, *, weights=None, **kwargs) -> VGG:
    """138,357,544 parameters."""
    return finished(VGG(16, **kwargs), "vgg16", pretrained or weights is not None)


def vgg16_bn(pretrained: bool = False, progress: bool = True, *, weights=None, **kwargs) -> VGG:
    """138,365,992 parameters."""
    return finished(VGG(16, True, **kwargs), "vgg16_bn", pretrained or weights is not None)


def vgg19(pretrained: bool = False, progress: bool = True, *, weights=None, **kwargs) -> VGG:
    """143,667,240 parameters."""
    return finished(VGG(19, **kwargs), "vgg19", pretrained or weights is not None)


def vgg19_bn(pretrained: bool = False, progress: bool = True, *, weights=None, **kwargs) -> VGG:
    """143,678,248 parameters."""
    return finished(VGG(19, True, **kwargs), "vgg19_bn", pretrained or weights is not None)
