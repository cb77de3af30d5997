"""Convolution over one, two, and three axes, built from the 2-d convolution op.

A 1-d input is treated as an image of height 1. In a 3-d convolution over (D, H, W), each output slice depends
on as many input slices as the kernel is deep. The channels of these input slices are concatenated into one
image per output slice. One 2-d convolution of all these images computes the result.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from flowedu.core.ops.concat import concat, slice_grad
from flowedu.core.ops.concat import slice as slice_op
from flowedu.core.ops.view import reshape, transpose
from flowedu.core.values.thread_state import thread_state
from flowedu.errors import ArgumentError, DTypeError, ShapeError
from flowedu.errors.element_types import mixed
from flowedu.nn.functional.common import Ints, ValueT, check_tensor, ints, reshaped
from flowedu.ops import bias as bias_ops
from flowedu.ops import conv as conv_ops
from flowedu.ops.padding import out_size
from flowedu.tensor import Tensor


# ---- functions of values: tensors, or values of a graph
def convolution(x: ValueT, w: ValueT, strides: Ints, pads: Ints, dilations: Ints, groups: int) -> ValueT:
    """Convolve x (n, c, one to three axes) with w (o, c / groups, kernel ...).

    `pads` contains the padding (before, after) of each axis.
    """
    if len(strides) == 2:
        return conv_ops.conv2d.call((x, w), (strides, pads, dilations, groups))
    if len(strides) == 3:
        return _volumes(x, w, strides, pads, dilations, groups)
    x, w = (reshaped(a, (*a.shape[:2], 1, a.shape[2])) for a in (x, w))
    y = conv_ops.conv2d.call((x, w), ((1, *strides), (0, 0, *pads), (1, *dilations), groups))
    return reshaped(y, (*y.shape[:2], y.shape[3]))


def _volumes(x: ValueT, w: ValueT, strides: Ints, pads: Ints, dilations: Ints, groups: int) -> ValueT:
    """Convolve x (n, c, D, H, W) with w (o, c / groups, kd, kh, kw)."""
    n, c, depth = x.shape[:3]
    o, part = w.shape[:2]
    kd, kh, kw = w.shape[2:]
    # a product of channels at every point
    if (kd, kh, kw) == (1, 1, 1) and (*strides, *pads) == (1,) * 3 + (0,) * 6:
        height, width = x.shape[3:]
        y = conv_ops.conv2d(reshaped(x, (n, c, depth * height, width)), reshaped(w, (o, part, 1, 1)),
                            groups=groups)
        return reshaped(y, (n, o, depth, height, width))
    images, out = _bands(x, kd, strides[0], pads[:2], dilations[0], groups)
    w = reshaped(transpose(w, perm=(0, 2, 1, 3, 4)), (o, kd * part, kh, kw))
    y = conv_ops.conv2d.call((images, w), (strides[1:], pads[2:], dilations[1:], groups))
    return transpose(reshaped(y, (n, out, *y.shape[1:])), perm=(0, 2, 1, 3, 4))


def _bands(x: ValueT, taps: int, stride: int, pads: Ints, dilation: int, groups: int) -> tuple[ValueT, int]:
    """Return the inputs of the output slices as images (n * out, groups * taps * part, H, W), and `out`."""
    n, c, depth = x.shape[:3]
    height, width = x.shape[3:]
    before, after = pads
    out = out_size(depth, before, after, taps, stride, dilation)
    if before or after:                                  # the adjoint of a slice: zeros around x
        full = (n, c, before + depth + after, height, width)
        x = slice_grad(x, shape=full, start=(0, 0, before, 0, 0), stop=(n, c, before + depth, height, width),
                       step=(1,) * 5)

    def shift(tap: int) -> ValueT:
        """Return the inputs of each output slice at one index of the kernel's depth.

        The result is a view (n, out, groups, 1, part, H, W).
        """
        start = tap * dilation
        band = slice_op(x, start=(0, 0, start, 0, 0), step=(1, 1, stride, 1, 1),
                        stop=(n, c, start + (out - 1) * stride + 1, height, width))
        band = transpose(band, perm=(0, 2, 1, 3, 4))
        return reshape(band, shape=(n, out, groups, 1, c // groups, height, width))

    images = concat(*map(shift, range(taps)), axis=3) if taps > 1 else shift(0)
    return reshaped(images, (n * out, taps * c, height, width)), out


# ---- functions of tensors
def same_pads(kernel: Ints, dilations: Ints) -> Ints:
    """Return the padding (before, after) of each axis for an output as large as the input.

    If the total padding of an axis is odd, the extra element is added at the end of the axis.
    """
    need = [(k - 1) * d for k, d in zip(kernel, dilations)]
    return tuple(p for n in need for p in (n // 2, n - n // 2))


def _pads(what: str, padding: str | int | Sequence[int], kernel: Ints, strides: Ints,
          dilations: Ints) -> Ints:
    if isinstance(padding, str):
        if padding == "valid":
            return (0,) * (2 * len(kernel))
        if padding != "same":
            raise ArgumentError(f"{what}: Invalid padding string {padding!r}",
                                expected="'valid', 'same' or ints",
                                got=repr(padding), fix="padding=1, or 'same'")
        if any(s != 1 for s in strides):
            raise ArgumentError(f"{what}: padding='same' is not supported for strided convolutions",
                                expected="stride=1",
                                got=f"stride={strides}", fix="give the padding as numbers")
        return same_pads(kernel, dilations)
    return tuple(p for n in ints(padding, len(kernel), what, "padding") for p in (n, n))


def check(what: str, x: Tensor, weight: Tensor, bias: Tensor | None, n: int, groups: int,
          transposed: bool = False) -> bool:
    """Raise an error if the arguments do not fit together, and return True if x has no batch axis.

    If `transposed` is True, the weight has the shape (in, out / groups, ...).
    """
    check_tensor(what, x)
    check_tensor(what, weight, "weight")
    if weight.ndim != n + 2 or x.ndim not in (n + 1, n + 2):
        raise ShapeError(f"{what}: Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {what}, but "
                         f"got input of size: {list(x.shape)}",
                         expected=f"input ({'batch, ' if n else ''}channels, {n} axes), weight with {n + 2} "
                         f"axes", got=f"input {tuple(x.shape)}, weight {tuple(weight.shape)}",
                         fix="x.unsqueeze(1) adds a channel axis")
    if x.dtype is not weight.dtype and thread_state.amp is None:
        raise DTypeError(f"{what}: Input type ({x.dtype!r}) and weight type ({weight.dtype!r}) should be "
                         f"the same", expected=repr(weight.dtype), got=repr(x.dtype),
                         fix=mixed(f"input.to(flow.{weight.dtype.name})", x.dtype, weight.dtype))
    if not isinstance(groups, int) or groups < 1 or weight.shape[0] % groups:
        raise ArgumentError(f"{what}: groups does not divide the channels",
                            expected=f"an int that divides {weight.shape[0]}",
                            got=f"groups={groups!r}", fix="groups=1")
    found, channels = x.shape[x.ndim - n - 1], weight.shape[0] if transposed else weight.shape[1] * groups
    out = weight.shape[1] * groups if transposed else weight.shape[0]
    if found != channels:
        raise ShapeError(f"{what}: Given groups={groups}, weight of size {list(weight.shape)}, expected input"
                         f"{list(x.shape)} to have {channels} channels, but got {found} channels instead",
                         expected=f"{channels} channels", got=f"input {tuple(x.shape)}",
                         fix=f"make the layer for {found} input channels, or check the order of the axes: "
                         f"channels come before height and width")
    if bias is not None and tuple(bias.shape) != (out,):
        raise ShapeError(f"{what}: the bias does not fit", expected=f"({out},)", got=str(tuple(bias.shape)),
                         fix="a bias with one number for each output channel")
    return x.ndim == n + 1


def _conv(n: int) -> Callable[..., Tensor]:
    what = f"conv{n}d"

    def conv(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1,
             padding: str | int | Sequence[int] = 0, dilation: int | Sequence[int] = 1,
             groups: int = 1) -> Tensor:
        single = check(what, input, weight, bias, n, groups)
        kernel = tuple(weight.shape[2:])
        strides, dilations = ints(stride, n, what, "stride", 1), ints(dilation, n, what, "dilation", 1)
        pads = _pads(what, padding, kernel, strides, dilations)
        x = reshaped(input, (1, *input.shape)) if single else input
        spare = [size + pads[2 * i] + pads[2 * i + 1] - (kernel[i] - 1) * dilations[i] - 1
                 for i, size in enumerate(x.shape[2:])]
        if min(spare) < 0:
            raise ShapeError(f"{what}: Kernel size can't be greater than actual input size",
                             expected="a padded input of "
                             f"{[(k - 1) * d + 1 for k, d in zip(kernel, dilations)]} or more",
                             fix="pad the input, or use a "
                             "smaller kernel", got=f"input {tuple(input.shape)}, padding {padding}")
        y = convolution(x, weight, strides, pads, dilations, groups)
        if bias is not None:
            y = bias_ops.bias_add.call((y, bias), (1,))
        return reshaped(y, tuple(y.shape[1:])) if single else y

    conv.__name__ = conv.__qualname__ = what
    axes = ", ".join("DHW"[3 - n:])
    conv.__doc__ = f"""Convolve (cross-correlate) an input over its spatial axes.

    Args:
        input: (N, C, {axes}) or without N.
        weight: (out, C / groups, kernel ...).
        bias: (out,); default: no bias.
        stride: distance between windows, an int or one per axis.
        padding: number of zeros added on both sides, an int or one per axis. "valid" adds no zeros. "same"
            keeps the size of the input and requires stride 1.
        dilation: distance between the elements of a window, an int or one per axis.
        groups: number of blocks of channels that are convolved separately.

    Returns:
        (N, out, ...). The size of each spatial axis is
        floor((size + 2 * padding - dilation * (kernel - 1) - 1) / stride) + 1.

    Raises:
        ShapeError, DTypeError, ArgumentError (all RuntimeErrors): an argument has a wrong shape,
            dtype, or value.
    """
    return conv


conv1d, conv2d, conv3d = _conv(1), _conv(2), _conv(3)
