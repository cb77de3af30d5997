"""gather and one_hot: ops with integer indices."""
from __future__ import annotations

import numpy as np

from flowedu._kernels import register
from flowedu.core.ops import axes
from flowedu.core.ops.define import define
from flowedu.core.ops.record import Kernel, Laws, Meaning, Split
from flowedu.core.values.dtype import bool_, dtype, float32, float64, int8, int16, int32, int64, uint8
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError, DTypeError, ShapeError, either
from flowedu.ops.part import check_part, locate_rows, split
from flowedu.ops.types import Shape

register("index")


def _terms(rank: int, indices: int, axis: int) -> tuple[str, str, str]:
    """Return letters of (params, indices, y). In y, the axes of `indices` replace params' indexed axis V."""
    letters = axes.same(rank + indices)
    before, chosen, behind = letters[:axis], letters[rank:], letters[axis + 1:rank]
    return f"{before}V{behind}", chosen, before + chosen + behind


def _gather_axes(params: Spec, indices: Spec, axis: int) -> str:
    p, i, y = _terms(params.ndim, indices.ndim, axis)
    return f"{p},{i}->{y}"


def _check_indices(name: str, indices: Spec, kinds: tuple[dtype, ...] = (int32, int64)) -> None:
    if indices.dtype not in kinds:
        raise DTypeError(f"{name}: indices have the wrong element type",
                         expected=" or ".join(k.name for k in kinds),
                         got=indices.dtype.name, fix="cast them: flow.cast(indices, flow.int64)")


def _check_gather(name: str, params: Spec, indices: Spec, axis: int) -> None:
    _check_indices(name, indices)
    if not 0 <= axis < params.ndim:
        raise ShapeError(f"{name}: axis is out of range", expected=f"an axis of params {params.shape}",
                         got=str(axis), fix=f"{name} needs params with one axis or more")


def _gather_shape(params: Spec, indices: Spec, axis: int) -> Shape:
    return params.shape[:axis] + indices.shape + params.shape[axis + 1:]


gather = define(
    "gather(params, indices, *, axis=0) -> y",
    Meaning(_gather_axes, lambda params, indices, axis: np.take(params, indices, axis), shape=_gather_shape,
            check=lambda params, indices, axis: _check_gather("gather", params, indices, axis)),
    Kernel("gather", key="params", pack=lambda axis: ((axis,), ()),
           range_help="0 <= index < params.shape[axis]"),
    Split(linear=["params"], spread=lambda params, axis: split(False, gather_part, axis,
                                                               {"size": params.shape[axis]})),
    Laws([dict(shapes=[(5, 6), (12,)]), dict(shapes=[(6, 5, 2), (6, 2)], axis=1),
          dict(shapes=[(6, 5), ()], axis=1), dict(shapes=[(5, 6), (0,)])], domain={"indices": "index:5"},
         float_only=False),
    grad={"params": lambda dy, params_shape, indices, axis: gather_grad(dy, indices, axis=axis,
                                                                        size=params_shape[axis])},
    doc="The rows of `params` (along `axis`) that `indices` names; an embedding table is read this way.")


def _gather_grad_axes(dy: Spec, indices: Spec, axis: int) -> str:
    p, i, y = _terms(dy.ndim - indices.ndim + 1, indices.ndim, axis)
    return f"{y},{i}->{p}"


def _check_gather_grad(name: str, dy: Spec, indices: Spec, axis: int) -> None:
    _check_indices(name, indices)
    if not 0 <= axis <= dy.ndim - indices.ndim or dy.shape[axis:axis + indices.ndim] != indices.shape:
        raise ShapeError(f"{name}: dy and indices do not fit",
                         expected=f"indices' axes {indices.shape} in dy from axis {axis} on",
                         got=f"dy {dy.shape}")


def _gather_grad_ref(dy: np.ndarray, indices: np.ndarray, axis: int, size: int) -> np.ndarray:
    before, behind = dy.shape[:axis], dy.shape[axis + indices.ndim:]
    rows = np.zeros((size, *before, *behind), dy.dtype)
    np.add.at(rows, indices.reshape(-1), np.moveaxis(dy.reshape(*before, indices.size, *behind), axis, 0))
    return np.ascontiguousarray(np.moveaxis(rows, 0, axis))


gather_grad = define(
    "gather_grad(dy, indices, *, axis, size) -> dparams",
    Meaning(_gather_grad_axes, _gather_grad_ref,
            shape=lambda dy, indices, axis, size: (*dy.shape[:axis], size, *dy.shape[axis + indices.ndim:]),
            check=lambda dy, indices, axis: _check_gather_grad("gather_grad", dy, indices, axis)),
    Kernel("gather_grad", pack=lambda axis: ((axis,), ()), range_help="0 <= index < size"),
    Split(linear=["dy"], spread=lambda axis, size: split(True, gather_part_grad, axis, {"size": size}, True)),
    Laws([dict(shapes=[(12, 6), (12,)], axis=0, size=5),
          dict(shapes=[(6, 6, 2, 2), (6, 2)], axis=1, size=5),
          dict(shapes=[(6,), ()], axis=1, size=5), dict(shapes=[(0, 6), (0,)], axis=0, size=5)],
         domain={"indices": "index:5"}),
    grad={"dy": lambda ddparams, indices, axis: gather(ddparams, indices, axis=axis)},
    doc="Zeros, with every part of dy added where gather took it from.")


