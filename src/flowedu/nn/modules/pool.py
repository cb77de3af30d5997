"""Pooling layers.

The function of the same name in nn.functional documents each computation.
"""
from __future__ import annotations

from flowedu.core.layers.module import Module
from flowedu.nn import functional as F
from flowedu.nn.functional.common import ints
from flowedu.tensor import Tensor


class _Pool(Module):
    """Base class of the pooling layers. `axes` is the number of spatial axes."""

    axes = 2

    def _tuple(self, value, name: str, least: int):
        """Return `value` as a tuple of one int per axis, which is how OneFlow stores it."""
        return ints(value, self.axes, type(self).__name__, name, least)

    def _set_windows(self, kernel_size, stride, padding) -> None:
        self.kernel_size = self._tuple(kernel_size, "kernel_size", 1)
        self.stride = self.kernel_size if stride is None else self._tuple(stride, "stride", 1)
        self.padding = self._tuple(padding, "padding", 0)


class _MaxPool(_Pool):
    """Base class of the max pooling layers."""

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices: bool = False,
                 ceil_mode: bool = False):
        super().__init__()
        self._set_windows(kernel_size, stride, padding)
        self.dilation = self._tuple(dilation, "dilation", 1)
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Tensor):
        return _F("max_pool", self)(input, self.kernel_size, self.stride, self.padding, self.dilation,
                                    ceil_mode=self.ceil_mode, return_indices=self.return_indices)

    def extra_repr(self) -> str:
        s = (f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
             f"dilation={self.dilation}")
        return s + (", ceil_mode=True" if self.ceil_mode else "")


class MaxPool1d(_MaxPool):
    """Maximum of each window over the last axis.

    Args:
        kernel_size: size of the windows, an int.
        stride: distance between windows, an int; default: `kernel_size`.
        padding: number of implicit -inf elements added on both sides, at most half of `kernel_size`.
        dilation: distance between the elements of a window.
        return_indices: also return the int64 positions of the maxima, for `MaxUnpool1d`.
        ceil_mode: include a last window that is only partly inside the input.

    Shape:
        (N, C, L) or (C, L) to (N, C, L_out) or (C, L_out).
    """

    axes = 1


class MaxPool2d(_MaxPool):
    """Maximum of each window over the last two axes.

    Args:
        kernel_size: size of the windows, an int or (height, width).
        stride: distance between windows, an int or a pair; default: `kernel_size`.
        padding: number of implicit -inf elements added on both sides, an int or a pair.
        dilation: distance between the elements of a window, an int or a pair.
        return_indices: also return the positions of the maxima in each flattened image, for `MaxUnpool2d`.
        ceil_mode: include last windows that are only partly inside the input.

    Shape:
        (N, C, H, W) or (C, H, W) to (N, C, H_out, W_out) or (C, H_out, W_out).
    """

    axes = 2


class MaxPool3d(_MaxPool):
    """Maximum of each window over the last three axes.

    Args:
        kernel_size: size of the windows, an int or (depth, height, width).
        stride: distance between windows, an int or three ints; default: `kernel_size`.
        padding: number of implicit -inf elements added on both sides, an int or three ints.
        dilation: distance between the elements of a window, an int or three ints.
        return_indices: also return the positions of the maxima in each flattened volume, for `MaxUnpool3d`.
        ceil_mode: include last windows that are only partly inside the input.

    Shape:
        (N, C, D, H, W) or (C, D, H, W) to the same number of axes.
    """

    axes = 3


class _AvgPool(_Pool):
    """Base class of the average pooling layers."""

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode: bool = False,
                 count_include_pad: bool = True, divisor_override: int | None = None):
        super().__init__()
        self._set_windows(kernel_size, stride, padding)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return _F("avg_pool", self)(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                                    self.count_include_pad, self.divisor_override)

    def extra_repr(self) -> str:
        s = (f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
             f"ceil_mode={self.ceil_mode}")
        return s + ("" if self.count_include_pad else ", count_include_pad=False")


class AvgPool1d(_AvgPool):
    """Mean of each window over the last axis.

    Args:
        kernel_size: size of the windows, an int.
        stride: distance between windows, an int; default: `kernel_size`.
        padding: number of zeros added on both sides.
        ceil_mode: include a last window that is only partly inside the input.
        count_include_pad: include the padding zeros in the mean.

    Shape:
        (N, C, L) or (C, L) to (N, C, L_out) or (C, L_out).
    """

    axes = 1

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode: bool = False,
                 count_include_pad: bool = True):
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)


