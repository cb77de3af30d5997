"""Views that OneFlow 0.4 does not have: diagonals, overlapping windows, and arbitrary strides."""
from __future__ import annotations

import builtins
from math import prod

import numpy as np

from flowedu.core.ops import axes
from flowedu.core.ops.concat import slice_grad
from flowedu.core.ops.define import define
from flowedu.core.ops.elementwise import add
from flowedu.core.ops.record import Laws, Meaning, Split, View
from flowedu.core.ops.view import reshape, transpose
from flowedu.core.values.dtype import int64
from flowedu.core.values.spec import Spec, row_major
from flowedu.errors import ArgumentError, ShapeError
from flowedu.ops.index import gather_grad
from flowedu.ops.order import range
from flowedu.ops.types import AnyTensor, Ints, Shape


def _diagonal_size(x: Spec, offset: int, axis1: int, axis2: int) -> int:
    return max(min(x.shape[axis1] - max(-offset, 0), x.shape[axis2] - max(offset, 0)), 0)


def _other_axes(rank: int, axis1: int, axis2: int) -> Ints:
    return tuple(i for i in builtins.range(rank) if i not in (axis1, axis2))


def _diagonal_axes(x: Spec, axis1: int, axis2: int) -> str:
    left = axes.same(x.ndim, [axis1, axis2])
    return left + "->" + "".join(left[i] for i in _other_axes(x.ndim, axis1, axis2)) + "K"


def _check_diagonal(x: Spec, axis1: int, axis2: int) -> None:
    if not (0 <= axis1 < x.ndim and 0 <= axis2 < x.ndim) or axis1 == axis2:
        raise ShapeError("diagonal: the axes do not fit", expected=f"two different axes of x {x.shape}",
                         got=f"{axis1} and {axis2}", fix="two different axes, counted from the front")


def _diagonal_view(x: Spec, strides: tuple, offset: int, axis1: int, axis2: int,
                   out: Spec) -> tuple[Ints, int]:
    start = max(-offset, 0) * strides[axis1] + max(offset, 0) * strides[axis2]
    return (*[strides[i] for i in _other_axes(x.ndim, axis1, axis2)], strides[axis1] + strides[axis2]), \
        start if out.size else 0


def _diagonal_grad(dy: AnyTensor, x_shape: Shape, offset: int, axis1: int, axis2: int) -> AnyTensor:
    """Return zeros with dy on the diagonal.

    A matrix (n, m) is treated as a row, in which the diagonal steps by m + 1.
    """
    n, m, k = x_shape[axis1], x_shape[axis2], dy.shape[-1]
    lead = dy.ndim - 1
    start = max(-offset, 0) * m + max(offset, 0) if k else 0
    rows = slice_grad(dy, shape=(*dy.shape[:-1], n * m), start=(*(0,) * lead, start),
                      step=(*(1,) * lead, m + 1),
                      stop=(*dy.shape[:-1], start + (k - 1) * (m + 1) + 1 if k else start))
    y = reshape(rows, shape=(*dy.shape[:-1], n, m))
    order = (*_other_axes(len(x_shape), axis1, axis2), axis1, axis2)
    return transpose(y, perm=tuple(order.index(i) for i in builtins.range(len(x_shape))))


diagonal = define(
    "diagonal(x, *, offset=0, axis1=0, axis2=1) -> y",
    Meaning(_diagonal_axes, lambda x, offset, axis1, axis2: np.diagonal(x, offset, axis1, axis2).copy(),
            shape=lambda x, offset, axis1, axis2: (*[x.shape[i] for i in _other_axes(x.ndim, axis1, axis2)],
                                                   _diagonal_size(x, offset, axis1, axis2)),
            check=_check_diagonal),
    View(_diagonal_view), Split(linear=["x"]),
    Laws([dict(shapes=[(6, 5)]), dict(shapes=[(6, 4, 5)], offset=-1, axis1=1, axis2=2),
          dict(shapes=[(5, 6, 4)], offset=2, axis1=2, axis2=0), dict(shapes=[(3, 4)], offset=5)],
         float_only=False),
    grad={"x": _diagonal_grad})


def _check_unfold(x: Spec, axis: int, size: int, step: int) -> None:
    if not 0 <= axis < x.ndim or not 0 <= size <= x.shape[axis] or step < 1:
        raise ArgumentError("unfold: the windows do not fit",
                            expected="0 <= size <= the axis, step of 1 or more",
                            got=f"axis={axis}, size={size}, step={step} of x {x.shape}",
                            fix="smaller windows")


