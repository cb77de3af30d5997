"""Transposed convolutions over one, two, and three axes, the adjoints of conv1d, conv2d, and conv3d."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowedu.core.ops.concat import slice as slice_op
from flowedu.core.ops.concat import slice_grad
from flowedu.errors import ArgumentError, ShapeError
from flowedu.nn.functional.common import Ints, ints, reshaped
from flowedu.nn.functional.conv import check
from flowedu.ops import bias as bias_ops
from flowedu.ops.conv import conv2d_input_grad
from flowedu.tensor import Tensor


def transposed_size(size: Ints, kernel: Ints, strides: Ints, paddings: Ints, dilations: Ints,
                    extra: Ints) -> Ints:
    """Return the spatial size of the result of a transposed convolution."""
    return tuple((n - 1) * s - 2 * p + d * (k - 1) + e + 1
                 for n, k, s, p, d, e in zip(size, kernel, strides, paddings, dilations, extra))


def _conv_transpose(n: int) -> Callable[..., Tensor]:
    what = f"conv_transpose{n}d"

    def conv(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1,
             padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1,
             dilation: int | Sequence[int] = 1) -> Tensor:
        single = check(what, input, weight, bias, n, groups, True)
        x = reshaped(input, (1, *input.shape)) if single else input
        kernel = tuple(weight.shape[2:])
        strides, dilations = ints(stride, n, what, "stride", 1), ints(dilation, n, what, "dilation", 1)
        paddings, extra = ints(padding, n, what, "padding"), ints(output_padding, n, what, "output_padding")
        if any(e >= max(s, d) for e, s, d in zip(extra, strides, dilations)):
            raise ArgumentError(f"{what}: output padding must be smaller than either stride or dilation",
                                expected=f"below {tuple(map(max, strides, dilations))}",
                                got=str(output_padding), fix="output_padding below the stride")
        size = transposed_size(x.shape[2:], kernel, strides, paddings, dilations, extra)
        if min(size) < 1:
            raise ShapeError(f"{what}: the output would be empty", expected="1 or more along each axis",
                             got=str(size), fix="less padding")
        y = _TRANSPOSED[n](x, weight, size, strides, paddings, dilations, groups)
        if bias is not None:
            y = bias_ops.bias_add.call((y, bias), (1,))
        return reshaped(y, tuple(y.shape[1:])) if single else y

    conv.__name__ = conv.__qualname__ = what
    conv.__doc__ = f"""Compute a transposed convolution.

    It is the gradient of conv{n}d with respect to the input of conv{n}d.

    Args:
        input: (N, in, ...) or without N.
        weight: (in, out / groups, kernel ...).
        bias: (out,); default: no bias.
        stride: stride of the conv{n}d, an int or one per axis.
        padding: padding of the conv{n}d, an int or one per axis.
        output_padding: number of elements added at the end of each output axis, an int or one per axis. It
            must be less than the larger of stride and dilation.
        groups: number of blocks of channels that are convolved separately.
        dilation: dilation of the conv{n}d, an int or one per axis.

    Returns:
        (N, out, ...). The size of each spatial axis is
        (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1.
    """
    return conv


def _plane(x: Tensor, w: Tensor, size: Ints, strides: Ints, paddings: Ints, dilations: Ints,
           groups: int) -> Tensor:
    """Compute the transpose of conv2d.

    output_padding uncovers elements that the padding cuts off at the end, and adds zeros after them.
    """
    least = transposed_size(x.shape[2:], w.shape[2:], strides, paddings, dilations, (0, 0))
    shown = tuple(min(a - b, p) for a, b, p in zip(size, least, paddings))
    hw = tuple(b + e for b, e in zip(least, shown))
    pads = tuple(q for p, e in zip(paddings, shown) for q in (p, p - e))
    y = conv2d_input_grad(x, w, hw=hw, strides=strides, pads=pads, dilations=dilations, groups=groups)
    if hw != size:
        shape = (*y.shape[:2], *size)
        y = slice_grad(y, shape=shape, start=(0,) * 4, stop=tuple(y.shape), step=(1,) * 4)
    return y


def _line(x: Tensor, w: Tensor, size: Ints, strides: Ints, paddings: Ints, dilations: Ints,
          groups: int) -> Tensor:
    """Compute the transpose of conv1d on images of height 1."""
    y = _plane(reshaped(x, (*x.shape[:2], 1, x.shape[2])), reshaped(w, (*w.shape[:2], 1, w.shape[2])),
               (1, *size), (1, *strides), (0, *paddings), (1, *dilations), groups)
    return reshaped(y, (*y.shape[:2], y.shape[3]))


def _volume(x: Tensor, w: Tensor, size: Ints, strides: Ints, paddings: Ints, dilations: Ints,
            groups: int) -> Tensor:
    """Compute the transpose of conv3d as a sum over the depth of the kernel of shifted output slices."""
    n, c, depth = x.shape[:3]
    kernel = w.shape[2:]
    flat = reshaped(x.permute(0, 2, 1, 3, 4).contiguous(), (n * depth, c, *x.shape[3:]))
    full = max((depth - 1) * strides[0] + dilations[0] * (kernel[0] - 1) + 1, size[0] + paddings[0])
    total: Any = None
    for tap in range(kernel[0]):
        part = reshaped(w[:, :, tap].contiguous(), (*w.shape[:2], *kernel[1:]))
        y = _plane(flat, part, size[1:], strides[1:], paddings[1:], dilations[1:], groups)
        y = reshaped(y, (n, depth, *y.shape[1:]))
        start = tap * dilations[0]
        y = slice_grad(y, shape=(n, full, *y.shape[2:]), start=(0, start, 0, 0, 0),
                       step=(1, strides[0], 1, 1, 1),
                       stop=(n, start + (depth - 1) * strides[0] + 1, *y.shape[2:]))
        total = y if total is None else total + y
    y = slice_op(total, start=(0, paddings[0], 0, 0, 0), stop=(n, paddings[0] + size[0], *total.shape[2:]),
                 step=(1,) * 5)
    return y.permute(0, 2, 1, 3, 4).contiguous()


_TRANSPOSED = {1: _line, 2: _plane, 3: _volume}
conv_transpose1d, conv_transpose2d, conv_transpose3d = (_conv_transpose(1), _conv_transpose(2),
                                                        _conv_transpose(3))
