"""Pooling over one, two, and three axes, built from the ops of 2-d pooling.

A 1-d input is treated as an image of height 1. In 3-d pooling, windows over (H, W) in every slice are pooled
first, and then windows over D.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from flowedu.core.ops.define import Op
from flowedu.core.ops.elementwise import floordiv, mod
from flowedu.core.ops.promote import REDUCING, cast
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, ShapeError
from flowedu.nn.functional.common import Ints, ValueT, check_tensor, ints, reshaped, times
from flowedu.nn.functional.windows import windows_of
from flowedu.ops.argmax import argmax
from flowedu.ops.order import range as range_op
from flowedu.ops.padding import ceil_pads
from flowedu.ops.pool import avg_pool2d as avg_pool2d_op
from flowedu.ops.pool import max_pool2d as max_pool2d_op
from flowedu.ops.scatter import dim_gather
from flowedu.tensor import Tensor
from flowedu.tensor.devices.conversion import use_device_of
from flowedu.tensor.shapes.join_and_pad import pad as _pad


def batched(what: str, input: Tensor, n: int, no_channels: bool = False) -> tuple[Tensor, bool]:
    """Return (input with a batch axis, True if one was added). `no_channels` allows C = 0."""
    check_tensor(what, input)
    if input.ndim not in (n + 1, n + 2):
        raise ShapeError(f"{what}: Expected {n + 1}D or {n + 2}D input, but got a {input.ndim}D input",
                         expected=f"(N, C, {', '.join('DHW'[3 - n:])}) or without N",
                         got=str(tuple(input.shape)), fix="x.unsqueeze(0) adds an axis in front")
    if not input.shape[-n - 1] and not no_channels:
        raise ShapeError(f"{what}: Expected input to have non-zero size for non-batch dimensions",
                         expected="C of 1 or more", got=str(tuple(input.shape)),
                         fix="check that the input is not empty")
    return (input, False) if input.ndim == n + 2 else (reshaped(input, (1, *input.shape)), True)


def _windows(what: str, size: Ints, kernel: Ints, strides: Ints, paddings: Ints, dilations: Ints,
             ceil_mode: bool) -> Ints:
    """Return the pads (before, after) of each axis, including those of ceil_mode, or raise if no window fits.
    """
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    for p, e in zip(paddings, extent):
        if p > e // 2:
            raise ArgumentError(f"{what}: pad should be at most half of effective kernel size",
                                expected=f"at most {e // 2}",
                                got=f"padding={paddings}, kernel_size={kernel}, dilation={dilations}",
                                fix="less padding, or pad the input with F.pad first")
    pads = tuple(p for q in paddings for p in (q, q))
    pads = ceil_pads(pads, size, extent, strides) if ceil_mode else pads
    out = [(n + pads[2 * i] + pads[2 * i + 1] - e) // s + 1
           for i, (n, e, s) in enumerate(zip(size, extent, strides))]
    if min(out) < 1:
        raise ShapeError(f"{what}: Output size is too small: {out}", expected=f"an input of {extent} or more",
                         got=f"input {list(size)}, kernel_size={kernel}, padding={paddings}",
                         fix="a smaller window")
    return pads


def _last_first(pads: Ints) -> list[int]:
    """Return the pads in the order of F.pad, the last axis first."""
    return [p for i in range(len(pads) - 2, -1, -2) for p in pads[i:i + 2]]


# ---- maximum
def _max_pool(n: int) -> Callable[..., Any]:
    what = f"max_pool{n}d"

    def pool(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
             padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, *, ceil_mode: bool = False,
             return_indices: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        x, single = batched(what, input, n)
        kernel = ints(kernel_size, n, what, "kernel_size", 1)
        strides = (kernel if stride is None or stride == () or stride == []
                   else ints(stride, n, what, "stride", 1))
        paddings, dilations = ints(padding, n, what, "padding"), ints(dilation, n, what, "dilation", 1)
        pads = _windows(what, x.shape[2:], kernel, strides, paddings, dilations, ceil_mode)
        carrier = REDUCING.get(x.dtype.name)
        wide = x if carrier is None else cast(x, carrier)
        y, index = maxima(wide, kernel, strides, pads, return_indices) if dilations == (1,) * n else \
            _dilated(wide, kernel, strides, pads, dilations)
        y = y if carrier is None else cast(y, x.dtype)
        if single:
            y, index = (reshaped(y, tuple(y.shape[1:])), None if index is None
                        else reshaped(index, tuple(index.shape[1:])))
        return (y, index) if return_indices else y

    pool.__name__ = pool.__qualname__ = what
    pool.__doc__ = f"""Return the maximum of each window; padded elements count as -inf.

    Args:
        input: (N, C, {", ".join("DHW"[3 - n:])}) or without N.
        kernel_size: size of the windows, an int or one per axis.
        stride: distance between windows, an int or one per axis; default: kernel_size.
        padding: elements added on both sides, an int or one per axis.
        dilation: distance between the elements of a window, an int or one per axis.
        ceil_mode: include last windows that are only partly inside the input.
        return_indices: return (values, positions), where positions are int64 indices into the flattened
            spatial axes.
    """
    return pool


def maxima(x: ValueT, kernel: Ints, strides: Ints, pads: Ints,
           places: bool = False) -> tuple[ValueT, Any]:
    """Return the maxima of the windows of x (n, c, one to three axes), and their positions.

    The positions are None if `places` is False.
    """
    y, inside, over = _pooled(max_pool2d_op, x, kernel, strides, pads, places)
    if not places:
        return y, None
    if over is None:
        return y, cast(reshaped(inside, tuple(y.shape)), dt.int64)
    b, c, depth = x.shape[:3]
    height, width = x.shape[3:]
    h, w = y.shape[3:]
    # Slice * (h * w) + position in the slice.
    over = cast(reshaped(over, (b, c, y.shape[2] * h * w)), dt.int64)
    flat = cast(reshaped(inside, (b, c, depth * h * w)), dt.int64)
    inside = dim_gather(flat, over, axis=2)
    return y, reshaped(floordiv(over, h * w) * (height * width) + inside, tuple(y.shape))


def means(x: ValueT, kernel: Ints, strides: Ints, pads: Ints) -> ValueT:
    """Return the mean of each window of x (n, c, one to three axes), without the padding."""
    return _pooled(avg_pool2d_op, x, kernel, strides, pads, False)[0]


def _pooled(op: Op, x: ValueT, kernel: Ints, strides: Ints, pads: Ints,
            places: bool) -> tuple[ValueT, Any, Any]:
    """Apply 2-d pooling along one to three axes; return (result, planes' other results, slices').

    The maximum of maxima is the maximum, and a mean of means is the mean because all have the same number of
    real elements.
    """
    if len(kernel) == 2:
        return *_plane(op, x, kernel, strides, pads), None
    b, c, *size = x.shape
    if len(kernel) == 1:
        y, index = _plane(op, reshaped(x, (b, c, 1, *size)), (1, *kernel), (1, *strides), (0, 0, *pads))
        return reshaped(y, (b, c, y.shape[3])), index, None
    depth, height, width = size
    y, index = _plane(op, reshaped(x, (b, c * depth, height, width)), kernel[1:], strides[1:], pads[2:])
    h, w = y.shape[2:]
    if kernel[0] == strides[0] == 1 and not any(pads[:2]) and not places:
        return reshaped(y, (b, c, depth, h, w)), None, None
    y, over = _plane(op, reshaped(y, (b, c, depth, h * w)), (kernel[0], 1), (strides[0], 1),
                     (*pads[:2], 0, 0))
    return reshaped(y, (b, c, y.shape[2], h, w)), index, over


def _plane(op: Op, x: ValueT, kernel: Ints, strides: Ints, pads: Ints) -> tuple[ValueT, Any]:
    y = op.call((x,), (kernel, strides, pads))
    return y if op is max_pool2d_op else (y, None)


def _dilated(x: Tensor, kernel: Ints, strides: Ints, pads: Ints, dilations: Ints) -> tuple[Tensor, Tensor]:
    """Lay out all windows and return the maximum of each."""
    n, size = len(kernel), x.shape[2:]
    lowest = -math.inf if x.dtype.is_floating_point else -(2 ** (8 * x.dtype.bytes - 1))
    padded = _pad(x, _last_first(pads), "constant", lowest) if any(pads) else x
    windows = windows_of(padded, kernel, strides, dilations)
    shape = tuple(windows.shape[:2 + n])
    rows = reshaped(windows, (*shape, math.prod(kernel)))
    place = cast(argmax(rows, axis=2 + n), dt.int64)
    y = reshaped(dim_gather(rows, reshaped(place, (*shape, 1)), axis=2 + n), shape)
    index: Any = None
    # Of each axis: where its window begins and the step inside it.
    for i in range(n):
        behind = math.prod(kernel[i + 1:])
        inside = mod(floordiv(place, behind), kernel[i]) * dilations[i]
        with use_device_of(padded):
            first = range_op(start=-pads[2 * i], step=strides[i], size=shape[2 + i], dtype=dt.int64)
        at = inside + reshaped(first, (shape[2 + i], *(1,) * (n - i - 1)))
        index = at if index is None else index * size[i] + at
    return y, index


max_pool1d, max_pool2d, max_pool3d = _max_pool(1), _max_pool(2), _max_pool(3)


# ---- mean
def _avg_pool(n: int) -> Callable[..., Tensor]:
    what = f"avg_pool{n}d"

    def pool(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
             padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
             divisor_override: int | None = None) -> Tensor:
        x, single = batched(what, input, n)
        kernel = ints(kernel_size, n, what, "kernel_size", 1)
        strides = (kernel if stride is None or stride == () or stride == []
                   else ints(stride, n, what, "stride", 1))
        paddings = ints(padding, n, what, "padding")
        pads = _windows(what, x.shape[2:], kernel, strides, paddings, (1,) * n, ceil_mode)
        carrier = REDUCING.get(x.dtype.name)
        dtype, x = x.dtype, x if carrier is None else cast(x, carrier)
        solid = tuple(p for q in paddings for p in (q, q)) if count_include_pad else ()
        if divisor_override:
            solid = pads
        if any(solid):                                   # zeros that count
            x = _pad(x, _last_first(solid))
            pads = tuple(p - s for p, s in zip(pads, solid))
        y = means(x, kernel, strides, pads)
        if divisor_override:
            y = times(y, math.prod(kernel) / divisor_override)
        y = y if carrier is None else cast(y, dtype)
        return reshaped(y, tuple(y.shape[1:])) if single else y

    pool.__name__ = pool.__qualname__ = what
    pool.__doc__ = f"""Return the mean of each window.

    Args:
        input: (N, C, {", ".join("DHW"[3 - n:])}) or without N.
        kernel_size: size of the windows, an int or one per axis.
        stride: distance between windows, an int or one per axis; default: kernel_size.
        padding: zeros added on both sides, an int or one per axis.
        ceil_mode: include last windows that are only partly inside the input.
        count_include_pad: include the padding zeros in the mean.
        divisor_override: divisor of each sum. 0 or None: the number of averaged elements.
    """
    return pool


avg_pool1d, avg_pool2d, avg_pool3d = _avg_pool(1), _avg_pool(2), _avg_pool(3)


__all__ = ["avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d", "max_pool3d"]