class AvgPool2d(_AvgPool):
    """Mean of each window over the last two axes.

    Args:
        kernel_size: size of the windows, an int or (height, width).
        stride: distance between windows, an int or a pair; default: `kernel_size`.
        padding: number of zeros added on both sides, an int or a pair.
        ceil_mode: include last windows that are only partly inside the input.
        count_include_pad: include the padding zeros in the mean.
        divisor_override: divisor of each sum; default: the number of averaged elements.

    Shape:
        (N, C, H, W) or (C, H, W) to (N, C, H_out, W_out) or (C, H_out, W_out).
    """

    axes = 2


class AvgPool3d(_AvgPool):
    """Mean of each window over the last three axes.

    Args:
        kernel_size: size of the windows, an int or (depth, height, width).
        stride: distance between windows, an int or three ints; default: `kernel_size`.
        padding: number of zeros added on both sides, an int or three ints.
        ceil_mode: include last windows that are only partly inside the input.
        count_include_pad: include the padding zeros in the mean.
        divisor_override: divisor of each sum; default: the number of averaged elements.

    Shape:
        (N, C, D, H, W) or (C, D, H, W) to the same number of axes.
    """

    axes = 3


class _Adaptive(_Pool):
    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveAvgPool(_Adaptive):
    """Base class of the adaptive average pooling layers."""

    def forward(self, input: Tensor) -> Tensor:
        return _F("adaptive_avg_pool", self)(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Means of `output_size` windows that cover the last axis.

    Args:
        output_size: number of windows.

    Shape:
        (N, C, L) or (C, L) to (N, C, output_size) or (C, output_size).
    """

    axes = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Means of windows that cover the last two axes.

    Args:
        output_size: an int or (height, width) of the output; None keeps the size of the input.

    Shape:
        (N, C, H, W) or (C, H, W) to the same number of axes.
    """

    axes = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Means of windows that cover the last three axes.

    Args:
        output_size: an int or (depth, height, width) of the output; None keeps the size of the input.

    Shape:
        (N, C, D, H, W) or (C, D, H, W) to the same number of axes.
    """

    axes = 3


class _AdaptiveMaxPool(_Adaptive):
    """Base class of the adaptive max pooling layers."""

    def __init__(self, output_size, return_indices: bool = False):
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor):
        return _F("adaptive_max_pool", self)(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Maxima of `output_size` windows that cover the last axis.

    Args:
        output_size: number of windows.
        return_indices: also return the int64 positions of the maxima.

    Shape:
        (N, C, L) or (C, L) to (N, C, output_size) or (C, output_size).
    """

    axes = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Maxima of windows that cover the last two axes.

    Args:
        output_size: an int or (height, width) of the output; None keeps the size of the input.
        return_indices: also return the positions of the maxima in each flattened image.

    Shape:
        (N, C, H, W) or (C, H, W) to the same number of axes.
    """

    axes = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Maxima of windows that cover the last three axes.

    Args:
        output_size: an int or (depth, height, width) of the output; None keeps the size of the input.
        return_indices: also return the positions of the maxima in each flattened volume.

    Shape:
        (N, C, D, H, W) or (C, D, H, W) to the same number of axes.
    """

    axes = 3


class _MaxUnpool(_Pool):
    """Base class of the layers that invert max pooling."""

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self._set_windows(kernel_size, stride, padding)

    def forward(self, input: Tensor, indices: Tensor, output_size=None) -> Tensor:
        return _F("max_unpool", self)(input, indices, self.kernel_size, self.stride, self.padding,
                                      output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Partial inverse of MaxPool1d: maxima at their old positions, zeros elsewhere.

    Its inputs are the two results of `MaxPool1d(..., return_indices=True)`.

    Args:
        kernel_size: size of the windows, an int.
        stride: distance between windows, an int; default: `kernel_size`.
        padding: padding of the pooling.

    Shape:
        (N, C, L) or (C, L). The argument `output_size` of the call selects one of several possible
            sizes.
    """

    axes = 1


class MaxUnpool2d(_MaxUnpool):
    """Partial inverse of MaxPool2d: maxima at their old positions, zeros elsewhere.

    Args:
        kernel_size: size of the windows, an int or (height, width).
        stride: distance between windows, an int or a pair; default: `kernel_size`.
        padding: padding of the pooling, an int or a pair.

    Shape:
        (N, C, H, W) or (C, H, W). The argument `output_size` of the call selects one of several possible
            sizes.
    """

    axes = 2


class MaxUnpool3d(_MaxUnpool):
    """Partial inverse of MaxPool3d: maxima at their old positions, zeros elsewhere.

    Args:
        kernel_size: size of the windows, an int or (depth, height, width).
        stride: distance between windows, an int or three ints; default: `kernel_size`.
        padding: padding of the pooling, an int or three ints.

    Shape:
        (N, C, D, H, W) or (C, D, H, W). The argument `output_size` of the call selects one of several
            possible sizes.
    """

    axes = 3


def _F(kind: str, pool: _Pool):
    """Return the function of nn.functional for the layer's number of axes."""
    return getattr(F, f"{kind}{pool.axes}d")
