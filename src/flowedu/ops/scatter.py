"""gather_nd and scatter_nd, whose rows of indices select parts of an array, and dim_gather.

dim_gather has one index per element. In the axis equations the indexed axes are upper case (not split),
because an index may refer to any position.
"""
from __future__ import annotations

from math import prod

import numpy as np

from flowedu._kernels import register
from flowedu.core.ops import axes
from flowedu.core.ops.define import define
from flowedu.core.ops.elementwise import equal, where
from flowedu.core.ops.record import Kernel, Laws, Meaning, Split
from flowedu.core.ops.view import constant, reshape
from flowedu.core.values.dtype import int64
from flowedu.core.values.spec import Spec
from flowedu.errors import DTypeError, ShapeError
from flowedu.ops.index import _check_indices
from flowedu.ops.order import range
from flowedu.ops.part import check_part, locate_rows, split
from flowedu.ops.types import AnyTensor, Shape

register("scatter")


def _terms(rank: int, indices: Spec) -> tuple[str, str, str]:
    """Return the letters of (the indexed array, the indices, the selected elements).

    rank: the number of axes of the indexed array.
    """
    letters, k = axes.same(rank + indices.ndim - 1), indices.shape[-1]
    rows, whole, behind = letters[rank:], letters[:k].upper(), letters[k:rank]
    return whole + behind, rows + "V", rows + behind


def _check_nd(name: str, rank: int, indices: Spec) -> None:
    _check_indices(name, indices)
    if not indices.ndim or not 1 <= indices.shape[-1] <= rank:
        raise ShapeError(f"{name}: the last axis of indices does not fit", got=f"indices {indices.shape}",
                         expected=f"indices of shape (..., k) with 1 <= k <= {rank}, the axes of the array",
                         fix="indices of shape (n, 1) name n rows; (n, 2) with two axes n elements of a "
                         "matrix")


def _check_updates(name: str, shape: Shape, indices: Spec, updates: Spec) -> None:
    _check_nd(name, len(shape), indices)
    want = (*indices.shape[:-1], *shape[indices.shape[-1]:])
    if updates.shape != want:
        raise ShapeError(f"{name}: updates do not fit",
                         expected=f"updates of shape {want}: one part of {tuple(shape)} for every row of "
                         f"indices {indices.shape}", got=f"updates {updates.shape}",
                         fix="check which axes the indices name")


