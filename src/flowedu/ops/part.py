"""What a device does with its part of an axis that is read at some places only: gather, dim_gather, slice, and their
gradients, when the axis they pick from is split over devices.

Each device takes what lies in its part, and zeros for the rest; the results are partial sums. So a table of words split
over its rows (a "vocabulary split") is read without moving a row. These ops are the local calls of such signatures: the
original op's record names them in `spread`. `first` is the number of the part's first element, `size` the size of the
whole axis. A part may be split again.
"""
from __future__ import annotations

import builtins

import numpy as np

from flowedu.errors import OutOfRangeError, ShapeError
from flowedu.ops import axes, scatter
from flowedu.ops.concat import _full
from flowedu.ops.define import define
from flowedu.ops.index import (
    _check_gather,
    _check_gather_grad,
    _gather_axes,
    _gather_grad_axes,
    _gather_shape,
    gather,
    gather_grad,
)
from flowedu.ops.scatter import _check_dim, _check_dim_grad, dim_gather, dim_gather_grad
from flowedu.ops.view import _slice_shape, slice


def _mine(name, indices, first, rows, size):
    """(where in the part each index points, whether it points there at all)"""
    wrong = indices[(indices < 0) | (indices >= size)]
    if wrong.size:
        raise OutOfRangeError(f"{name}: index {wrong.flat[0]} is out of range", expected=f"0 <= index < {size}",
                              got=str(wrong.flat[0]), fix="check the indices")
    at = indices - first
    here = (at >= 0) & (at < rows)
    return np.where(here, at, 0), here


def _check_part(name, x, axis, first, size):
    if not 0 <= first <= first + x.shape[axis] <= size:
        raise ShapeError(f"{name}: this is no part of the axis", expected=f"elements within 0 to {size}",
                         got=f"{first} to {first + x.shape[axis]}")


def _split(out, op, axis, base, rows=False):
    """The entry of `spread`: params (or, where `out`, the output) split along `axis`."""
    s = f"S{axis}"

    def attributes(start, stop):
        return {"axis": axis, **base, "first": base.get("first", 0) + start, **({"rows": stop - start} if rows else {})}
    return {("B", "B", s) if out else (s, "B", "P"): (op, attributes)}


# ---- gather
def _gather_part_ref(params, indices, axis, first, size):
    at, here = _mine("gather", indices, first, params.shape[axis], size)
    if not here.any():                                           # the part may be empty too
        return np.zeros(params.shape[:axis] + indices.shape + params.shape[axis + 1:], params.dtype)
    here = here.reshape((1,) * axis + indices.shape + (1,) * (params.ndim - axis - 1))
    return np.where(here, np.take(params, at, axis), params.dtype.type(0))


def _gather_part_grad_ref(dy, indices, axis, first, rows, size):
    at, here = _mine("gather", indices, first, rows, size)
    behind = tuple(builtins.range(axis, axis + indices.ndim))
    dy = np.moveaxis(dy, behind, tuple(builtins.range(indices.ndim)))        # the axes of the indices first
    dparams = np.zeros((rows, *dy.shape[indices.ndim:]), dy.dtype)
    np.add.at(dparams, at[here], dy[here])
    return np.ascontiguousarray(np.moveaxis(dparams, 0, axis))


gather_part = define(
    "gather_part(params, indices, *, axis, first, size) -> y", _gather_axes, shape=_gather_shape, linear=["params"],
    check=lambda params, indices, axis, first, size: (_check_gather("gather_part", params, indices, axis),
                                                      _check_part("gather_part", params, axis, first, size)),
    ref=_gather_part_ref, float_only=False, domain={"indices": "index:5"},
    spread=lambda params, indices, axis, first, size: _split(False, gather_part, axis, {"first": first, "size": size}),
    examples=[dict(shapes=[(3, 6), (12,)], axis=0, first=1, size=5),
              dict(shapes=[(6, 2, 2), (6, 2)], axis=1, first=3, size=5)],
    doc="gather from the rows [first, first + n) of a table of `size` rows: zeros for an index of another row.")
gather_part_grad = define(
    "gather_part_grad(dy, indices, *, axis, first, rows, size) -> dparams", _gather_grad_axes, linear=["dy"],
    check=lambda dy, indices, axis: _check_gather_grad("gather_part_grad", dy, indices, axis),
    shape=lambda dy, indices, axis, rows: (*dy.shape[:axis], rows, *dy.shape[axis + indices.ndim:]),
    ref=_gather_part_grad_ref, float_only=False, domain={"indices": "index:5"},
    spread=lambda axis, first, size: _split(True, gather_part_grad, axis, {"first": first, "size": size}, True),
    examples=[dict(shapes=[(12, 6), (12,)], axis=0, first=1, rows=3, size=5),
              dict(shapes=[(6, 6, 2, 2), (6, 2)], axis=1, first=3, rows=2, size=5)],
    doc="gather_grad for the rows [first, first + rows) of the table.")
gather.set_spread(lambda params, axis: _split(False, gather_part, axis, {"size": params.shape[axis]}))
gather_grad.set_spread(lambda axis, size: _split(True, gather_part_grad, axis, {"size": size}, True))


# ---- dim_gather
def _dim_part_ref(x, index, axis, first, size):
    at, here = _mine("dim_gather", index, first, x.shape[axis], size)
    if not here.any():
        return np.zeros(index.shape, x.dtype)
    return np.where(here, np.take_along_axis(x, at, axis), x.dtype.type(0))