def _unfold_axes(x: Spec, axis: int) -> str:
    left = axes.same(x.ndim, [axis])
    return left + "->" + left[:axis] + "K" + left[axis + 1:] + "H"


def _unfold_shape(x: Spec, axis: int, size: int, step: int) -> Shape:
    return (*x.shape[:axis], (x.shape[axis] - size) // step + 1, *x.shape[axis + 1:], size)


def _window_places(windows: int, size: int, step: int) -> AnyTensor:
    """(windows, size): which element of the axis each place of each window is."""
    first = reshape(range(size=windows, step=step, dtype=int64), shape=(windows, 1))
    return add(first, range(size=size, dtype=int64))


def _unfold_grad(dy: AnyTensor, x_shape: Shape, axis: int, size: int, step: int) -> AnyTensor:
    last = dy.ndim - 1
    perm = (*builtins.range(axis + 1), last, *builtins.range(axis + 1, last))
    return gather_grad(transpose(dy, perm=perm), _window_places(dy.shape[axis], size, step), axis=axis,
                       size=x_shape[axis])


unfold = define(
    "unfold(x, *, axis, size, step) -> y",
    Meaning(_unfold_axes,
            lambda x, axis, size, step: np.lib.stride_tricks.sliding_window_view(x, size, axis)[
                (np.s_[:],) * axis + (np.s_[::step],)].copy(), shape=_unfold_shape, check=_check_unfold),
    View(lambda strides, axis, step: ((*strides[:axis], strides[axis] * step, *strides[axis + 1:],
                                       strides[axis]), 0)),
    Split(linear=["x"]),
    Laws([dict(shapes=[(6, 12)], axis=1, size=4, step=3), dict(shapes=[(12, 6)], axis=0, size=3, step=1),
          dict(shapes=[(7,)], axis=0, size=7, step=2)], float_only=False),
    grad={"x": _unfold_grad})


def _check_strided(x: Spec, shape: Shape, strides: Ints, offset: int) -> None:
    steps = [(n - 1) * s for n, s in zip(shape, strides)]
    first = offset + sum(s for s in steps if s < 0)
    last = offset + sum(s for s in steps if s > 0)
    if len(shape) != len(strides) or any(n < 0 for n in shape) or any(s < 0 for s in strides):
        raise ArgumentError("as_strided: size and stride do not fit",
                            expected="as many strides as sizes, none below 0",
                            got=f"size={tuple(shape)}, stride={tuple(strides)}",
                            fix="one stride for each size")
    if prod(shape) and not 0 <= first <= last < x.size:
        raise ShapeError("as_strided: it would look outside the tensor", expected=f"places in [0, {x.size})",
                         got=f"{first} to {last}", fix="smaller sizes, strides or storage_offset")


def _places(shape: Shape, strides: Ints, offset: int) -> AnyTensor:
    """Return the position in memory of every element, int64, of shape (number of elements,)."""
    total = range(start=offset, size=1, dtype=int64)
    for n, s in zip(shape, strides):
        total = reshape(add(reshape(total, shape=(*total.shape, 1)), range(size=n, step=s, dtype=int64)),
                        shape=(total.shape[0] * n,))
    return total


def _strided_view(x: Spec, strides: Ints, size: Shape, stride: Ints, offset: int) -> tuple[Ints, int] | None:
    return (stride, offset) if tuple(strides) == row_major(x.shape) else None


as_strided = define(
    "as_strided(x, *, size, stride, offset=0) -> y",
    Meaning(lambda x, size: (lambda s: f"{s[:x.ndim]}->{s[x.ndim:]}")(axes.same(x.ndim + len(size)).upper()),
            lambda x, size, stride, offset: np.lib.stride_tricks.as_strided(
                np.ascontiguousarray(x).reshape(-1)[offset:], size, [s * x.itemsize for s in stride]).copy(),
            shape=lambda size: size, check=lambda x, size, stride, offset: _check_strided(x, size, stride,
                                                                                          offset)),
    View(_strided_view), Split(linear=["x"]),
    Laws([dict(shapes=[(5, 5)], size=(3, 4), stride=(2, 1), offset=1),
          dict(shapes=[(12,)], size=(5, 3), stride=(2, 1), offset=0)], float_only=False),
    grad={"x": lambda dy, x_shape, size, stride, offset: reshape(gather_grad(
        reshape(dy, shape=(prod(size),)), _places(size, stride, offset), axis=0, size=prod(x_shape)),
        shape=x_shape)},
    doc="Any look at the memory of a contiguous x; strides in elements.")
