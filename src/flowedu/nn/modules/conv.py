"""Convolution and transposed convolution layers over one to three spatial axes."""
from __future__ import annotations

import math

from flowedu.core.layers.module import Module
from flowedu.errors import ArgumentError, HyperparameterError
from flowedu.nn import functional as F
from flowedu.nn import init
from flowedu.nn.functional.common import ints
from flowedu.nn.functional.conv import same_pads
from flowedu.nn.functional.conv_transpose import transposed_size
from flowedu.nn.modules.linear import new_parameter
from flowedu.tensor import Tensor

_MODES = ("zeros", "reflect", "replicate", "circular")


class _Conv(Module):
    """Base class of all convolutions.

    `axes` is the number of spatial axes. `transposed` is True if weights have the shape (in, out / groups,
    ...).
    """

    axes, transposed = 2, False

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
                 padding_mode, device, dtype, output_padding=0):
        super().__init__()
        n, name = self.axes, type(self).__name__
        if not isinstance(groups, int) or groups < 1:
            raise ArgumentError(f"{name}: groups must be a positive integer", expected="1 or more",
                                got=repr(groups), fix="groups=1")
        for what, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise HyperparameterError(f"{name}: {what} must be divisible by groups",
                                          expected=f"a multiple of {groups}",
                                  got=f"{what}={channels}, groups={groups}",
                                          fix="groups=1, or numbers of channels that groups divides")
        if padding_mode not in _MODES:
            raise ArgumentError(f"{name}: padding_mode must be one of {set(_MODES)}", expected="'zeros'",
                                got=f"padding_mode={padding_mode!r}",
                                fix="padding_mode='zeros' is the default")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = (ints(kernel_size, n, name, "kernel_size", 1),
                                         ints(stride, n, name, "stride", 1))
        self.dilation, self.padding_mode = ints(dilation, n, name, "dilation", 1), padding_mode
        self.output_padding = ints(output_padding, n, name, "output_padding")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ArgumentError(f"{name}: Invalid padding string {padding!r}, should be one of 'valid', "
                                    f"'same'",
                                    expected="'valid', 'same' or ints", got=repr(padding),
                                    fix="padding=1, or 'same'")
            if padding == "same" and any(s != 1 for s in self.stride):
                raise ArgumentError(f"{name}: padding='same' is not supported for strided convolutions",
                                    expected="stride=1",
                                    got=f"stride={stride}", fix="give the padding as numbers")
            self.padding = padding
            pads = same_pads(self.kernel_size, self.dilation) if padding == "same" else (0,) * (2 * n)
        else:
            self.padding = ints(padding, n, name, "padding")
            pads = tuple(p for q in self.padding for p in (q, q))
        # F.pad expects the last axis first.
        self._reversed_padding_repeated_twice = tuple(p for i in range(n - 1, -1, -1)
                                                      for p in pads[2 * i:2 * i + 2])
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        self.weight = new_parameter(first, second // groups, *self.kernel_size, dtype=dtype, device=device)
        self.register_parameter("bias", new_parameter(out_channels, dtype=dtype, device=device) if bias
                                else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values uniformly from [-b, b], where b = 1 / sqrt(weight[0].numel())."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        init.uniform_bias_(self.bias, self.weight.numel() // max(self.weight.shape[0], 1))

    def extra_repr(self) -> str:
        s = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        s += f", padding={self.padding}" if self.padding != (0,) * self.axes else ""
        s += f", dilation={self.dilation}" if self.dilation != (1,) * self.axes else ""
        s += f", output_padding={self.output_padding}" if any(self.output_padding) else ""
        s += f", groups={self.groups}" if self.groups != 1 else ""
        s += ", bias=False" if self.bias is None else ""
        return s + (f", padding_mode={self.padding_mode}" if self.padding_mode != "zeros" else "")


class _Forward(_Conv):
    """Base class of the convolutions that are not transposed."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, dilation=1,
                 groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device=None, dtype=None):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
                         padding_mode, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Convolve with this weight and bias. Subclasses may override it, as in PyTorch."""
        conv = _CONV[self.axes]
        if self.padding_mode == "zeros":
            return conv(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        x = F.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
        return conv(x, weight, bias, self.stride, 0, self.dilation, self.groups)


class Conv1d(_Forward):
    """Convolution over (N, C, L); see F.conv1d.

    `weight` has the shape (out_channels, in_channels / groups, kernel_size).

    Args:
        in_channels: number of channels of the input.
        out_channels: number of channels of the output.
        kernel_size: size of the kernel, an int.
        stride: distance between windows.
        padding: number of elements added on both sides, or "same" or "valid".
        dilation: distance between the elements of a window.
        groups: number of blocks of channels that are convolved separately; divides both channel counts.
        bias: add a learnable bias per output channel.
        padding_mode: "zeros", "reflect", "replicate", or "circular".
        device: device of the parameters; default: the CPU.
        dtype: dtype of the parameters; default: the default dtype.
    """

    axes = 1


class Conv2d(_Forward):
    """Convolution over (N, C, H, W); see F.conv2d.

    `weight` has the shape (out_channels, in_channels / groups, kernel height, kernel width).

    Args:
        in_channels: number of channels of the input.
        out_channels: number of channels of the output.
        kernel_size: size of the kernel, an int or (height, width).
        stride: distance between windows, an int or a pair.
        padding: number of elements added on both sides, an int or a pair, or "same" or "valid".
        dilation: distance between the elements of a window, an int or a pair.
        groups: number of blocks of channels that are convolved separately; divides both channel counts.
        bias: add a learnable bias per output channel.
        padding_mode: "zeros", "reflect", "replicate", or "circular".
        device: device of the parameters; default: the CPU.
        dtype: dtype of the parameters; default: the default dtype.

    Example:
        >>> flow.nn.Conv2d(3, 8, kernel_size=3, padding=1)(flow.zeros(1, 3, 5, 5)).shape
        oneflow.Size([1, 8, 5, 5])
    """

    axes = 2


class Conv3d(_Forward):
    """Convolution over (N, C, D, H, W); see F.conv3d.

    `weight` has the shape (out_channels, in_channels / groups, kernel depth, height, width).

    Args:
        in_channels: number of channels of the input.
        out_channels: number of channels of the output.
        kernel_size: size of the kernel, an int or (depth, height, width).
        stride: distance between windows, an int or three ints.
        padding: number of elements added on both sides, an int or three ints, or "same" or "valid".
        dilation: distance between the elements of a window, an int or three ints.
        groups: number of blocks of channels that are convolved separately; divides both channel counts.
        bias: add a learnable bias per output channel.
        padding_mode: "zeros", "reflect", "replicate", or "circular".
        device: device of the parameters; default: the CPU.
        dtype: dtype of the parameters; default: the default dtype.
    """

    axes = 3


class _Transposed(_Conv):
    """Base class of the transposed convolutions."""

    transposed = True

    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0,
                 output_padding=0,
                 groups: int = 1, bias: bool = True, dilation=1, padding_mode: str = "zeros", device=None,
                 dtype=None):
        if padding_mode != "zeros":
            raise ArgumentError(f'Only "zeros" padding mode is supported for {type(self).__name__}',
                                expected="'zeros'", got=repr(padding_mode), fix="leave it out")
        if isinstance(padding, str):
            raise ArgumentError(f"{type(self).__name__}: padding is not a number", expected="ints",
                                got=repr(padding), fix="padding=0")
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
                         padding_mode, device, dtype, output_padding)

    def forward(self, input: Tensor, output_size=None) -> Tensor:
        """Compute the transposed convolution.

        Args:
            input: tensor of the shape that the docstring of the class describes.
            output_size: spatial size of the output. If the stride is greater than 1, several sizes are
                possible. Default: the smallest size plus `output_padding`.
        """
        extra = self._output_padding(input, output_size, self.stride, self.padding, self.kernel_size,
                                     self.axes, self.dilation)
        return _TRANSPOSED[self.axes](input, self.weight, self.bias, self.stride, self.padding, tuple(extra),
                                      self.groups, self.dilation)

    def _output_padding(self, input, output_size, stride, padding, kernel_size, num_spatial_dims: int,
                        dilation=None) -> tuple[int, ...]:
        """Return the padding that makes an output of this size. Subclasses may override it, as in PyTorch."""
        n = num_spatial_dims
        if output_size is None:
            return self.output_padding
        wanted = tuple(output_size)[-n:]
        least = transposed_size(input.shape[-n:], kernel_size, stride, padding, dilation or (1,) * n,
                                (0,) * n)
        extra = tuple(size - smallest for size, smallest in zip(wanted, least))
        if len(extra) != n or any(not 0 <= e < s for e, s in zip(extra, stride)):
            most = tuple(size + s - 1 for size, s in zip(least, stride))
            raise ArgumentError(f"{type(self).__name__}: requested an output size of {wanted}, but valid "
                                f"sizes range from {least} to {most}", expected=f"{least} to {most}",
                                got=str(wanted), fix="one of these")
        return extra


class ConvTranspose1d(_Transposed):
    """Transposed convolution over (N, C, L); see F.conv_transpose1d.

    `weight` has the shape (in_channels, out_channels / groups, kernel_size).

    Args:
        in_channels: number of channels of the input.
        out_channels: number of channels of the output.
        kernel_size: size of the kernel, an int.
        stride: stride of the convolution that this layer transposes.
        padding: number of elements removed on both sides of the output.
        output_padding: number of elements added at the end of each output axis. It must be
            less than the larger of stride and dilation.
        groups: number of blocks of channels that are convolved separately; divides both channel counts.
        bias: add a learnable bias per output channel.
        dilation: distance between the elements of the kernel.
        padding_mode: must be "zeros".
        device: device of the parameters; default: the CPU.
        dtype: dtype of the parameters; default: the default dtype.
    """

    axes = 1


class ConvTranspose2d(_Transposed):
    """Transposed convolution over (N, C, H, W); see F.conv_transpose2d.

    `weight` has the shape (in_channels, out_channels / groups, kernel height, kernel width).

    Args:
        in_channels: number of channels of the input.
        out_channels: number of channels of the output.
        kernel_size: size of the kernel, an int or (height, width).
        stride: stride of the convolution that this layer transposes, an int or a pair.
        padding: number of elements removed on both sides of the output, an int or a pair.
        output_padding: number of elements added at the end of each output axis, an int or a pair. It must be
            less than the larger of stride and dilation.
        groups: number of blocks of channels that are convolved separately; divides both channel counts.
        bias: add a learnable bias per output channel.
        dilation: distance between the elements of the kernel, an int or a pair.
        padding_mode: must be "zeros".
        device: device of the parameters; default: the CPU.
        dtype: dtype of the parameters; default: the default dtype.
    """

    axes = 2


class ConvTranspose3d(_Transposed):
    """Transposed convolution over (N, C, D, H, W); see F.conv_transpose3d.

    `weight` has the shape (in_channels, out_channels / groups, kernel depth, height, width).

    Args:
        in_channels: number of channels of the input.
        out_channels: number of channels of the output.
        kernel_size: size of the kernel, an int or (depth, height, width).
        stride: stride of the convolution that this layer transposes, an int or three ints.
        padding: number of elements removed on both sides of the output, an int or three ints.
        output_padding: number of elements added at the end of each output axis, an int or three ints. It must
            be less than the larger of stride and dilation.
        groups: number of blocks of channels that are convolved separately; divides both channel counts.
        bias: add a learnable bias per output channel.
        dilation: distance between the elements of the kernel, an int or three ints.
        padding_mode: must be "zeros".
        device: device of the parameters; default: the CPU.
        dtype: dtype of the parameters; default: the default dtype.
    """

    axes = 3


_CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
