"""Pooling over one, two and three axes, made of the ops of 2-D pooling.

One axis is an image of height 1. A window over (D, H, W) is a window over (H, W) in every slice, then one over D: the
largest of the largest is the largest, and a mean of means is the mean, because all of them have as many real elements.
"""
from __future__ import annotations

from collections.abc import Callable

from flowedu import ops
from flowedu.errors import ArgumentError, CheckError
from flowedu.frontend import front
from flowedu.nn.layout import FORMATS, channels_last, check_positive, check_rank, count_windows, to_first, to_last
from flowedu.ops.padding import pool_ints, pool_padding

_o = ops.REGISTRY


def _plane(op_name: str, x, ksize, strides, pads):
    """The 2-D op on x (n, c, H, W); of max_pool2d only the largest elements, not where they are."""
    y = _o[op_name](x, ksize=ksize, strides=strides, pads=pads)
    return y[0] if isinstance(y, tuple) else y


def _pool1d(op_name: str, x, ksize, strides, pads):
    n, c, width = x.shape
    y = _plane(op_name, _o["reshape"](x, shape=(n, c, 1, width)), (1, *ksize), (1, *strides), (0, 0, *pads))
    return _o["reshape"](y, shape=(n, c, y.shape[3]))


def _pool3d(op_name: str, x, ksize, strides, pads):
    n, c, depth, height, width = x.shape
    y = _plane(op_name, _o["reshape"](x, shape=(n, c * depth, height, width)), ksize[1:], strides[1:], pads[2:])
    hw = y.shape[2:]
    if ksize[0] == strides[0] == 1 and not any(pads[:2]):
        return _o["reshape"](y, shape=(n, c, depth, *hw))
    y = _o["reshape"](y, shape=(n, c, depth, hw[0] * hw[1]))
    y = _plane(op_name, y, (ksize[0], 1), (strides[0], 1), (*pads[:2], 0, 0))
    return _o["reshape"](y, shape=(n, c, y.shape[2], *hw))


def _check_maxima(what, sizes, ksize, strides, pads, counts):
    for i, (n, count) in enumerate(zip(sizes, counts)):
        if pads[2 * i] >= ksize[i] or (count - 1) * strides[i] - pads[2 * i] >= n:
            raise ArgumentError(f"{what}: a window lies wholly in the padding and has no maximum", expected="pads smaller "
                                "than the window", got=f"pads {pads}, ksize {ksize}", fix="pad less")


def _pool(kind: str, axes: int, compute: Callable, doc: str) -> Callable:
    what, layout, op_name = f"{kind}_pool{axes}d", FORMATS[axes][0], f"{kind}_pool2d"

    @front(f"{kind.capitalize()}Pool{axes}D", "y_0")
    def pool(input, ksize, strides, padding, data_format: str = layout, ceil_mode: bool = False):
        last = channels_last(what, data_format, axes, CheckError)
        check_rank(what, "input", input, FORMATS[axes][last])
        x = to_first(input) if last else input
        ksize, strides = pool_ints(ksize, f"{what}: ksize", axes), pool_ints(strides, f"{what}: strides", axes)
        check_positive(what, ksize=ksize, strides=strides)
        pads = pool_padding(padding, x.shape[2:], ksize, strides, data_format, ceil_mode)
        counts = count_windows(what, x.shape[2:], ksize, strides, pads)
        if kind == "max":
            _check_maxima(what, x.shape[2:], ksize, strides, pads, counts)
        y = compute(op_name, x, ksize, strides, pads)
        return to_last(y) if last else y

    pool.__name__ = pool.__qualname__ = pool.__wrapped__.__qualname__ = what
    pool.__doc__ = doc + """

    ksize, strides: an int, or a list of one int or of one per spatial axis. padding: "VALID", "SAME" (= "SAME_LOWER"),
    "SAME_UPPER", or one entry per axis of data_format; ceil_mode counts only with the latter. As in
    OneFlow 0.4; [FE] data_format may be in lower case.
    """
    return pool


_MAX = "Largest element of each window; padding never wins. The first of equal ones gets the gradient."
_AVG = "Mean of each window's real elements; padding does not count."
_ONE = " Of (N, C, W), or (N, W, C) with data_format \"NWC\". [FE] OneFlow 0.4 raises NotImplementedError."
_TWO = " Of (N, C, H, W), or (N, H, W, C) with data_format \"NHWC\"."
_THREE = " Of (N, C, D, H, W), or (N, D, H, W, C) with data_format \"NDHWC\"."
max_pool1d, avg_pool1d = _pool("max", 1, _pool1d, _MAX + _ONE), _pool("avg", 1, _pool1d, _AVG + _ONE)
max_pool2d, avg_pool2d = _pool("max", 2, _plane, _MAX + _TWO), _pool("avg", 2, _plane, _AVG + _TWO)
max_pool3d, avg_pool3d = _pool("max", 3, _pool3d, _MAX + _THREE), _pool("avg", 3, _pool3d, _AVG + _THREE)

__all__ = ["avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d", "max_pool3d"]
