"""VGG (Simonyan and Zisserman, 2014): a sequence of 3 x 3 convolutions."""
from __future__ import annotations

from flowedu import nn
from flowedu.vision.models.weights import model_function

# channels of the convolutions of each stage; a pool ends a stage
STAGES = {11: ((64,), (128,), (256, 256), (512, 512), (512, 512)),
          13: ((64, 64), (128, 128), (256, 256), (512, 512), (512, 512)),
          16: ((64, 64), (128, 128), (256,) * 3, (512,) * 3, (512,) * 3),
          19: ((64, 64), (128, 128), (256,) * 4, (512,) * 4, (512,) * 4)}


class VGG(nn.Module):
    """VGG network: (N, 3, H, W) to (N, num_classes), with H and W of 32 or more.

    Args:
        depth: 11, 13, 16, or 19 layers with weights.
        batch_norm: add a batch norm after every convolution.
        num_classes: number of classes.
        dropout: dropout probability.
        width_mult: factor of the number of channels, also in the hidden layers of the classifier.
    """

    def __init__(self, depth: int, batch_norm: bool = False, num_classes: int = 1000, dropout: float = 0.5,
                 width_mult: float = 1.0):
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
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


@model_function
def vgg11(**kwargs) -> VGG:
    """Return a VGG-11 with 132,863,336 parameters."""
    return VGG(11, **kwargs)


@model_function
def vgg11_bn(**kwargs) -> VGG:
    """Return a VGG-11 with batch norm and 132,868,840 parameters."""
    return VGG(11, True, **kwargs)


@model_function
def vgg13(**kwargs) -> VGG:
    """Return a VGG-13 with 133,047,848 parameters."""
    return VGG(13, **kwargs)


@model_function
def vgg13_bn(**kwargs) -> VGG:
    """Return a VGG-13 with batch norm and 133,053,736 parameters."""
    return VGG(13, True, **kwargs)


@model_function
def vgg16(**kwargs) -> VGG:
    """Return a VGG-16 with 138,357,544 parameters."""
    return VGG(16, **kwargs)


@model_function
def vgg16_bn(**kwargs) -> VGG:
    """Return a VGG-16 with batch norm and 138,365,992 parameters."""
    return VGG(16, True, **kwargs)


@model_function
def vgg19(**kwargs) -> VGG:
    """Return a VGG-19 with 143,667,240 parameters."""
    return VGG(19, **kwargs)


@model_function
def vgg19_bn(**kwargs) -> VGG:
    """Return a VGG-19 with batch norm and 143,678,248 parameters."""
    return VGG(19, True, **kwargs)