def _dim_part_grad_ref(dy, index, axis, first, rows, size):
    at, here = _mine("dim_gather", index, first, rows, size)
    dx = np.zeros((*dy.shape[:axis], rows, *dy.shape[axis + 1:]), dy.dtype)
    where = list(np.nonzero(here))
    where[axis] = at[here]
    np.add.at(dx, tuple(where), dy[here])
    return dx


dim_gather_part = define(
    "dim_gather_part(x, index, *, axis, first, size) -> y", scatter._dim_gather_axes, linear=["x"],
    check=lambda x, index, axis, first, size: (_check_dim("dim_gather_part", x, index, axis),
                                               _check_part("dim_gather_part", x, axis, first, size)),
    shape=lambda index: index.shape, ref=_dim_part_ref, float_only=False, domain={"index": "index:5"},
    spread=lambda axis, first, size: _split(False, dim_gather_part, axis, {"first": first, "size": size}),
    examples=[dict(shapes=[(6, 3), (6, 12)], axis=1, first=2, size=5),
              dict(shapes=[(2, 6), (6, 6)], axis=0, first=0, size=5)],
    doc="dim_gather from the elements [first, first + n) of an axis of `size`: zeros for an index of another one.")
dim_gather_part_grad = define(
    "dim_gather_part_grad(dy, index, *, axis, first, rows, size) -> dx", scatter._dim_grad_axes, linear=["dy"],
    check=lambda dy, index, axis: _check_dim_grad("dim_gather_part_grad", dy, index, axis),
    shape=lambda dy, axis, rows: (*dy.shape[:axis], rows, *dy.shape[axis + 1:]), ref=_dim_part_grad_ref, float_only=False,
    domain={"index": "index:5"},
    spread=lambda axis, first, size: _split(True, dim_gather_part_grad, axis, {"first": first, "size": size}, True),
    examples=[dict(shapes=[(6, 12), (6, 12)], axis=1, first=2, rows=3, size=5),
              dict(shapes=[(6, 3, 2), (6, 3, 2)], axis=1, first=0, rows=2, size=5)],
    doc="dim_gather_grad for the elements [first, first + rows) of the axis.")
dim_gather.set_spread(lambda x, axis: _split(False, dim_gather_part, axis, {"size": x.shape[axis]}))
dim_gather_grad.set_spread(lambda axis, size: _split(True, dim_gather_part_grad, axis, {"size": size}, True))


# ---- slice
def _slice_part_ref(x, start, stop, step, first):
    y = np.zeros(_slice_shape(start, stop, step), x.dtype)
    here, there = [], []
    for n, a, b, s, f in zip(x.shape, start, stop, step, first):
        low = max(-(-(f - a) // s), 0)                            # the first j for which a + j * s lies in this part
        high = max(min(-(-(f + n - a) // s), -(-(b - a) // s)), low)
        there.append(builtins.slice(low, high))
        here.append(builtins.slice(a + low * s - f, a + (high - 1) * s - f + 1, s) if high > low else builtins.slice(0, 0))
    y[tuple(there)] = x[tuple(here)]
    return y


def _kept(x, start, stop, step, first):
    """The axes of which the part has everything and the slice takes everything."""
    return [i for i in _full(x.shape, start, stop, step) if first[i] == 0]


def _slice_part_axes(x, start, stop, step, first):
    keep = _kept(x, start, stop, step, first)
    term = axes.same(x.ndim, [i for i in builtins.range(x.ndim) if i not in keep])
    return f"{term}->{term}"


def _check_slice_part(x, start, stop, step, first):
    if not len(start) == len(stop) == len(step) == len(first) == x.ndim:
        raise ShapeError("slice_part: start, stop, step and first need an entry for every axis",
                         expected=f"{x.ndim} entries for x {x.shape}",
                         got=f"{len(start)}, {len(stop)}, {len(step)} and {len(first)}")


def _localize_slice_part(x, start, stop, step, full):
    return {"stop": tuple(n if i in _full(full, start, stop, step) else b for i, (n, b) in enumerate(zip(x.shape, stop)))}


def _slice_spread(x, start, stop, step, first):
    def entry(axis):
        moved = lambda at, _: {"start": start, "stop": stop, "step": step, "first": tuple(
            f + at * (i == axis) for i, f in enumerate(first))}
        return (f"S{axis}", "P"), (slice_part, moved)
    keep = _kept(x, start, stop, step, first)
    return dict(entry(i) for i in builtins.range(x.ndim) if i not in keep)


slice_part = define(
    "slice_part(x, *, start, stop, step, first) -> y", _slice_part_axes, shape=_slice_shape, linear=["x"],
    check=_check_slice_part, ref=_slice_part_ref, localize=_localize_slice_part, spread=_slice_spread, float_only=False,
    examples=[dict(shapes=[(6, 6)], start=(0, 2), stop=(6, 9), step=(1, 3), first=(0, 4)),
              dict(shapes=[(6,)], start=(3,), stop=(11,), step=(1,), first=(6,))],
    doc="slice of an array of which x is the part from `first` on: zeros where the slice reads outside it.")
slice.set_spread(lambda x, start, stop, step: _slice_spread(x, start, stop, step, (0,) * x.ndim))