# ---- a device's part of the table
def _gather_part_ref(params: np.ndarray, indices: np.ndarray, axis: int, first: int, size: int) -> np.ndarray:
    at, here = locate_rows("gather", indices, first, params.shape[axis], size)
    if not here.any():                                           # the part may be empty too
        return np.zeros(params.shape[:axis] + indices.shape + params.shape[axis + 1:], params.dtype)
    here = here.reshape((1,) * axis + indices.shape + (1,) * (params.ndim - axis - 1))
    return np.where(here, np.take(params, at, axis), params.dtype.type(0))


def _gather_part_grad_ref(dy: np.ndarray, indices: np.ndarray, axis: int, first: int, rows: int,
                          size: int) -> np.ndarray:
    at, here = locate_rows("gather", indices, first, rows, size)
    behind = tuple(range(axis, axis + indices.ndim))
    dy = np.moveaxis(dy, behind, tuple(range(indices.ndim)))        # the axes of the indices first
    dparams = np.zeros((rows, *dy.shape[indices.ndim:]), dy.dtype)
    np.add.at(dparams, at[here], dy[here])
    return np.ascontiguousarray(np.moveaxis(dparams, 0, axis))


def _check_gather_part(params: Spec, indices: Spec, axis: int, first: int, size: int) -> None:
    _check_gather("gather_part", params, indices, axis)
    check_part("gather_part", params, axis, first, size)


gather_part = define(
    "gather_part(params, indices, *, axis, first, size) -> y",
    Meaning(_gather_axes, _gather_part_ref, shape=_gather_shape,
            check=_check_gather_part),
    Split(linear=["params"],
          spread=lambda axis, first, size: split(False, gather_part, axis, {"first": first, "size": size})),
    Laws([dict(shapes=[(3, 6), (12,)], axis=0, first=1, size=5),
          dict(shapes=[(6, 2, 2), (6, 2)], axis=1, first=3, size=5)], domain={"indices": "index:5"},
         float_only=False),
    doc="gather from the rows [first, first + n) of a table of `size` rows: zeros for an index of "
    "another row.")
gather_part_grad = define(
    "gather_part_grad(dy, indices, *, axis, first, rows, size) -> dparams",
    Meaning(_gather_grad_axes, _gather_part_grad_ref,
            shape=lambda dy, indices, axis, rows: (*dy.shape[:axis], rows, *dy.shape[axis + indices.ndim:]),
            check=lambda dy, indices, axis: _check_gather_grad("gather_part_grad", dy, indices, axis)),
    Split(linear=["dy"],
          spread=lambda axis, first, size: split(True, gather_part_grad, axis, {"first": first, "size": size},
                                                 True)),
    Laws([dict(shapes=[(12, 6), (12,)], axis=0, first=1, rows=3, size=5),
          dict(shapes=[(6, 6, 2, 2), (6, 2)], axis=1, first=3, rows=2, size=5)],
         domain={"indices": "index:5"}, float_only=False),
    doc="gather_grad for the rows [first, first + rows) of the table.")


# ---- one_hot
LABELS = (int32, int64, int8, uint8, int16)              # what fe_index reads (_kernels/core/abi.h)
_ONE_HOT = (float32, float64, int32, int64, int8, uint8, bool_)


def _check_one_hot(indices: Spec, depth: int, dtype: dtype | None) -> None:
    _check_indices("one_hot", indices, LABELS)
    if depth < 0:
        raise ArgumentError("one_hot: depth is negative", expected="the number of classes", got=str(depth))
    if dtype is not None and dtype not in _ONE_HOT:
        raise DTypeError("one_hot: no kernel for this element type",
                         expected=either([t.name for t in _ONE_HOT]),
                         got=dtype.name, fix="make it float32 and cast the result")


def _one_hot_axes(indices: Spec) -> str:
    return f"{axes.same(indices.ndim)}->{axes.same(indices.ndim)}D"


def _one_hot_ref(indices: np.ndarray, depth: int, on_value: float, off_value: float,
                 dtype: dtype | None) -> np.ndarray:
    return np.where(indices[..., None] == np.arange(depth), on_value,
                    off_value).astype((dtype or float32).numpy)


one_hot = define(
    "one_hot(indices, *, depth, on_value=1.0, off_value=0.0, dtype=None) -> y",
    Meaning(_one_hot_axes, _one_hot_ref, shape=lambda indices, depth: (*indices.shape, depth),
            dtype=lambda dtype: dtype or float32, check=_check_one_hot),
    Kernel("one_hot", pack=lambda on_value, off_value: ((), (on_value, off_value))),
    Laws([dict(shapes=[(6,)], depth=5), dict(shapes=[(6, 2)], depth=7, on_value=2.0, off_value=-1.0),
          dict(shapes=[()], depth=7), dict(shapes=[(6,)], depth=5, dtype=int32)],
         domain={"indices": "index:7"}),
    doc="on_value at the index, off_value elsewhere, on a new last axis; an index outside it: all off. "
        "dtype: float32 unless given.")
