"""Pooling over one, two and three axes, made of the records of 2-d pooling: one axis is an image of height 1, three are
windows over (H, W) in every slice and then windows over D.
"""
from __future__ import annotations

import math

from flowedu.blob import dtype as dt
from flowedu.errors import ArgumentError, ShapeError
from flowedu.nn.functional.common import check_tensor, ints, reshaped, times
from flowedu.ops.define import REGISTRY
from flowedu.ops.padding import ceil_pads
from flowedu.tensor import Tensor
from flowedu.tensor import elementwise as E
from flowedu.tensor.joining import pad as _pad
from flowedu.tensor.promote import REDUCING, cast

_r = REGISTRY
_MAX, _AVG = REGISTRY["max_pool2d"], REGISTRY["avg_pool2d"]


def batched(what: str, input, n: int):
    """(input with a batch axis, whether one was added)"""
    check_tensor(what, input)
    if input.ndim not in (n + 1, n + 2):
        raise ShapeError(f"{what}: Expected {n + 1}D or {n + 2}D input, but got a {input.ndim}D input",
                         expected=f"(N, C, {', '.join('DHW'[3 - n:])}) or without N", got=str(tuple(input.shape)),
                         fix="x.unsqueeze(0) adds an axis in front")
    return (input, False) if input.ndim == n + 2 else (reshaped(input, (1, *input.shape)), True)


