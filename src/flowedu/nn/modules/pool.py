"""Pooling as modules; see the functions of the same name in nn.functional."""
from __future__ import annotations

from flowedu.core.layers.module import Module
from flowedu.nn import functional as F
from flowedu.nn.functional.common import ints
from flowedu.tensor import Tensor


class _Pool(Module):
    """axes: how many spatial ones."""

    axes = 2

    def _tuple(self, value, name: str, least: int):
        """As OneFlow keeps it: a tuple with a number for each axis."""
        return ints(value, self.axes, type(self).__name__, name, least)


class MaxPool1d(_Pool):
    """The largest element of each window of (N, C, L). return_indices: also where it was."""

    axes = 1

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices: bool = False,
                 ceil_mode: bool = False):
        super().__init__()
        self.kernel_size = self._tuple(kernel_size, "kernel_size", 1)
        self.stride = self.kernel_size if stride is None else self._tuple(stride, "stride", 1)
        self.padding, self.dilation = self._tuple(padding, "padding", 0), self._tuple(dilation, "dilation", 1)
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Tensor):
        return _F("max_pool", self)(input, self.kernel_size, self.stride, self.padding, self.dilation,
                                    ceil_mode=self.ceil_mode, return_indices=self.return_indices)

    def extra_repr(self) -> str:
        s = f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}"
        return s + (", ceil_mode=True" if self.ceil_mode else "")


class MaxPool2d(MaxPool1d):
    """The largest element of each window of (N, C, H, W)."""

    axes = 2


class MaxPool3d(MaxPool1d):
    """The largest element of each window of (N, C, D, H, W)."""

    axes = 3


class AvgPool1d(_Pool):
    """The mean of each window of (N, C, L). count_include_pad: padding counts as zeros."""

    axes = 1

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True):
        super().__init__()
        self._set(kernel_size, stride, padding, ceil_mode, count_include_pad, None)

    def _set(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        self.kernel_size = self._tuple(kernel_size, "kernel_size", 1)
        self.stride = self.kernel_size if stride is None else self._tuple(stride, "stride", 1)
        self.padding = self._tuple(padding, "padding", 0)
        self.ceil_mode, self.count_include_pad, self.divisor_override = ceil_mode, count_include_pad, divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return _F("avg_pool", self)(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                                    self.count_include_pad, self.divisor_override)

    def extra_repr(self) -> str:
        s = f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, ceil_mode={self.ceil_mode}"
        return s + ("" if self.count_include_pad else ", count_include_pad=False")


class AvgPool2d(AvgPool1d):
    """The mean of each window of (N, C, H, W). divisor_override: divide the sums by this instead."""

    axes = 2

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True,
                 divisor_override: int | None = None):
        Module.__init__(self)
        self._set(kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


class AvgPool3d(AvgPool2d):
    """The mean of each window of (N, C, D, H, W)."""

    axes = 3


class _Adaptive(_Pool):
    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """Means of (N, C, L), output_size of them."""

    axes = 1

    def forward(self, input: Tensor) -> Tensor:
        return _F("adaptive_avg_pool", self)(input, self.output_size)


class AdaptiveAvgPool2d(AdaptiveAvgPool1d):
    """Means of (N, C, H, W); output_size: an int, or two (None: as many as there are elements)."""

    axes = 2


class AdaptiveAvgPool3d(AdaptiveAvgPool1d):
    """Means of (N, C, D, H, W); output_size: an int, or three."""

    axes = 3


class AdaptiveMaxPool1d(_Adaptive):
    """Largest elements of (N, C, L), output_size of them."""

    axes = 1

    def __init__(self, output_size, return_indices: bool = False):
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor):
        return _F("adaptive_max_pool", self)(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(AdaptiveMaxPool1d):
    """Largest elements of (N, C, H, W); output_size: an int, or two."""

    axes = 2


class AdaptiveMaxPool3d(AdaptiveMaxPool1d):
    """Largest elements of (N, C, D, H, W); output_size: an int, or three."""

    axes = 3


class MaxUnpool1d(_Pool):
    """Zeros, and each element where MaxPool1d(return_indices=True) had found it."""

    axes = 1

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size = self._tuple(kernel_size, "kernel_size", 1)
        self.stride = self.kernel_size if stride is None else self._tuple(stride, "stride", 1)
        self.padding = self._tuple(padding, "padding", 0)

    def forward(self, input: Tensor, indices: Tensor, output_size=None) -> Tensor:
        return _F("max_unpool", self)(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool2d(MaxUnpool1d):
    """Zeros, and each element where MaxPool2d(return_indices=True) had found it."""

    axes = 2


class MaxUnpool3d(MaxUnpool1d):
    """Zeros, and each element where MaxPool3d(return_indices=True) had found it."""

    axes = 3


def _F(kind: str, pool: _Pool):
    """The function for this number of axes."""
    return getattr(F, f"{kind}{pool.axes}d")
