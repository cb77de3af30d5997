"""AlexNet (Krizhevsky, 2014, for one device) and LeNet-5 (LeCun, 1998, with ReLU and max pools)."""
from __future__ import annotations

from flowedu import nn
from flowedu.vision.models.weights import model_function


class AlexNet(nn.Module):
    """AlexNet: (N, 3, H, W) to (N, num_classes), with H and W of 63 or more.

    Args:
        num_classes: number of classes.
        width_mult: factor of the number of channels.
        dropout: dropout probability.
    """

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5, width_mult: float = 1.0):
        super().__init__()
        a, b, c = (round(n * width_mult) for n in (64, 192, 384))
        d, hidden = round(256 * width_mult), round(4096 * width_mult)
        self.features = nn.Sequential(
            nn.Conv2d(3, a, kernel_size=11, stride=4, padding=2), nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2),
            nn.Conv2d(a, b, kernel_size=5, padding=2), nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2),
            nn.Conv2d(b, c, kernel_size=3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(c, d, kernel_size=3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(d, d, kernel_size=3, padding=1), nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2))
        self.avgpool = nn.AdaptiveAvgPool2d((6, 6))
        self.classifier = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(d * 6 * 6, hidden), nn.ReLU(inplace=True),
            nn.Dropout(dropout), nn.Linear(hidden, hidden), nn.ReLU(inplace=True),
            nn.Linear(hidden, num_classes))

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


@model_function
def alexnet(**kwargs) -> AlexNet:
    """Return an AlexNet with 61,100,840 parameters."""
    return AlexNet(**kwargs)


class LeNet5(nn.Module):
    """LeNet-5: (N, in_channels, image_size, image_size) to (N, num_classes).

    Args:
        num_classes: number of classes.
        in_channels: number of channels of the images.
        image_size: 28, or 32 for the paper's and CIFAR's size.
    """

    def __init__(self, num_classes: int = 10, in_channels: int = 1, image_size: int = 28):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(in_channels, 6, kernel_size=5, padding=(32 - image_size) // 2), nn.ReLU(),
            nn.MaxPool2d(2), nn.Conv2d(6, 16, kernel_size=5), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Sequential(nn.Linear(16 * 5 * 5, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                                        nn.Linear(84, num_classes))

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


@model_function
def lenet5(**kwargs) -> LeNet5:
    """Return a LeNet-5 with 61,706 parameters."""
    return LeNet5(**kwargs)
