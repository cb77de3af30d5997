"""Style-transfer network (Johnson et al., 2016): downsampling, five residual blocks, upsampling."""
from __future__ import annotations

from flowedu import nn
from flowedu.errors import ArgumentError
from flowedu.vision.models.weights import finished

STYLES = ("sketch", "candy", "mosaic", "rain_princess", "udnie")


class ConvLayer(nn.Module):
    """Convolution with reflection padding; `upsample` enlarges the image first by this factor."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int,
                 upsample: int | None = None):
        super().__init__()
        if upsample:
            self.interpolate = nn.UpsamplingNearest2d(scale_factor=upsample)
        self.upsample = upsample
        self.reflection_pad = nn.ReflectionPad2d(kernel_size // 2)
        self.conv2d = nn.Conv2d(in_channels, out_channels, kernel_size, stride)

    def forward(self, x):
        return self.conv2d(self.reflection_pad(self.interpolate(x) if self.upsample else x))


class UpsampleConvLayer(ConvLayer):
    """ConvLayer with upsample, which avoids the checkerboard artifacts of ConvTranspose2d."""


class ResidualBlock(nn.Module):
    """Two convolutions with a residual connection."""

    def __init__(self, channels: int):
        super().__init__()
        self.conv1 = ConvLayer(channels, channels, kernel_size=3, stride=1)
        self.in1 = nn.InstanceNorm2d(channels, affine=True)
        self.conv2 = ConvLayer(channels, channels, kernel_size=3, stride=1)
        self.in2 = nn.InstanceNorm2d(channels, affine=True)
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.in2(self.conv2(self.relu(self.in1(self.conv1(x))))) + x


class NeuralStyleTransfer(nn.Module):
    """Style-transfer network: (N, 3, H, W) with values 0 to 255 to the same shape and range.

    H and W are multiples of 4.

    Args:
        width_mult: factor of the number of channels.
    """

    def __init__(self, width_mult: float = 1.0):
        super().__init__()
        a, b, c = (round(n * width_mult) for n in (32, 64, 128))
        self.conv1, self.in1 = ConvLayer(3, a, kernel_size=9, stride=1), nn.InstanceNorm2d(a, affine=True)
        self.conv2, self.in2 = ConvLayer(a, b, kernel_size=3, stride=2), nn.InstanceNorm2d(b, affine=True)
        self.conv3, self.in3 = ConvLayer(b, c, kernel_size=3, stride=2), nn.InstanceNorm2d(c, affine=True)
        self.res1, self.res2, self.res3 = (ResidualBlock(c) for _ in range(3))
        self.res4, self.res5 = ResidualBlock(c), ResidualBlock(c)
        self.deconv1 = UpsampleConvLayer(c, b, kernel_size=3, stride=1, upsample=2)
        self.in4 = nn.InstanceNorm2d(b, affine=True)
        self.deconv2 = UpsampleConvLayer(b, a, kernel_size=3, stride=1, upsample=2)
        self.in5 = nn.InstanceNorm2d(a, affine=True)
        self.deconv3 = ConvLayer(a, 3, kernel_size=9, stride=1)
        self.relu = nn.ReLU()

    def forward(self, x):
        y = self.relu(self.in1(self.conv1(x)))
        y = self.relu(self.in2(self.conv2(y)))
        y = self.relu(self.in3(self.conv3(y)))
        y = self.res5(self.res4(self.res3(self.res2(self.res1(y)))))
        y = self.relu(self.in4(self.deconv1(y)))
        y = self.relu(self.in5(self.deconv2(y)))
        return self.deconv3(y).clamp(0, 255)


def neural_style_transfer(pretrained: bool = False, progress: bool = True, style_model: str = "sketch",
                          **kwargs) -> NeuralStyleTransfer:
    """Return a style-transfer network with 1,679,235 parameters.

    Args:
        pretrained: load the weights from the cache folder; see models.weights.
        progress: ignored.
        style_model: name of the weights.
        **kwargs: arguments of the class.

    Raises:
        ArgumentError, CheckpointError: the style or its weights are unknown.
    """
    if style_model not in STYLES:
        raise ArgumentError("neural_style_transfer: unknown style_model", expected=", ".join(STYLES),
                            got=repr(style_model))
    return finished(NeuralStyleTransfer(**kwargs), f"neural_style_transfer_{style_model}", pretrained)
