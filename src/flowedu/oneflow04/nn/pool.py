"""Pooling with the layouts, paddings, and errors of OneFlow 0.4, computed by nn.functional."""
from __future__ import annotations

from collections.abc import Callable

from flowedu.errors import ArgumentError, CheckError
from flowedu.nn.functional.pool import maxima, means
from flowedu.nn.layout import (
    FORMATS,
    channels_last,
    check_positive,
    check_rank,
    count_windows,
    to_first,
    to_last,
)
from flowedu.ops.front import front
from flowedu.ops.padding import pool_ints, pool_padding

_SUMMARIES = {"max": "Return the largest element of each window. The first of equal elements gets the "
              "gradient.", "avg": "Return the mean of each window. Padding does not count."}


def _check_maxima(what, sizes, ksize, strides, pads, counts):
    for i, (n, count) in enumerate(zip(sizes, counts)):
        if pads[2 * i] >= ksize[i] or (count - 1) * strides[i] - pads[2 * i] >= n:
            raise ArgumentError(f"{what}: a window contains only padding and has no maximum",
                                expected="pads smaller than the window", got=f"pads {pads}, ksize {ksize}",
                                fix="pad less")


def _pool(kind: str, axes: int) -> Callable:
    what, (first, other) = f"{kind}_pool{axes}d", FORMATS[axes]

    @front(f"{kind.capitalize()}Pool{axes}D", "y_0")
    def pool(input, ksize, strides, padding, data_format: str = first, ceil_mode: bool = False):
        last = channels_last(what, data_format, axes, CheckError)
        check_rank(what, "input", input, FORMATS[axes][last])
        x = to_first(input) if last else input
        ksize, strides = (pool_ints(ksize, f"{what}: ksize", axes),
                          pool_ints(strides, f"{what}: strides", axes))
        check_positive(what, ksize=ksize, strides=strides)
        pads = pool_padding(padding, x.shape[2:], ksize, strides, data_format, ceil_mode)
        counts = count_windows(what, x.shape[2:], ksize, strides, pads)
        if kind == "max":
            _check_maxima(what, x.shape[2:], ksize, strides, pads, counts)
        y = maxima(x, ksize, strides, pads)[0] if kind == "max" else means(x, ksize, strides, pads)
        return to_last(y) if last else y

    pool.__name__ = pool.__qualname__ = pool.__wrapped__.__qualname__ = what
    note = "\n\n    Note:\n        OneFlow 0.4 raises NotImplementedError.\n    " if axes == 1 else "\n    "
    pool.__doc__ = f"""{_SUMMARIES[kind]}

    Args:
        input: a blob of shape ({", ".join(first)}), or ({", ".join(other)}) with data_format "{other}".
        ksize: the size of a window, an int, or a list of one int or of one int per spatial axis.
        strides: the step between windows, as ksize.
        padding: "VALID"; "SAME", which is "SAME_LOWER"; "SAME_UPPER"; or one entry per axis of data_format.
        data_format: "{first}" or "{other}", also in lower case.
        ceil_mode: round the number of windows up. Applies only if padding has one entry per axis.{note}"""
    return pool


max_pool1d, max_pool2d, max_pool3d = _pool("max", 1), _pool("max", 2), _pool("max", 3)
avg_pool1d, avg_pool2d, avg_pool3d = _pool("avg", 1), _pool("avg", 2), _pool("avg", 3)

__all__ = ["avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d", "max_pool3d"]