def _windows(what, size, kernel, strides, paddings, dilations, ceil_mode):
    """Pads (before, after) of each axis, with what ceil_mode adds behind. Raises where a window does not fit."""
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    for p, e in zip(paddings, extent):
        if p > e // 2:
            raise ArgumentError(f"{what}: pad should be at most half of effective kernel size",
                                expected=f"at most {e // 2}",
                                got=f"padding={paddings}, kernel_size={kernel}, dilation={dilations}",
                                fix="less padding, or pad the input with F.pad first")
    pads = tuple(p for q in paddings for p in (q, q))
    pads = ceil_pads(pads, size, extent, strides) if ceil_mode else pads
    out = [(n + pads[2 * i] + pads[2 * i + 1] - e) // s + 1 for i, (n, e, s) in enumerate(zip(size, extent, strides))]
    if min(out) < 1:
        raise ShapeError(f"{what}: Output size is too small: {out}", expected=f"an input of {extent} or more",
                         got=f"input {list(size)}, kernel_size={kernel}, padding={paddings}", fix="a smaller window")
    return pads


def _last_first(pads) -> list[int]:
    """As F.pad takes them: those of the last axis first."""
    return [p for i in range(len(pads) - 2, -1, -2) for p in pads[i:i + 2]]


# ---- maximum
def _max_pool(n: int):
    what = f"max_pool{n}d"

    def pool(input: Tensor, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False,
             return_indices: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        x, single = batched(what, input, n)
        kernel = ints(kernel_size, n, what, "kernel_size", 1)
        strides = kernel if stride is None or stride == () or stride == [] else ints(stride, n, what, "stride", 1)
        paddings, dilations = ints(padding, n, what, "padding"), ints(dilation, n, what, "dilation", 1)
        pads = _windows(what, x.shape[2:], kernel, strides, paddings, dilations, ceil_mode)
        carrier = REDUCING.get(x.dtype.name)
        y, index = _maxima(x if carrier is None else cast(x, carrier), kernel, strides, pads, dilations, return_indices)
        y = y if carrier is None else cast(y, x.dtype)
        if single:
            y, index = reshaped(y, tuple(y.shape[1:])), None if index is None else reshaped(index, tuple(index.shape[1:]))
        return (y, index) if return_indices else y

    pool.__name__ = pool.__qualname__ = what
    pool.__doc__ = f"""The largest element of each window; padding never wins.

    Args:
        input: (N, C, {", ".join("DHW"[3 - n:])}), also without N.
        kernel_size, stride, padding, dilation: ints, or {n} of them; stride: kernel_size unless given.
        ceil_mode: also count a last window that is only partly inside.
        return_indices: (values, places), a place being the int64 position in its flattened plane.
    """
    return pool


def _maxima(x, kernel, strides, pads, dilations, want):
    """(largest elements, their places or None)"""
    n = len(kernel)
    if any(d != 1 for d in dilations):
        return _dilated(x, kernel, strides, pads, dilations)
    if n == 2:
        y, index = _MAX.call((x,), (kernel, strides, pads))
        return y, cast(index, dt.int64) if want else None
    if n == 1:
        shape = (*x.shape[:2], 1, x.shape[2])
        y, index = _MAX.call((reshaped(x, shape),), ((1, *kernel), (1, *strides), (0, 0, *pads)))
        shape = (*y.shape[:2], y.shape[3])
        return reshaped(y, shape), cast(reshaped(index, shape), dt.int64) if want else None
    b, c, depth, height, width = x.shape
    y, index = _MAX.call((reshaped(x, (b, c * depth, height, width)),), (kernel[1:], strides[1:], pads[2:]))
    h, w = y.shape[2:]
    y, over = _MAX.call((reshaped(y, (b, c, depth, h * w)),), ((kernel[0], 1), (strides[0], 1), (*pads[:2], 0, 0)))
    shape = (b, c, y.shape[2], h, w)
    if want:
        over = cast(reshaped(over, (b, c, shape[2] * h * w)), dt.int64)       # slice * (h * w) + place in the slice
        flat = cast(reshaped(index, (b, c, depth * h * w)), dt.int64)
        inside = _r["dim_gather"](flat, over, axis=2)
        index = reshaped(_r["floordiv"](over, h * w) * (height * width) + inside, shape)
    return reshaped(y, shape), index if want else None


def _dilated(x, kernel, strides, pads, dilations):
    """All windows laid out, then the largest of each."""
    n, size = len(kernel), x.shape[2:]
    lowest = -math.inf if x.dtype.is_floating_point else -(2 ** (8 * x.dtype.bytes - 1))
    windows = _pad(x, _last_first(pads), "constant", lowest) if any(pads) else x
    for i in range(n):
        windows = _r["unfold"](windows, axis=2 + i, size=(kernel[i] - 1) * dilations[i] + 1, step=strides[i])
    rank = windows.ndim
    windows = _r["slice"](windows, start=(0,) * rank, stop=tuple(windows.shape), step=(*(1,) * (2 + n), *dilations))
    shape = tuple(windows.shape[:2 + n])
    rows = reshaped(windows, (*shape, math.prod(kernel)))
    place = cast(_r["argmax"](rows, axis=2 + n), dt.int64)
    y = reshaped(_r["dim_gather"](rows, reshaped(place, (*shape, 1)), axis=2 + n), shape)
    index = None
    for i in range(n):                                   # of each axis: where its window begins and the step inside it
        behind = math.prod(kernel[i + 1:])
        inside = _r["mod"](_r["floordiv"](place, behind), kernel[i]) * dilations[i]
        first = _r["range"](start=-pads[2 * i], step=strides[i], size=shape[2 + i], dtype=dt.int64)
        at = inside + reshaped(first, (shape[2 + i], *(1,) * (n - i - 1)))
        index = at if index is None else index * size[i] + at
    return y, index


max_pool1d, max_pool2d, max_pool3d = _max_pool(1), _max_pool(2), _max_pool(3)


# ---- mean
def _means(x, kernel, strides, pads):
    """The mean of the real elements of each window, without what `pads` stands for."""
    n = len(kernel)
    if n == 2:
        return _AVG.call((x,), (kernel, strides, pads))
    if n == 1:
        y = _AVG.call((reshaped(x, (*x.shape[:2], 1, x.shape[2])),), ((1, *kernel), (1, *strides), (0, 0, *pads)))
        return reshaped(y, (*y.shape[:2], y.shape[3]))
    b, c, depth, height, width = x.shape
    y = _AVG.call((reshaped(x, (b, c * depth, height, width)),), (kernel[1:], strides[1:], pads[2:]))
    h, w = y.shape[2:]
    y = _AVG.call((reshaped(y, (b, c, depth, h * w)),), ((kernel[0], 1), (strides[0], 1), (*pads[:2], 0, 0)))
    return reshaped(y, (b, c, y.shape[2], h, w))


def _avg_pool(n: int):
    what = f"avg_pool{n}d"

    def pool(input: Tensor, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True,
             divisor_override: int | None = None) -> Tensor:
        x, single = batched(what, input, n)
        kernel = ints(kernel_size, n, what, "kernel_size", 1)
        strides = kernel if stride is None or stride == () or stride == [] else ints(stride, n, what, "stride", 1)
        paddings = ints(padding, n, what, "padding")
        pads = _windows(what, x.shape[2:], kernel, strides, paddings, (1,) * n, ceil_mode)
        carrier = REDUCING.get(x.dtype.name)
        dtype, x = x.dtype, x if carrier is None else cast(x, carrier)
        solid = pads if divisor_override else tuple(p for q in paddings for p in (q, q)) if count_include_pad else ()
        if any(solid):                                   # zeros that count
            x = _pad(x, _last_first(solid))
            pads = tuple(p - s for p, s in zip(pads, solid))
        y = _means(x, kernel, strides, pads)
        if divisor_override:
            y = times(y, math.prod(kernel) / divisor_override)
        y = y if carrier is None else cast(y, dtype)
        return reshaped(y, tuple(y.shape[1:])) if single else y

    pool.__name__ = pool.__qualname__ = what
    pool.__doc__ = f"""The mean of each window.

    Args:
        input: (N, C, {", ".join("DHW"[3 - n:])}), also without N.
        kernel_size, stride, padding: ints, or {n} of them; stride: kernel_size unless given.
        ceil_mode: also count a last window that is only partly inside.
        count_include_pad: padding counts as zeros. divisor_override: divide sums by this instead (0 and None: do not).
    """
    return pool


avg_pool1d, avg_pool2d, avg_pool3d = _avg_pool(1), _avg_pool(2), _avg_pool(3)


# ---- to a given size
def _sizes(what, output_size, size):
    found = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * len(size)
    if len(found) != len(size) or any(o is not None and (not isinstance(o, int) or o < 0) for o in found):
        raise ArgumentError(f"{what}: output_size is not right", expected=f"an int, or {len(size)} ints or Nones",
                            got=repr(output_size), fix="output_size=1 pools everything")
    if 0 in size:
        raise ShapeError(f"{what}: Expected input to have non-zero size for non-batch dimensions", got=str(size),
                         expected="sizes of 1 or more", fix="leave empty pictures out")
    return tuple(n if o is None else o for o, n in zip(found, size))


def _spans(n: int, out: int):
    """[(first, behind the last)] of the elements that each of `out` results is made of."""
    return [(i * n // out, -(-(i + 1) * n // out)) for i in range(out)]


def _pairs(x: Tensor, axis: int, out: int):
    """(x at the first, x at the last element) that each of `out` results is made of, where they are more than the elements:
    then no result has a third."""
    i, n = _r["range"](size=out, dtype=dt.int64), x.shape[axis]
    return [_r["gather"](x, _r["floordiv"](at, out), axis=axis) for at in (i * n, (i + 1) * n - 1)]


def _adaptive_avg(n: int):
    what = f"adaptive_avg_pool{n}d"

    def pool(input: Tensor, output_size) -> Tensor:
        x, single = batched(what, input, n)
        size = tuple(x.shape[2:])
        out = _sizes(what, output_size, size)
        if all(o == 1 for o in out):
            y = times(_r["sum"].call((x,), (tuple(range(2, n + 2)), True)), 1.0 / math.prod(size))
        elif 0 not in out and all(s % o == 0 for s, o in zip(size, out)):
            kernel = tuple(s // o for s, o in zip(size, out))
            y = _means(x, kernel, kernel, (0,) * (2 * n))
        else:
            y = x
            for i, o in enumerate(out):
                if o > size[i]:
                    first, last = _pairs(y, 2 + i, o)
                    y = times(first, 0.5) + times(last, 0.5)
                elif o != size[i]:
                    parts = [times(_r["sum"](y.narrow(2 + i, a, b - a), axis=(2 + i,), keepdims=True), 1.0 / (b - a))
                             for a, b in _spans(size[i], o)]
                    y = _r["concat"](*parts, axis=2 + i) if parts else y.narrow(2 + i, 0, 0)
        return reshaped(y, tuple(y.shape[1:])) if single else y

    pool.__name__ = pool.__qualname__ = what
    pool.__doc__ = f"""Means, along the last {n} axes as many as output_size says (None: as many as there are elements)."""
    return pool


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = _adaptive_avg(1), _adaptive_avg(2), _adaptive_avg(3)


def _adaptive_max(n: int):
    what = f"adaptive_max_pool{n}d"

    def pool(input: Tensor, output_size, return_indices: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        x, single = batched(what, input, n)
        size = tuple(x.shape[2:])
        out = _sizes(what, output_size, size)
        if all(s % o == 0 for s, o in zip(size, out) if o) and 0 not in out:
            kernel = tuple(s // o for s, o in zip(size, out))
            y, index = _maxima(x, kernel, kernel, (0,) * (2 * n), (1,) * n, return_indices)
        else:
            y, index = _by_parts(x, size, out)
        if single:
            y, index = reshaped(y, tuple(y.shape[1:])), None if index is None else reshaped(index, tuple(index.shape[1:]))
        return (y, index) if return_indices else y

    pool.__name__ = pool.__qualname__ = what
    pool.__doc__ = f"""Largest elements, along the last {n} axes as many as output_size says (None: as many as there are).

    return_indices: (values, places), a place being the int64 position in its flattened plane."""
    return pool


def _by_parts(x, size, out):
    """(largest elements, places), axis by axis from the last: so of equal ones the first in memory is taken."""
    y, index = x, reshaped(_r["range"](size=math.prod(size), dtype=dt.int64), size)
    index = _r["contiguous"](_r["expand"](index, shape=(*x.shape[:2], *size)))
    for i in reversed(range(len(out))):
        axis, values, places = 2 + i, [], []
        if out[i] > size[i]:
            (a, b), (at, behind) = _pairs(y, axis, out[i]), _pairs(index, axis, out[i])
            later = E.logical_and(E.logical_not(E.ge(a, b)), E.eq(a, a))      # b is larger, or NaN and a is not
            y, index = E.where(later, b, a), E.where(later, behind, at)
            continue
        for a, b in _spans(size[i], out[i]):
            part, where = y.narrow(axis, a, b - a), index.narrow(axis, a, b - a)
            best = cast(_r["argmax"](part, axis=axis), dt.int64).unsqueeze(axis)
            values.append(_r["dim_gather"](part, best, axis=axis))
            places.append(_r["dim_gather"](where, best, axis=axis))
        y, index = _r["concat"](*values, axis=axis), _r["concat"](*places, axis=axis)
    return y, index


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = _adaptive_max(1), _adaptive_max(2), _adaptive_max(3)

__all__ = [f"{kind}_pool{n}d" for kind in ("max", "avg", "adaptive_avg", "adaptive_max") for n in (1, 2, 3)]
