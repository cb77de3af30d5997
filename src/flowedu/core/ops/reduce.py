"""Reductions: sum, max, min, and prod over a set of axes.

`axis` is a tuple of axes counted from the front; the empty tuple reduces nothing. With keepdims, the reduced
axes stay with size 1.
"""
from __future__ import annotations

from math import prod as product

import numpy as np

from flowedu.core.ops import axes
from flowedu.core.ops.concat import concat, slice
from flowedu.core.ops.define import define
from flowedu.core.ops.elementwise import equal
from flowedu.core.ops.record import Kernel, Laws, Meaning, Split
from flowedu.core.ops.reverse import vjp
from flowedu.core.ops.view import cast, expand, reshape, transpose
from flowedu.errors import ArgumentError, ShapeError


def _keepdims_shape(shape, axis):
    """Return the shape with 1 for every reduced axis."""
    return tuple(1 if i in axis else n for i, n in enumerate(shape))


def _shape(x, axis, keepdims):
    return _keepdims_shape(x.shape, axis) if keepdims else tuple(n for i, n in enumerate(x.shape) if i not in axis)


def terms(rank, axis, keepdims, whole):
    """Return "ab->a", or "aB->a" if the reduced axis must stay whole."""
    left = axes.same(rank, axis if whole else ())
    return left + "->" + "".join("1" if i in axis else c for i, c in enumerate(left) if keepdims or i not in axis)


def _check_axes(name):
    def check(x, axis):
        if not isinstance(axis, tuple) or any(not isinstance(a, int) for a in axis):
            raise ArgumentError(f"{name}: axis is not a tuple of integers", expected="axis=(0,) or axis=(0, 2)",
                                got=f"axis={axis!r}", fix=f"write axis=({axis},)" if isinstance(axis, int) else "")
        if any(not 0 <= a < x.ndim for a in axis):
            raise ShapeError(f"{name}: axis is out of range", expected=f"axes in [0, {x.ndim - 1}] of x {x.shape}",
                             got=f"axis={axis}", fix="count axes from the front: the last one is x.ndim - 1")
        if len(set(axis)) != len(axis):
            raise ArgumentError(f"{name}: an axis is given twice", got=f"axis={axis}", fix="name each axis once")
        if name in ("max", "min") and any(x.shape[a] == 0 for a in axis) and product(_shape(x, axis, True)):
            raise ShapeError(f"{name}: there is no {name} of zero elements", got=f"x {x.shape}, axis={axis}",
                             expected="reduced axes of size 1 or more", fix="check that the input is not empty")
    return check


def _define_reduction(name, numpy, grad, whole=True, linear=(), fold=""):
    def ref(x, axis, keepdims):
        empty = fold and not x.size                # NumPy has no max of empty arrays
        y = np.zeros(_shape(x, axis, keepdims)) if empty else numpy(x, axis=axis, keepdims=keepdims)
        return y.astype(x.dtype)

    return define(
        f"{name}(x, *, axis, keepdims=False) -> y",
        Meaning(lambda x, axis, keepdims: terms(x.ndim, axis, keepdims, whole), ref, shape=_shape, check=_check_axes(name)),
        Kernel(name, pack=lambda x, axis: (tuple(i in axis for i in range(x.ndim)), ())), Split(linear=linear, fold=fold),
        Laws([dict(shapes=[(6, 12)], axis=(0,)), dict(shapes=[(6, 12)], axis=(1,), keepdims=True),
              dict(shapes=[(6, 6, 2, 3)], axis=(0, 2, 3)), dict(shapes=[(6, 2, 6)], axis=(1,)),
              dict(shapes=[(2, 3, 2)], axis=(0, 1, 2))], float_only=False),
        grad={"x": grad})


def _extremum_grad(dy, x, y, axis):
    """Return the gradient; equal extrema share it equally."""
    keep = _keepdims_shape(x.shape, axis)
    mask = cast(equal(x, reshape(y, shape=keep)), dtype=x.dtype)
    return mask * (reshape(dy, shape=keep) / sum(mask, axis=axis, keepdims=True))


def _tree_product(x):
    """Return the product over the last axis as a tree of products, whose gradient has no division."""
    lead = (0,) * (x.ndim - 1)

    def part(a, b):
        return slice(x, start=(*lead, a), stop=(*x.shape[:-1], b), step=(1,) * x.ndim)

    while x.shape[-1] > 1:
        n, half = x.shape[-1], x.shape[-1] // 2
        y = part(0, half) * part(half, 2 * half)
        x = concat(y, part(n - 1, n), axis=x.ndim - 1) if n % 2 else y
    return x


def _prod_grad(dy, x, axis):
    if product(x.shape) == 0:
        return x * 0
    keep = tuple(i for i in range(x.ndim) if i not in axis)
    shape = tuple(x.shape[i] for i in keep)

    def f(x):
        rows = reshape(transpose(x, perm=(*keep, *axis)), shape=(*shape, product(x.shape[i] for i in axis)))
        return reshape(_tree_product(rows), shape=shape)

    return vjp(f, (x,), (reshape(dy, shape=shape),))[0]


def _sum_grad(dy, x_shape, axis):
    if 0 != dy.ndim != len(x_shape) and axis != tuple(range(len(axis))):     # broadcasting restores leading axes
        dy = reshape(dy, shape=_keepdims_shape(x_shape, axis))
    return expand.call((dy,), (x_shape,))


sum = _define_reduction("sum", np.sum, _sum_grad, whole=False, linear=["x"])
max = _define_reduction("max", np.max, _extremum_grad, whole=False, fold="max")
min = _define_reduction("min", np.min, _extremum_grad, whole=False, fold="min")
prod = _define_reduction("prod", np.prod, _prod_grad)
