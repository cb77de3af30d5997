"""Padding of images with OneFlow 0.4's names: zero_pad2d and others, same_padding, and pad_grad."""
from __future__ import annotations

from collections.abc import Sequence

from flowedu.core.ops.concat import concat
from flowedu.core.ops.view import constant
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, CheckError, ShapeError
from flowedu.oneflow04.functions.pad_slice_broadcast import pad, slice_v2
from flowedu.oneflow04.functions.ranges_and_triangles import positions
from flowedu.ops.front import front
from flowedu.ops.index import gather
from flowedu.ops.padding import conv_padding


def _border(what: str, x, padding) -> tuple[int, ...]:
    """Return (left, right, top, bottom). Raise ShapeError or CheckError if the padding does not fit."""
    if x.ndim != 4:
        raise ShapeError(f"{what}: x is no batch of images", expected="(N, C, H, W)", got=str(x.shape),
                         fix="flow.pad pads any axis")
    sides: tuple[int, ...] = ()
    if isinstance(padding, int):
        sides = (padding,) * 4
    elif isinstance(padding, (list, tuple)):
        sides = tuple(padding)
    h, w = x.shape[2:]
    if (len(sides) != 4 or not all(isinstance(n, int) and 0 <= n < size
                                   for n, size in zip(sides, (w, w, h, h)))):
        raise CheckError(f"{what}: padding does not fit",
                         expected=f"an int, or four: left, right below {w}, top, bottom below {h}",
                         got=repr(padding), fix=f"{what}(x, [1, 1, 2, 2])")
    return sides


def _pad_constant(what: str, x, padding, value):
    left, right, top, bottom = _border(what, x, padding)
    return pad.__wrapped__(x, ((0, 0), (0, 0), (top, bottom), (left, right)), value)


@front("Constant_Pad2d")
def constant_pad2d(x, padding: int | Sequence[int], constant_value: float = 0):
    """Pad images with a constant.

    Args:
        x: a blob of shape (N, C, H, W).
        padding: the width of the border, or four ints: left, right, top, bottom. Each is smaller than the
            image.
        constant_value: the value of the border.
    """
    return _pad_constant("constant_pad2d", x, padding, constant_value)


@front("Zero_Pad2d")
def zero_pad2d(x, padding: int | Sequence[int]):
    """Pad images with zeros.

    Args:
        x: a blob of shape (N, C, H, W).
        padding: the width of the border, or four ints: left, right, top, bottom.
    """
    return _pad_constant("zero_pad2d", x, padding, 0)


def _pad_by_index(what: str, x, padding, outside):
    """Pad x with its own elements.

    `outside(k, n)` returns the k indices before and after an axis of size n.
    """
    left, right, top, bottom = _border(what, x, padding)
    for axis, before, after in ((2, top, bottom), (3, left, right)):
        n = x.shape[axis]
        parts = [outside(before, n)[0]] * (before > 0) + [positions(n)] + [outside(after, n)[1]] * (after > 0)
        if len(parts) > 1:
            x = gather(x, concat(*parts, axis=0), axis=axis)
    return x


@front("Reflection_Pad2d")
def reflection_pad2d(x, padding: int | Sequence[int]):
    """Pad images with their reflection, without repeating the edge.

    Args:
        x: a blob of shape (N, C, H, W).
        padding: the width of the border, or four ints: left, right, top, bottom.
    """
    return _pad_by_index("reflection_pad2d", x, padding, lambda k, n: (positions(k, start=k, step=-1),
                                                                       positions(k, start=n - 2, step=-1)))


@front("Replication_Pad2d")
def replication_pad2d(x, padding: int | Sequence[int]):
    """Pad images by repeating their edge.

    Args:
        x: a blob of shape (N, C, H, W).
        padding: the width of the border, or four ints: left, right, top, bottom.
    """
    return _pad_by_index("replication_pad2d", x, padding, lambda k, n: tuple(
        constant(shape=(k,), value=at, dtype=dt.int64) for at in (0, n - 1)))


@front("SamePadding")
def same_padding(x, padding: str, data_format: str, kernel_size: Sequence[int], strides: Sequence[int],
                 dilation_rate: Sequence[int]):
    """Pad with the zeros that a convolution with padding "SAME_UPPER" or "SAME_LOWER" uses.

    Args:
        x: a blob in the layout `data_format`.
        padding: "SAME_UPPER" (an odd zero goes after) or "SAME_LOWER" (an odd zero goes before).
        data_format: a layout such as "NCHW" or "NHWC".
        kernel_size: one int per spatial axis.
        strides: one int per spatial axis.
        dilation_rate: one int per spatial axis.
    """
    axes = x.ndim - 2
    if str(padding).upper() not in ("SAME_UPPER", "SAME_LOWER"):
        raise ArgumentError('same_padding: padding must be "SAME_LOWER" or "SAME_UPPER".', got=repr(padding),
                            expected='"SAME_UPPER" or "SAME_LOWER"',
                            fix='"SAME_UPPER" puts an odd zero behind')
    for name, sizes in (("kernel_size", kernel_size), ("strides", strides), ("dilation_rate", dilation_rate)):
        if (not isinstance(sizes, (list, tuple)) or len(sizes) != axes
            or not all(isinstance(n, int) for n in sizes)):
            raise CheckError(f"same_padding: {name} does not fit",
                             expected=f"{axes} ints, one for each axis of an image",
                             got=repr(sizes), fix=f"{name}={(1,) * axes}")
    first = data_format.upper().startswith("NC")
    sizes = x.shape[2:] if first else x.shape[1:-1]
    flat = conv_padding(padding.upper(), sizes, kernel_size, strides, dilation_rate, data_format)
    pairs = [tuple(flat[2 * i:2 * i + 2]) for i in range(axes)]
    return pad.__wrapped__(x, ((0, 0), (0, 0), *pairs) if first else ((0, 0), *pairs, (0, 0)))


@front("PadGrad")
def pad_grad(x, paddings: Sequence[Sequence[int]], constant_value: float = 0):
    """Return the gradient of the input of flow.pad: `x` without the border.

    Args:
        x: the gradient of the result of flow.pad.
        paddings: the paddings of that call, (before, after) for each axis.
        constant_value: has no effect.
    """
    if not isinstance(paddings, (list, tuple)) or len(paddings) != x.ndim:
        raise ArgumentError("pad_grad: paddings do not fit",
                            expected=f"{x.ndim} pairs, one for each axis of {x.shape}",
                            got=repr(paddings), fix="the paddings of the call of flow.pad")
    return slice_v2.__wrapped__(x, [(a, n - b, 1) for (a, b), n in zip(paddings, x.shape)])


__all__ = ["constant_pad2d", "pad_grad", "reflection_pad2d", "replication_pad2d", "same_padding",
           "zero_pad2d"]