def _at(indices: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the NumPy index for these rows of indices."""
    return tuple(np.moveaxis(indices, -1, 0))


def _gather_nd_axes(params: Spec, indices: Spec) -> str:
    whole, rows, y = _terms(params.ndim, indices)
    return f"{whole},{rows}->{y}"


gather_nd = define(
    "gather_nd(params, indices) -> y",
    Meaning(_gather_nd_axes, lambda params, indices: params[_at(indices)],
            shape=lambda params, indices: (*indices.shape[:-1], *params.shape[indices.shape[-1]:]),
            check=lambda params, indices: _check_nd("gather_nd", params.ndim, indices)),
    Kernel("gather_nd", range_help="0 <= index < the size of the axis of params it stands for"),
    Split(linear=["params"]), Laws([dict(shapes=[(4, 6), (12, 1)]), dict(shapes=[(4, 5, 6), (6, 2, 2)]),
          dict(shapes=[(5, 4), (2,)]), dict(shapes=[(4, 6), (0, 1)])], domain={"indices": "index:4"},
                                   float_only=False),
    grad={"params": lambda dy, indices, params_shape: scatter_nd(dy, indices, shape=params_shape)},
    doc="For every row of `indices` (its last axis), the part of `params` that it names.")


def _scatter_nd_axes(indices: Spec, shape: Shape) -> str:
    whole, rows, updates = _terms(len(shape), indices)
    return f"{updates},{rows}->{whole}"


def _scatter_nd_ref(updates: np.ndarray, indices: np.ndarray, shape: Shape) -> np.ndarray:
    y = np.zeros(shape, updates.dtype)
    np.add.at(y, _at(indices), updates)
    return y


scatter_nd = define(
    "scatter_nd(updates, indices, *, shape) -> y",
    Meaning(_scatter_nd_axes, _scatter_nd_ref, shape=lambda shape: shape,
            check=lambda updates, indices, shape: _check_updates("scatter_nd", shape, indices, updates)),
    Kernel("scatter_nd", range_help="0 <= index < the size of the axis of shape it stands for"),
    Split(linear=["updates"], localize=lambda out: {"shape": out.shape}),
    Laws([dict(shapes=[(12, 6), (12, 1)], shape=(4, 6)),
          dict(shapes=[(6, 2, 6), (6, 2, 2)], shape=(4, 5, 6)),
          dict(shapes=[(), (2,)], shape=(5, 4)), dict(shapes=[(0, 6), (0, 1)], shape=(4, 6))],
         domain={"indices": "index:4"}, float_only=False),
    grad={"updates": lambda dy, indices: gather_nd(dy, indices)},
    doc="Zeros of `shape`, with every part of `updates` added where its row of `indices` says.")


def _update_axes(params: Spec, indices: Spec) -> str:
    whole, rows, updates = _terms(params.ndim, indices)
    rows = rows[:-1].upper()                     # which of two equal rows comes last, only the whole tells
    behind = updates[len(rows):]
    return f"{whole},{rows}V,{rows}{behind}->{whole}"


def _check_update(params: Spec, indices: Spec, updates: Spec) -> None:
    _check_updates("scatter_nd_update", params.shape, indices, updates)
    if params.dtype is not updates.dtype:
        raise DTypeError("scatter_nd_update: the element types differ", expected="equal types",
                         got=f"params {params}, updates {updates}", fix="convert one with flow.cast")


def _update_ref(params: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
    y, rows = params.copy(), indices.reshape(-1, indices.shape[-1])
    for row, part in zip(rows, updates.reshape(len(rows), *params.shape[indices.shape[-1]:])):
        y[tuple(row)] = part
    return y


def _updates_grad(dy: AnyTensor, indices: AnyTensor, params_shape: Shape, updates_shape: Shape) -> AnyTensor:
    """Return dy where the part stayed; 0 where a later row of the indices has the same place."""
    n, k = prod(indices.shape[:-1]), indices.shape[-1]
    rows = reshape(range(size=n, dtype=int64), shape=indices.shape[:-1])
    stayed = scatter_nd_update(constant(shape=params_shape[:k], value=0, dtype=int64), indices, rows)
    mask = equal(gather_nd(stayed, indices), rows)
    part = gather_nd(dy, indices)
    mask = reshape(mask, shape=(*mask.shape, *(1,) * (len(updates_shape) - mask.ndim)))
    return where(mask, part, constant(shape=(), value=0.0, dtype=dy.dtype))


scatter_nd_update = define(
    "scatter_nd_update(params, indices, updates) -> y",
    Meaning(_update_axes, _update_ref, shape=lambda params: params.shape, check=_check_update),
    Kernel("scatter_nd_update", range_help=gather_nd.range_help), Split(linear=[("params", "updates")]),
    Laws([dict(shapes=[(8, 6), (5, 1), (5, 6)]), dict(shapes=[(4, 5, 6), (3, 2, 2), (3, 2, 6)]),
          dict(shapes=[(5, 4), (2,), ()]), dict(shapes=[(4, 6), (0, 1), (0, 6)])],
         domain={"indices": "index:4"}, float_only=False),
    grad={"params": lambda dy, indices, updates_shape: scatter_nd_update(
              dy, indices, constant(shape=updates_shape, value=0.0, dtype=dy.dtype)),
          "updates": _updates_grad},
    doc="`params`, with every part that a row of `indices` names replaced; of several for one place the last "
    "one stays.")


# ---- an index for every element
def _dim_terms(rank: int, axis: int) -> tuple[str, str]:
    """Letters of the array and of the indices: they differ along `axis`."""
    letters = axes.same(rank + 1)
    return (f"{letters[:axis]}V{letters[axis + 1:rank]}",
            letters[:axis] + letters[rank] + letters[axis + 1:rank])


def _check_dim(name: str, x: Spec, index: Spec, axis: int) -> None:
    _check_indices(name, index)
    if not 0 <= axis < x.ndim or index.ndim != x.ndim or any(
            n != m for i, (n, m) in enumerate(zip(x.shape, index.shape)) if i != axis):
        raise ShapeError(f"{name}: the index does not fit",
                         expected=f"an index of the shape of x {x.shape} but for axis {axis}",
                         got=f"index {index.shape}", fix="reshape or expand the index")


def _dim_gather_axes(x: Spec, axis: int) -> str:
    whole, index = _dim_terms(x.ndim, axis)
    return f"{whole},{index}->{index}"


dim_gather = define(
    "dim_gather(x, index, *, axis) -> y",
    Meaning(_dim_gather_axes, lambda x, index, axis: np.take_along_axis(x, index, axis),
            shape=lambda index: index.shape,
            check=lambda x, index, axis: _check_dim("dim_gather", x, index, axis)),
    Kernel("dim_gather", pack=lambda axis: ((axis,), ()), range_help="0 <= index < x.shape[axis]"),
    Split(linear=["x"], spread=lambda x, axis: split(False, dim_gather_part, axis, {"size": x.shape[axis]})),
    Laws([dict(shapes=[(6, 5), (6, 12)], axis=1), dict(shapes=[(5, 6), (6, 6)], axis=0),
          dict(shapes=[(6, 5, 2), (6, 3, 2)], axis=1), dict(shapes=[(5,), (0,)], axis=0)],
         domain={"index": "index:5"}, float_only=False),
    grad={"x": lambda dy, index, axis, x_shape: dim_gather_grad(dy, index, axis=axis, size=x_shape[axis])},
    doc="y[i, j] = x[i, index[i, j]] for axis 1, and so on: NumPy's take_along_axis.")


def _check_dim_grad(name: str, dy: Spec, index: Spec, axis: int) -> None:
    _check_dim(name, dy, index, axis)
    if dy.shape != index.shape:
        raise ShapeError(f"{name}: dy and index have different shapes", expected=str(index.shape),
                         got=str(dy.shape), fix="one gradient for every index")


def _dim_grad_axes(dy: Spec, axis: int) -> str:
    whole, index = _dim_terms(dy.ndim, axis)
    return f"{index},{index}->{whole}"


def _dim_grad_ref(dy: np.ndarray, index: np.ndarray, axis: int, size: int) -> np.ndarray:
    dx = np.zeros((*dy.shape[:axis], size, *dy.shape[axis + 1:]), dy.dtype)
    where: list[np.ndarray] = list(np.indices(dy.shape, sparse=True))
    where[axis] = index
    np.add.at(dx, tuple(where), dy)
    return dx


dim_gather_grad = define(
    "dim_gather_grad(dy, index, *, axis, size) -> dx",
    Meaning(_dim_grad_axes, _dim_grad_ref, shape=lambda dy, axis, size: (*dy.shape[:axis], size,
                                                                         *dy.shape[axis + 1:]),
            check=lambda dy, index, axis: _check_dim_grad("dim_gather_grad", dy, index, axis)),
    Kernel("dim_gather_grad", pack=lambda axis: ((axis,), ()), range_help="0 <= index < size"),
    Split(linear=["dy"], spread=lambda axis, size: split(True, dim_gather_part_grad, axis, {"size": size},
                                                         True)),
    Laws([dict(shapes=[(6, 12), (6, 12)], axis=1, size=5), dict(shapes=[(6, 6), (6, 6)], axis=0, size=5),
          dict(shapes=[(6, 3, 2), (6, 3, 2)], axis=1, size=5), dict(shapes=[(0,), (0,)], axis=0, size=5)],
         domain={"index": "index:5"}, float_only=False),
    grad={"dy": lambda ddx, index, axis: dim_gather(ddx, index, axis=axis)},
    doc="Zeros, with each element of dy added where dim_gather took it from.")


# ---- a device's part of the axis
def _dim_part_ref(x: np.ndarray, index: np.ndarray, axis: int, first: int, size: int) -> np.ndarray:
    at, here = locate_rows("dim_gather", index, first, x.shape[axis], size)
    if not here.any():
        return np.zeros(index.shape, x.dtype)
    return np.where(here, np.take_along_axis(x, at, axis), x.dtype.type(0))


def _dim_part_grad_ref(dy: np.ndarray, index: np.ndarray, axis: int, first: int, rows: int,
                       size: int) -> np.ndarray:
    at, here = locate_rows("dim_gather", index, first, rows, size)
    dx = np.zeros((*dy.shape[:axis], rows, *dy.shape[axis + 1:]), dy.dtype)
    where = list(np.nonzero(here))
    where[axis] = at[here]
    np.add.at(dx, tuple(where), dy[here])
    return dx


def _check_dim_part(x: Spec, index: Spec, axis: int, first: int, size: int) -> None:
    _check_dim("dim_gather_part", x, index, axis)
    check_part("dim_gather_part", x, axis, first, size)


dim_gather_part = define(
    "dim_gather_part(x, index, *, axis, first, size) -> y",
    Meaning(_dim_gather_axes, _dim_part_ref, shape=lambda index: index.shape,
            check=_check_dim_part),
    Split(linear=["x"],
          spread=lambda axis, first, size: split(False, dim_gather_part, axis,
                                                 {"first": first, "size": size})),
    Laws([dict(shapes=[(6, 3), (6, 12)], axis=1, first=2, size=5),
          dict(shapes=[(2, 6), (6, 6)], axis=0, first=0, size=5)], domain={"index": "index:5"},
         float_only=False),
    doc="dim_gather from the elements [first, first + n) of an axis of `size`: zeros for an index of "
    "another one.")
dim_gather_part_grad = define(
    "dim_gather_part_grad(dy, index, *, axis, first, rows, size) -> dx",
    Meaning(_dim_grad_axes, _dim_part_grad_ref,
            shape=lambda dy, axis, rows: (*dy.shape[:axis], rows, *dy.shape[axis + 1:]),
            check=lambda dy, index, axis: _check_dim_grad("dim_gather_part_grad", dy, index, axis)),
    Split(linear=["dy"],
          spread=lambda axis, first, size: split(True, dim_gather_part_grad, axis,
                                                 {"first": first, "size": size}, True)),
    Laws([dict(shapes=[(6, 12), (6, 12)], axis=1, first=2, rows=3, size=5),
          dict(shapes=[(6, 3, 2), (6, 3, 2)], axis=1, first=0, rows=2, size=5)], domain={"index": "index:5"},
         float_only=False),
    doc="dim_gather_grad for the elements [first, first + rows) of the axis.")
