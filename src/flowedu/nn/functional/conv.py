"""Convolutions over one, two and three axes, and their adjoints (transposed convolutions).

All are made of the ops of 2-d convolution; how is told in flowedu/nn/conv.py.
"""
from __future__ import annotations

from flowedu.errors import ArgumentError, DTypeError, ShapeError
from flowedu.nn.conv import _conv1d, _conv3d
from flowedu.nn.functional.common import check_tensor, ints, reshaped
from flowedu.ops.define import REGISTRY
from flowedu.tensor import Tensor

_CONV, _INPUT_GRAD, _BIAS = REGISTRY["conv2d"], REGISTRY["conv2d_input_grad"], REGISTRY["bias_add"]
_COMPUTE = {1: _conv1d, 3: _conv3d}


def same_pads(kernel, dilations) -> tuple[int, ...]:
    """(before, after) of every axis for an output as large as the input: an odd one goes behind."""
    need = [(k - 1) * d for k, d in zip(kernel, dilations)]
    return tuple(p for n in need for p in (n // 2, n - n // 2))


def _pads(what, padding, kernel, strides, dilations) -> tuple[int, ...]:
    if isinstance(padding, str):
        if padding == "valid":
            return (0,) * (2 * len(kernel))
        if padding != "same":
            raise ArgumentError(f"{what}: Invalid padding string {padding!r}", expected="'valid', 'same' or ints",
                                got=repr(padding), fix="padding=1, or 'same'")
        if any(s != 1 for s in strides):
            raise ArgumentError(f"{what}: padding='same' is not supported for strided convolutions", expected="stride=1",
                                got=f"stride={strides}", fix="give the padding as numbers")
        return same_pads(kernel, dilations)
    return tuple(p for n in ints(padding, len(kernel), what, "padding") for p in (n, n))


def _check(what, x, weight, bias, n, groups, transposed: bool) -> bool:
    """Raise unless x fits; whether x has no batch axis. transposed: weight is (in, out / groups, ...)."""
    check_tensor(what, x)
    check_tensor(what, weight, "weight")
    if weight.ndim != n + 2 or x.ndim not in (n + 1, n + 2):
        raise ShapeError(f"{what}: Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {what}, but got input of "
                         f"size: {list(x.shape)}", expected=f"input ({'batch, ' if n else ''}channels, {n} axes), weight "
                         f"with {n + 2} axes", got=f"input {tuple(x.shape)}, weight {tuple(weight.shape)}",
                         fix="x.unsqueeze(1) adds a channel axis")
    if x.dtype is not weight.dtype:
        raise DTypeError(f"{what}: Input type ({x.dtype!r}) and weight type ({weight.dtype!r}) should be the same",
                         expected=repr(weight.dtype), got=repr(x.dtype), fix=f"input.to(flow.{weight.dtype.name})")
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
                         fix=f"make the layer for {found} input channels, or check the order of the axes: channels come "
                         "before height and width")
    if bias is not None and tuple(bias.shape) != (out,):
        raise ShapeError(f"{what}: the bias does not fit", expected=f"({out},)", got=str(tuple(bias.shape)),
                         fix="a bias with one number for each output channel")
    return x.ndim == n + 1


def _conv(n: int):
    what = f"conv{n}d"

    def conv(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0, dilation=1,
             groups: int = 1) -> Tensor:
        single = _check(what, input, weight, bias, n, groups, False)
        kernel = tuple(weight.shape[2:])
        strides, dilations = ints(stride, n, what, "stride", 1), ints(dilation, n, what, "dilation", 1)
        pads = _pads(what, padding, kernel, strides, dilations)
        x = reshaped(input, (1, *input.shape)) if single else input
        spare = [size + pads[2 * i] + pads[2 * i + 1] - (kernel[i] - 1) * dilations[i] - 1
                 for i, size in enumerate(x.shape[2:])]
        if min(spare) < 0:
            raise ShapeError(f"{what}: Kernel size can't be greater than actual input size", expected="a padded input of "
                             f"{[(k - 1) * d + 1 for k, d in zip(kernel, dilations)]} or more",
                             fix="pad the input, or use a "
                             "smaller kernel", got=f"input {tuple(input.shape)}, padding {padding}")
        if n == 2:
            y = _CONV.call((x, weight), (strides, pads, dilations, groups))
        else:
            y = _COMPUTE[n](x, weight, strides, pads, dilations, groups)
        if bias is not None:
            y = _BIAS.call((y, bias), (1,))
        return reshaped(y, tuple(y.shape[1:])) if single else y

    conv.__name__ = conv.__qualname__ = what
    axes = ", ".join("DHW"[3 - n:])
    conv.__doc__ = f"""Convolution (cross-correlation) of input (N, C, {axes}) with weight (out, C / groups, kernel ...).

    Args:
        input: also without N. bias: (out,) or None.
        stride, padding, dilation: an int, or one for each of the {n} axes; padding also "valid" (0) or "same" (an output
            as large as the input; stride 1 only).
        groups: channels are convolved in that many groups of their own.

    Returns: (N, out, ...): floor((size + 2 * padding - dilation * (kernel - 1) - 1) / stride) + 1 along each axis.

    Raises:
        ShapeError, DTypeError, ArgumentError (all RuntimeErrors): what does not fit.
    """
    return conv


conv1d, conv2d, conv3d = _conv(1), _conv(2), _conv(3)


# ---- transposed
def transposed_size(size, kernel, strides, paddings, dilations, extra) -> tuple[int, ...]:
    """The spatial size that a transposed convolution makes."""
    return tuple((n - 1) * s - 2 * p + d * (k - 1) + e + 1
                 for n, k, s, p, d, e in zip(size, kernel, strides, paddings, dilations, extra))


def _conv_transpose(n: int):
    what = f"conv_transpose{n}d"

    def conv(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0, output_padding=0,
             groups: int = 1, dilation=1) -> Tensor:
        single = _check(what, input, weight, bias, n, groups, True)
        x = reshaped(input, (1, *input.shape)) if single else input
        kernel = tuple(weight.shape[2:])
        strides, dilations = ints(stride, n, what, "stride", 1), ints(dilation, n, what, "dilation", 1)
        paddings, extra = ints(padding, n, what, "padding"), ints(output_padding, n, what, "output_padding")
        if any(e >= max(s, d) for e, s, d in zip(extra, strides, dilations)):
            raise ArgumentError(f"{what}: output padding must be smaller than either stride or dilation",
                                expected=f"below {tuple(map(max, strides, dilations))}", got=str(output_padding),
                                fix="output_padding below the stride")
        size = transposed_size(x.shape[2:], kernel, strides, paddings, dilations, extra)
        if min(size) < 1:
            raise ShapeError(f"{what}: the output would be empty", expected="1 or more along each axis", got=str(size),
                             fix="less padding")
        y = _TRANSPOSED[n](x, weight, size, strides, paddings, dilations, groups, kernel)
        if bias is not None:
            y = _BIAS.call((y, bias), (1,))
        return reshaped(y, tuple(y.shape[1:])) if single else y

    conv.__name__ = conv.__qualname__ = what
    conv.__doc__ = f"""Transposed convolution: the gradient of conv{n}d, used as a layer.

    Args:
        input: (N, in, ...), also without N. weight: (in, out / groups, kernel ...). bias: (out,) or None.
        output_padding: how much larger than the smallest possible size the result is, behind each axis.
        stride, padding, dilation: of that conv{n}d: ints, or {n} of them.

    Returns: (N, out, ...), along each axis (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + extra + 1.
    """
    return conv


def _plane(x, w, size, strides, paddings, dilations, groups, kernel):
    """2-d. output_padding uncovers what the padding cuts off behind; zeros follow where that is not enough."""
    least = transposed_size(x.shape[2:], kernel, strides, paddings, dilations, (0, 0))
    shown = tuple(min(a - b, p) for a, b, p in zip(size, least, paddings))
    hw = tuple(b + e for b, e in zip(least, shown))
    pads = tuple(q for p, e in zip(paddings, shown) for q in (p, p - e))
    y = _INPUT_GRAD(x, w, hw=hw, strides=strides, pads=pads, dilations=dilations, groups=groups)
    if hw != size:
        shape = (*y.shape[:2], *size)
        y = REGISTRY["slice_grad"](y, shape=shape, start=(0,) * 4, stop=tuple(y.shape), step=(1,) * 4)
    return y


def _line(x, w, size, strides, paddings, dilations, groups, kernel):
    """1-d: images of height 1."""
    y = _plane(reshaped(x, (*x.shape[:2], 1, x.shape[2])), reshaped(w, (*w.shape[:2], 1, w.shape[2])), (1, *size),
               (1, *strides), (0, *paddings), (1, *dilations), groups, (1, *kernel))
    return reshaped(y, (*y.shape[:2], y.shape[3]))


def _volume(x, w, size, strides, paddings, dilations, groups, kernel):
    """3-d: every slice of the kernel's depth makes slices of the output, put down one step further each."""
    n, c, depth = x.shape[:3]
    flat = reshaped(x.permute(0, 2, 1, 3, 4).contiguous(), (n * depth, c, *x.shape[3:]))
    full = max((depth - 1) * strides[0] + dilations[0] * (kernel[0] - 1) + 1, size[0] + paddings[0])
    total = None
    for tap in range(kernel[0]):
        part = reshaped(w[:, :, tap].contiguous(), (*w.shape[:2], *kernel[1:]))
        y = _plane(flat, part, size[1:], strides[1:], paddings[1:], dilations[1:], groups, kernel[1:])
        y = reshaped(y, (n, depth, *y.shape[1:]))
        start = tap * dilations[0]
        y = REGISTRY["slice_grad"](y, shape=(n, full, *y.shape[2:]), start=(0, start, 0, 0, 0),
                                   step=(1, strides[0], 1, 1, 1),
                                   stop=(n, start + (depth - 1) * strides[0] + 1, *y.shape[2:]))
        total = y if total is None else total + y
    y = REGISTRY["slice"](total, start=(0, paddings[0], 0, 0, 0), stop=(n, paddings[0] + size[0], *total.shape[2:]),
                          step=(1,) * 5)
    return y.permute(0, 2, 1, 3, 4).contiguous()


_TRANSPOSED = {1: _line, 2: _plane, 3: _volume}
conv_transpose1d, conv_transpose2d, conv_transpose3d = _conv_transpose(1), _conv_transpose(2), _conv_transpose(3)
