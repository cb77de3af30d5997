"""Sliding windows as columns (im2col), and the reverse (col2im)."""
from __future__ import annotations

from flowedu.core.layers.module import Module
from flowedu.nn import functional as F
from flowedu.tensor import Tensor


class Unfold(Module):
    """Sliding windows of a batch of images as columns (im2col); see F.unfold.

    Args:
        kernel_size: size of the windows, an int or (height, width).
        dilation: distance between the elements of a window, an int or a pair.
        padding: number of zeros added on both sides, an int or a pair.
        stride: distance between windows, an int or a pair.

    Shape:
        (N, C, H, W) to (N, C * height * width, number of windows).
    """

    def __init__(self, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.kernel_size, self.dilation = kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
                f"stride={self.stride}")


class Fold(Module):
    """Sums of columns as images (col2im), the adjoint of Unfold; see F.fold.

    Args:
        output_size: (H, W) of the images.
        kernel_size: size of the windows, an int or (height, width).
        dilation: distance between the elements of a window, an int or a pair.
        padding: padding of the images, an int or a pair.
        stride: distance between windows, an int or a pair.

    Shape:
        (N, C * height * width, number of windows) to (N, C, H, W).
    """

    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
                f"padding={self.padding}, stride={self.stride}")
