"""Reductions: sum, max, min, and prod over a set of axes.

`axis` is a tuple of axes counted from the front. With keepdims, reduced axes are kept with size 1.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod as product

import numpy as np

from flowedu.core.ops import axes
from flowedu.core.ops.concat import concat, slice
from flowedu.core.ops.define import Op, define
from flowedu.core.ops.elementwise import equal
from flowedu.core.ops.record import Kernel, Laws, Meaning, Operand, Split
from flowedu.core.ops.reverse import vjp
from flowedu.core.ops.view import cast, expand, reshape, transpose
from flowedu.core.values.spec import Shape, Spec
from flowedu.errors import ops as errors


def _keepdims_shape(shape: Shape, axis: Shape) -> Shape:
    """Return the shape with 1 for every reduced axis."""
    return tuple(1 if i in axis else n for i, n in enumerate(shape))


def _shape(x: Spec | np.ndarray, axis: Shape, keepdims: bool) -> Shape:
    if keepdims:
        return _keepdims_shape(x.shape, axis)
    return tuple(n for i, n in enumerate(x.shape) if i not in axis)


def terms(rank: int, axis: Shape, keepdims: bool, whole: bool) -> str:
    """Return "ab->a", or "aB->a" if the reduced axis must stay whole."""
    left = axes.same(rank, axis if whole else ())
    right = ["1" if i in axis else c for i, c in enumerate(left) if keepdims or i not in axis]
    return left + "->" + "".join(right)


def _check_axes(name: str) -> Callable[[Spec, Shape], None]:
    def check(x: Spec, axis: Shape) -> None:
        if not isinstance(axis, tuple) or any(not isinstance(a, int) for a in axis):
            raise errors.not_axes(name, axis)
        if any(not 0 <= a < x.ndim for a in axis):
            raise errors.axis_out_of_range(name, x, axis)
        if len(set(axis)) != len(axis):
            raise errors.repeated_axis(name, axis)
        empty = any(x.shape[a] == 0 for a in axis)
        if empty and name in ("max", "min") and product(_shape(x, axis, True)) > 0:
            raise errors.empty_reduction(name, x.shape, axis)
    return check


def _define_reduction(name: str, numpy: Callable, grad: Callable, whole: bool = True,
                      linear: Sequence[str] = (), fold: str = "") -> Op:
    def ref(x: np.ndarray, axis: Shape, keepdims: bool) -> np.ndarray:
        empty = fold and not x.size                # NumPy has no max of empty arrays
        y = np.zeros(_shape(x, axis, keepdims)) if empty else numpy(x, axis=axis, keepdims=keepdims)
        return y.astype(x.dtype)

    return define(
        f"{name}(x, *, axis, keepdims=False) -> y",
        Meaning(lambda x, axis, keepdims: terms(x.ndim, axis, keepdims, whole), ref, shape=_shape,
                check=_check_axes(name)),
        Kernel(name, pack=lambda x, axis: (tuple(i in axis for i in range(x.ndim)), ())),
        Split(linear=linear, fold=fold),
        Laws([dict(shapes=[(6, 12)], axis=(0,)), dict(shapes=[(6, 12)], axis=(1,), keepdims=True),
              dict(shapes=[(6, 6, 2, 3)], axis=(0, 2, 3)), dict(shapes=[(6, 2, 6)], axis=(1,)),
              dict(shapes=[(2, 3, 2)], axis=(0, 1, 2))], float_only=False), grad={"x": grad})


def _extremum_grad(dy: Operand, x: Operand, y: Operand, axis: Shape) -> Operand:
    """Return the gradient; equal extrema share it equally."""
    keep = _keepdims_shape(x.shape, axis)
    mask = cast(equal(x, reshape(y, shape=keep)), dtype=x.dtype)
    return mask * (reshape(dy, shape=keep) / sum(mask, axis=axis, keepdims=True))


def _tree_product(x: Operand) -> Operand:
    """Compute the product over the last axis as a tree, so that its gradient needs no division."""
    lead = (0,) * (x.ndim - 1)

    def part(a: int, b: int) -> Operand:
        return slice(x, start=(*lead, a), stop=(*x.shape[:-1], b), step=(1,) * x.ndim)

    while x.shape[-1] > 1:
        n, half = x.shape[-1], x.shape[-1] // 2
        y = part(0, half) * part(half, 2 * half)
        x = concat(y, part(n - 1, n), axis=x.ndim - 1) if n % 2 else y
    return x


def _prod_grad(dy: Operand, x: Operand, axis: Shape) -> Operand:
    if product(x.shape) == 0:
        return x * 0
    keep = tuple(i for i in range(x.ndim) if i not in axis)
    shape = tuple(x.shape[i] for i in keep)

    def f(x: Operand) -> Operand:
        rows = reshape(transpose(x, perm=(*keep, *axis)),
                       shape=(*shape, product(x.shape[i] for i in axis)))
        return reshape(_tree_product(rows), shape=shape)

    return vjp(f, (x,), (reshape(dy, shape=shape),))[0]


def _sum_grad(dy: Operand, x_shape: Shape, axis: Shape) -> Operand:
    if 0 != dy.ndim != len(x_shape) and axis != tuple(range(len(axis))):  # else dy broadcasts
        dy = reshape(dy, shape=_keepdims_shape(x_shape, axis))
    return expand.call((dy,), (x_shape,))


sum = _define_reduction("sum", np.sum, _sum_grad, whole=False, linear=["x"])
max = _define_reduction("max", np.max, _extremum_grad, whole=False, fold="max")
min = _define_reduction("min", np.min, _extremum_grad, whole=False, fold="min")
prod = _define_reduction("prod", np.prod, _prod_grad)
