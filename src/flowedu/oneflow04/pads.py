"""Images with a border: flow.zero_pad2d and its family, for NCHW, flow.same_padding, and what flow.pad's gradient is."""
from __future__ import annotations

from collections.abc import Sequence

from flowedu import ops
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, CheckError, ShapeError
from flowedu.oneflow04.matrix_ops import positions
from flowedu.oneflow04.shape_ops import pad, slice_v2
from flowedu.ops.front import front
from flowedu.ops.padding import conv_padding

_o = ops.REGISTRY


def _border(what: str, x, padding) -> tuple[int, int, int, int]:
    """(left, right, top, bottom)."""
    if x.ndim != 4:
        raise ShapeError(f"{what}: x is no batch of images", expected="(N, C, H, W)", got=str(x.shape),
                         fix="flow.pad pads any axis")
    sides = (padding,) * 4 if isinstance(padding, int) else tuple(padding) if isinstance(padding, (list, tuple)) else ()
    h, w = x.shape[2:]
    if len(sides) != 4 or not all(isinstance(n, int) and 0 <= n < size for n, size in zip(sides, (w, w, h, h))):
        raise CheckError(f"{what}: padding does not fit", expected=f"an int, or four: left, right below {w}, top, bottom "
                         f"below {h}", got=repr(padding), fix=f"{what}(x, [1, 1, 2, 2])")
    return sides


def _filled(what: str, x, padding, value):
    left, right, top, bottom = _border(what, x, padding)
    return pad.__wrapped__(x, ((0, 0), (0, 0), (top, bottom), (left, right)), value)


@front("Constant_Pad2d")
def constant_pad2d(x, padding: int | Sequence[int], constant_value: float = 0):
    """x (N, C, H, W) with a border of one value. padding: how wide; or four ints: left, right, top, bottom."""
    return _filled("constant_pad2d", x, padding, constant_value)


@front("Zero_Pad2d")
def zero_pad2d(x, padding: int | Sequence[int]):
    """constant_pad2d with zeros."""
    return _filled("zero_pad2d", x, padding, 0)


def _bordered(what: str, x, padding, outside):
    """x with a border of its own elements. outside(k, n): the places along an axis of n that lie k before it, and after."""
    left, right, top, bottom = _border(what, x, padding)
    for axis, before, after in ((2, top, bottom), (3, left, right)):
        n = x.shape[axis]
        parts = [outside(before, n)[0]] * (before > 0) + [positions(n)] + [outside(after, n)[1]] * (after > 0)
        if len(parts) > 1:
            x = _o["gather"](x, _o["concat"](*parts, axis=0), axis=axis)
    return x


@front("Reflection_Pad2d")
def reflection_pad2d(x, padding: int | Sequence[int]):
    """x (N, C, H, W) with a border in which it is mirrored, its edge not repeated. padding: as for constant_pad2d."""
    return _bordered("reflection_pad2d", x, padding, lambda k, n: (positions(k, start=k, step=-1),
                                                                   positions(k, start=n - 2, step=-1)))


@front("Replication_Pad2d")
def replication_pad2d(x, padding: int | Sequence[int]):
    """x (N, C, H, W) with a border that repeats its edge. padding: as for constant_pad2d."""
    return _bordered("replication_pad2d", x, padding, lambda k, n: tuple(
        _o["constant"](shape=(k,), value=at, dtype=dt.int64) for at in (0, n - 1)))


@front("SamePadding")
def same_padding(x, padding: str, data_format: str, kernel_size: Sequence[int], strides: Sequence[int],
                 dilation_rate: Sequence[int]):
    """x with the border of zeros that a convolution with padding "SAME_UPPER" or "SAME_LOWER" sees."""
    axes = x.ndim - 2
    if str(padding).upper() not in ("SAME_UPPER", "SAME_LOWER"):
        raise ArgumentError('same_padding: padding must be "SAME_LOWER" or "SAME_UPPER".', got=repr(padding),
                            expected='"SAME_UPPER" or "SAME_LOWER"', fix='"SAME_UPPER" puts an odd zero behind')
    for name, sizes in (("kernel_size", kernel_size), ("strides", strides), ("dilation_rate", dilation_rate)):
        if not isinstance(sizes, (list, tuple)) or len(sizes) != axes or not all(isinstance(n, int) for n in sizes):
            raise CheckError(f"same_padding: {name} does not fit", expected=f"{axes} ints, one for each axis of an image",
                             got=repr(sizes), fix=f"{name}={(1,) * axes}")
    first = data_format.upper().startswith("NC")
    sizes = x.shape[2:] if first else x.shape[1:-1]
    flat = conv_padding(padding.upper(), sizes, kernel_size, strides, dilation_rate, data_format)
    pairs = [tuple(flat[2 * i:2 * i + 2]) for i in range(axes)]
    return pad.__wrapped__(x, ((0, 0), (0, 0), *pairs) if first else ((0, 0), *pairs, (0, 0)))


@front("PadGrad")
def pad_grad(x, paddings: Sequence[Sequence[int]], constant_value: float = 0):
    """The gradient of flow.pad's input, of that of its result: x without the border. constant_value changes nothing."""
    if not isinstance(paddings, (list, tuple)) or len(paddings) != x.ndim:
        raise ArgumentError("pad_grad: paddings do not fit", expected=f"{x.ndim} pairs, one for each axis of {x.shape}",
                            got=repr(paddings), fix="the paddings of the call of flow.pad")
    return slice_v2.__wrapped__(x, [(a, n - b, 1) for (a, b), n in zip(paddings, x.shape)])


__all__ = ["constant_pad2d", "pad_grad", "reflection_pad2d", "replication_pad2d", "same_padding", "zero_pad2d"]
