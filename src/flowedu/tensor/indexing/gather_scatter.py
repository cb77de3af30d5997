"""Functions that read or change elements at given indices, such as gather, scatter, and index_add."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowedu.core.eager.dispatch import TensorBase
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import cast, is_number, scalar
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, AxisError, DTypeError, ShapeError
from flowedu.errors.once import inert
from flowedu.ops.checks import require_range
from flowedu.tensor import elementwise as E
from flowedu.tensor.arguments.dims import move_axis, one_dim, reshaped
from flowedu.tensor.arguments.types import Number
from flowedu.tensor.construction.destination import spread_as
from flowedu.tensor.devices.conversion import beside, use_device_of
from flowedu.tensor.dtypes.promotion import check_tensor
from flowedu.tensor.indexing.setitem import added
from flowedu.tensor.indexing.setitem import put as put_by_index
from flowedu.tensor.shapes import reshape_and_permute as S
from flowedu.tensor.shapes import split_and_flip as P

_op = REGISTRY.__getitem__
_GATHER, _DIM_GATHER, _UPDATE, _RANGE = map(_op, ("gather", "dim_gather", "scatter_nd_update", "range"))


def _indices(what: str, index: Tensor, whole: tuple[dt.dtype, ...] = (dt.int64, dt.int32)) -> Tensor:
    if not isinstance(index, TensorBase) or index.dtype not in whole:
        raise DTypeError(f"{what}: expected dtype int64 for index", expected="an int64 or int32 tensor",
                         got=index.dtype.name if isinstance(index, TensorBase) else type(index).__name__,
                         fix="index.long()")
    return index


def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Return the elements at indices along an axis: y[i, j] = x[index[i, j], j] for dim 0, and so on.

    Args:
        input: tensor.
        dim: axis.
        index: int64 tensor; its other axes may be shorter than those of the input.
        sparse_grad: ignored; gradients are dense.
    """
    inert("gather(sparse_grad)", bool(sparse_grad), False, "gradients are dense")
    _indices("gather", index)
    if not input.ndim or not index.ndim:
        y = _GATHER.call((S.ravel(input), S.ravel(index)), (one_dim(dim, input.ndim, "gather"),))
        return reshaped(y, index.shape)
    axis = one_dim(dim, input.ndim, "gather")
    if index.ndim != input.ndim:
        raise ShapeError("gather: Index tensor must have the same number of dimensions as input tensor",
                         expected=f"{input.ndim} axes", got=str(index.ndim),
                         fix="index.unsqueeze or expand it to x's axes")
    return _DIM_GATHER.call((_trimmed("gather", input, index, axis), index), (axis,))


def _trimmed(what: str, x: Tensor, index: Tensor, axis: int) -> Tensor:
    """Return the part of x that an index of its own or smaller size reaches."""
    for d, (n, m) in enumerate(zip(x.shape, index.shape)):
        if d != axis and m != n:
            if m > n:
                raise ShapeError(f"{what}: Size does not match at dimension {d} expected index "
                                 f"{list(index.shape)} to be no larger than self {list(x.shape)} apart from "
                                 f"dimension {axis}",
                                 expected=f"at most {n}", got=str(m), fix="narrow the index")
            x = P.part(x, d, 0, m)
    return x


def _coordinates(index: Tensor, axis: int, shape: Sequence[int]) -> Tensor:
    """Return the positions (n, 1) in the flattened array of `shape` that the index points to."""
    total: Any = None
    step = 1
    for d in range(len(shape) - 1, -1, -1):
        if d == axis:
            place = cast(index, dt.int64)
        else:
            with use_device_of(index):
                place = reshaped(_RANGE.call((), (0, 1, index.shape[d], dt.int64)),
                                 (1,) * d + (index.shape[d],) + (1,) * (index.ndim - d - 1))
        place = place if step == 1 else E.mul(place, step)
        total = place if total is None else E.add(total, place)
        step *= shape[d]
    return reshaped(S.contiguous(S.expand(total, *index.shape)), (index._numel, 1))


def _checked(what: str, input: Tensor, dim: int, index: Tensor,
             src: Tensor | Number) -> tuple[int, Tensor, Tensor, Any]:
    """Return (axis, x, index, src or number), all with at least one axis."""
    _indices(what, index)
    if not input.ndim:
        input, index = S.ravel(input), S.ravel(index)
        src = S.ravel(src) if isinstance(src, TensorBase) else src
    axis = one_dim(dim, input.ndim, what)
    if index.ndim != input.ndim or (isinstance(src, TensorBase) and src.ndim != input.ndim):
        raise ShapeError(f"{what}: Index tensor must have the same number of dimensions as self tensor",
                         expected=f"{input.ndim} axes", got=f"index {tuple(index.shape)}",
                         fix="unsqueeze or expand the index to x's axes")
    for d, m in enumerate(index.shape):
        if (d != axis and m > input.shape[d]) or (isinstance(src, TensorBase) and m > src.shape[d]):
            raise ShapeError(f"{what}: Expected index {list(index.shape)} to be no larger than self "
                             f"{list(input.shape)} apart from dimension {axis} and no larger than src",
                             got=f"axis {d}: {m}",
                             expected="an index no larger than both", fix="a smaller index, or a larger src")
    return axis, input, index, src


def _in_range(what: str, index: Tensor, n: int, low: int = 0) -> Tensor:
    """Return the index after a range check, because flattening would hide an index out of range."""
    return require_range(index, low, n - 1, problem=f"{what}: index {{got}} is out of bounds for dimension "
                         f"with size {n}",
                         expected=f"indices in [{low}, {n})", fix="check the indices before the call",
                         error=AxisError)


def _source(src: Tensor | Number, index: Tensor, dtype: dt.dtype) -> Tensor:
    """Return the elements of src that belong to the index, as a vector."""
    if not isinstance(src, TensorBase):
        return S.expand(beside(scalar(src, dtype, "scatter"), index), index._numel)
    for d, m in enumerate(index.shape):
        if src.shape[d] != m:
            src = P.part(src, d, 0, m)
    return reshaped(S.contiguous(src), (index._numel,))


def scatter(input: Tensor, dim: int, index: Tensor, src: Tensor | Number, *,
            reduce: str | None = None) -> Tensor:
    """Return x with x[index[i, j], j] = src[i, j] for dim 0, and so on.

    Args:
        input: tensor x.
        dim: axis.
        index: int64 tensor.
        src: tensor or number.
        reduce: "add" or "multiply" combines src with the present value; default: None, src replaces it.
    """
    if reduce == "add":
        if not isinstance(src, TensorBase):
            src = S.expand(beside(scalar(src, input.dtype, "scatter"), input), *index.shape)
        return scatter_add(input, dim, index, src)
    if reduce == "multiply":
        return scatter_reduce(input, dim, index, src if isinstance(src, TensorBase) else S.expand(
            beside(scalar(src, input.dtype, "scatter"), input), *index.shape), "prod")
    if reduce is not None:
        raise ArgumentError("scatter: reduce argument must be either add or multiply",
                            expected='None, "add", "multiply"',
                            got=repr(reduce), fix="flow.scatter_reduce has more")
    axis, x, index, src = _checked("scatter", input, dim, index, src)
    if isinstance(src, TensorBase) and src.dtype is not x.dtype:
        raise DTypeError("scatter: Expected self.dtype to be equal to src.dtype", expected=x.dtype.name,
                         got=src.dtype.name, fix="src.to(x.dtype)")
    index = _in_range("scatter", index, x.shape[axis])
    if not index._numel:
        return E.clone(input)
    part = S.contiguous(_source(src, index, x.dtype))
    y = _UPDATE.call((S.ravel(S.contiguous(x)), _coordinates(index, axis, x.shape), part), ())
    return reshaped(y, input.shape)


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return x with src[i, j] added to x[index[i, j], j] for dim 0, and so on; repeated indices add up.

    Args:
        input: tensor x.
        dim: axis.
        index: int64 tensor.
        src: tensor.
    """
    axis, x, index, src = _checked("scatter_add", input, dim, index, src)
    if src.dtype is not x.dtype:
        raise DTypeError("scatter_add: Expected self.dtype to be equal to src.dtype", expected=x.dtype.name,
                         got=src.dtype.name, fix="src.to(x.dtype)")
    index = _in_range("scatter_add", index, x.shape[axis])
    return E.add(input, reshaped(added(_source(src, index, x.dtype), _coordinates(index, axis, x.shape),
                                       (x._numel,)),
                                 input.shape))


def scatter_reduce(input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *,
                   include_self: bool = True) -> Tensor:
    """Return x with all src elements of the same position combined by `reduce`; not supported in graphs.

    Args:
        input: tensor x.
        dim: axis.
        index: int64 tensor.
        src: tensor.
        reduce: "sum", "prod", "mean", "amax", or "amin".
        include_self: if True, also include the present value of x.
    """
    if reduce == "sum" and include_self:
        return scatter_add(input, dim, index, src)
    import numpy as np

    from flowedu.tensor.construction.creation import from_numpy
    from flowedu.tensor.indexing.nonzero_positions import data
    fold = {"sum": np.add, "prod": np.multiply, "mean": np.add, "amax": np.maximum,
            "amin": np.minimum}.get(reduce)
    if fold is None:
        raise ArgumentError("scatter_reduce: unknown reduce", expected="sum, prod, mean, amax or amin",
                            got=repr(reduce), fix="reduce=\"sum\"")
    axis, x, index, src = _checked("scatter_reduce", input, dim, index, src)
    index = _in_range("scatter_reduce", index, x.shape[axis])
    if input.requires_grad or src.requires_grad:
        raise ArgumentError(f"scatter_reduce: no gradient of {reduce}",
                            expected='reduce="sum" where a gradient is needed',
                            got=reduce, fix="use scatter_add, or x.detach()")
    y = data("scatter_reduce", x).copy().reshape(-1)
    at = data("scatter_reduce", _coordinates(index, axis, x.shape)).reshape(-1)
    values = data("scatter_reduce", _source(src, index, x.dtype))
    if not include_self:
        y[at] = {"sum": 0, "mean": 0, "prod": 1}.get(reduce, y[at])
        if reduce in ("amax", "amin"):
            lowest, highest = -np.inf, np.inf
            if y.dtype.kind != "f":
                lowest, highest = np.iinfo(y.dtype).min, np.iinfo(y.dtype).max
            y[at] = lowest if reduce == "amax" else highest
    fold.at(y, at, values)
    if reduce == "mean":
        counts = np.full(y.shape, int(include_self))
        np.add.at(counts, at, 1)
        y = (y / np.maximum(counts, 1)).astype(y.dtype) if y.dtype.kind == "f" else y // np.maximum(counts, 1)
    # cast because NumPy adds in int64 and has no bfloat16
    return reshaped(spread_as(beside(cast(from_numpy(y), input.dtype), input), input), input.shape)


# ---- one index per slice
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the slices along an axis that a vector of indices selects.

    Args:
        input: tensor.
        dim: axis.
        index: int64 vector.
    """
    _indices("index_select", index)
    if index.ndim > 1:
        raise AxisError("index_select: Index is supposed to be a vector", expected="one axis",
                        got=str(tuple(index.shape)), fix="index.flatten()")
    axis = one_dim(dim, input.ndim, "index_select")
    if not input.ndim:
        return reshaped(_GATHER.call((S.ravel(input), S.ravel(index)), (0,)), ())
    return _GATHER.call((input, _in_range("index_select", S.ravel(index), input.shape[axis])), (axis,))


def take(input: Tensor, index: Tensor) -> Tensor:
    """Return the elements at positions in the flattened tensor.

    Args:
        input: tensor.
        index: int64 tensor; negative positions count from the end.
    """
    _indices("take", index)
    n = input._numel
    return _GATHER.call((S.ravel(input), E.where(E.lt(index, 0), index + n, index)), (0,))


def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Return x with the elements of the source written at positions in the flattened tensor.

    Args:
        index: int64 positions in the flattened tensor; negative ones count from the end.
        source: tensor of x's dtype with as many elements as there are indices.
        accumulate: if True, add the elements to the present values.

    Raises:
        ShapeError: the source has another number of elements than the index.

    Example:
        >>> flow.zeros(2, 2).put(flow.tensor([1, -1]), flow.tensor([5.0, 6.0]))
        tensor([[0., 5.],
                [0., 6.]], dtype=flowedu.float32)
    """
    _indices("put", index)
    if source.dtype is not input.dtype or source._numel != index._numel:
        raise ShapeError("put: the source does not fit",
                         expected=f"{index._numel} numbers of {input.dtype.name}",
                         got=f"{source._numel} of {source.dtype.name}",
                         fix="one number of x's dtype for each index")
    flat = S.ravel(input)
    at = S.ravel(index)
    write = index_add if accumulate else index_copy
    _in_range("put", at, flat.shape[0], -flat.shape[0])
    at = E.where(E.lt(at, 0), at + flat.shape[0], at)
    return reshaped(write(flat, 0, at, S.ravel(source)), input.shape)


def _rows(what: str, input: Tensor, dim: int, index: Tensor,
          from_the_end: bool = False) -> tuple[int, Tensor, Tensor]:
    _indices(what, index)
    axis = one_dim(dim, input.ndim, what)
    x = move_axis(input, axis, 0) if input.ndim else S.ravel(input)
    at = _in_range(what, S.ravel(index), x.shape[0], -x.shape[0] if from_the_end else 0)
    at = E.where(E.lt(at, 0), at + x.shape[0], at) if from_the_end else at
    return axis, x, reshaped(at, (at.shape[0], 1))


def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Tensor:
    """Return x with alpha * source added to the slices that the index selects.

    Args:
        input: tensor x.
        dim: axis.
        index: int64 vector.
        source: tensor with the shape of x except along `dim`.
        alpha: factor of the source.
    """
    axis, x, at = _rows("index_add", input, dim, index)
    part = move_axis(source, axis, 0) if source.ndim else S.ravel(source)
    if part.shape != (at.shape[0], *x.shape[1:]):
        raise ShapeError("index_add: the source does not fit", got=str(part.shape),
                         expected=str((at.shape[0], *x.shape[1:])),
                         fix="one part for each index")
    part = part if alpha == 1 else part * alpha
    y = E.add(x, added(S.contiguous(part), at, x.shape))
    return move_axis(y, 0, axis) if input.ndim else reshaped(y, ())


def index_reduce(input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *,
                 include_self: bool = True) -> Tensor:
    """Return x with the slices of the source combined by `reduce` into the slices that the index selects.

    Args:
        input: tensor x.
        dim: axis.
        index: vector of indices, one for each slice of the source along `dim`.
        source: tensor with the dtype of x, and with the shape of x except along `dim`.
        reduce: "prod", "mean", "amax", or "amin".
        include_self: True includes the values of x; False replaces them where the index selects them.

    Raises:
        ShapeError: the shape of the source does not fit.
        ArgumentError: `reduce` is unknown, or one of the tensors requires a gradient.

    Example:
        >>> flow.ones(3).index_reduce(0, flow.tensor([0, 0]), flow.tensor([2.0, 3.0]), "prod")
        tensor([6., 1., 1.], dtype=flowedu.float32)
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise ArgumentError("index_reduce: unknown reduce", expected="prod, mean, amax or amin",
                            got=repr(reduce), fix="reduce=\"prod\"; x.index_add(dim, index, source) adds up")
    axis, _, at = _rows("index_reduce", input, dim, index)
    wanted = (*input.shape[:axis], at.shape[0], *input.shape[axis + 1:]) if input.ndim else (at.shape[0],)
    source = source if source.ndim else S.ravel(source)
    if tuple(source.shape) != wanted:
        raise ShapeError("index_reduce: the source does not fit", expected=str(wanted),
                         got=str(tuple(source.shape)), fix="one part for each index")
    x = input if input.ndim else S.ravel(input)
    wide = S.expand(reshaped(at, tuple(at.shape[0] if i == axis else 1 for i in range(x.ndim))), *wanted)
    return reshaped(scatter_reduce(x, axis, wide, source, reduce, include_self=include_self), input.shape)


def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return a copy of x in which the slices of the source replace the slices that the index selects.

    Args:
        input: tensor x.
        dim: axis.
        index: int64 vector.
        source: tensor with the shape of x except along `dim`.
    """
    axis, x, at = _rows("index_copy", input, dim, index)
    part = move_axis(source, axis, 0) if source.ndim else S.ravel(source)
    if source.dtype is not input.dtype or part.shape != (at.shape[0], *x.shape[1:]):
        raise ShapeError("index_copy: the source does not fit", expected=f"{input.dtype.name} "
                         f"{(at.shape[0], *x.shape[1:])}", got=f"{source.dtype.name} {tuple(part.shape)}",
                         fix="one part of x's dtype for each index")
    y = _UPDATE.call((S.contiguous(x), at, S.contiguous(part)), ()) if at.shape[0] else E.clone(x)
    return move_axis(y, 0, axis) if input.ndim else reshaped(y, ())


def index_fill(input: Tensor, dim: int, index: Tensor, value: Tensor | Number) -> Tensor:
    """Return a copy of x in which a number fills the slices that the index selects.

    Args:
        input: tensor x.
        dim: axis.
        index: int64 vector; -1 is the last slice.
        value: number or 0-dim tensor.
    """
    axis, x, at = _rows("index_fill", input, dim, index, from_the_end=True)
    number = cast(value, x.dtype) if isinstance(value, TensorBase) else scalar(value, x.dtype, "index_fill")
    part = S.expand(beside(number, x), at.shape[0], *x.shape[1:])
    y = _UPDATE.call((S.contiguous(x), at, S.contiguous(part)), ()) if at.shape[0] else E.clone(x)
    return move_axis(y, 0, axis) if input.ndim else reshaped(y, ())


def index_put(input: Tensor, indices: Sequence[Tensor], values: Tensor | Number,
              accumulate: bool = False) -> Tensor:
    """Return a copy of x after x[indices] = values.

    Args:
        input: tensor x.
        indices: tuple of index tensors, one per axis.
        values: tensor that broadcasts to x[indices].
        accumulate: if True, add to the present values.
    """
    return put_by_index(input, tuple(indices), values, accumulate)


# ---- masks
def masked_fill(input: Tensor, mask: Tensor, value: Tensor | Number) -> Tensor:
    """Return x with a number where the mask is True.

    Args:
        input: tensor x.
        mask: bool tensor; the shapes broadcast.
        value: number or 0-dim tensor.
    """
    if mask.dtype is not dt.bool_:
        raise DTypeError("masked_fill: masked_fill_ only supports boolean masks", expected="a bool mask",
                         got=mask.dtype.name, fix="compare first: x.masked_fill(mask != 0, value)")
    if isinstance(value, TensorBase):
        if value.ndim:
            raise ShapeError("masked_fill: only supports a 0-dimensional value tensor", expected="a number",
                             got=f"shape {tuple(value.shape)}", fix="flow.where(mask, value, x)")
        value = cast(value, input.dtype)
    elif not is_number(value):
        raise DTypeError("masked_fill: value is not a number", expected="a number or a 0-dim tensor",
                         got=type(value).__name__, fix="flow.where(mask, value, x) takes tensors")
    else:
        value = scalar(value, input.dtype, "masked_fill")
    return _op("where").call((mask, value, input), ())


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return a copy of x in which the elements of the source, in order, replace those where the mask is True.

    Args:
        input: tensor x.
        mask: bool tensor; the shapes broadcast.
        source: tensor with at least as many elements as the number of True elements in the mask.
    """
    from flowedu.tensor.indexing.nonzero_positions import data
    from flowedu.tensor.interop.protocols import alike
    if mask.dtype is not dt.bool_:
        raise DTypeError("masked_scatter: masked_scatter_ only supports boolean masks",
                         expected="a bool mask",
                         got=mask.dtype.name, fix="compare first: x.masked_scatter(mask != 0, source)")
    x, wide = S.broadcast_tensors(input, mask)
    places = data("masked_scatter", wide).reshape(-1).nonzero()[0]
    if places.size > source._numel:
        raise ShapeError("masked_scatter: the source has too few elements", expected=f"{places.size} or more",
                         got=str(source._numel), fix="one element for each True of the mask")
    if not places.size:
        return E.clone(x)
    part = P.part(S.ravel(source), 0, 0, int(places.size))
    return reshaped(_UPDATE.call((S.ravel(S.contiguous(x)), alike(places.reshape(-1, 1), x),
                                  S.contiguous(part)), ()), x.shape)


# ---- replacement of a part
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Return a copy of x in which src replaces the slice at one position along an axis.

    Args:
        input: tensor x.
        src: tensor with the shape of x without the axis.
        dim: axis.
        index: position.
    """
    check_tensor("select_scatter", src, "src")
    axis = one_dim(dim, input.ndim, "select_scatter")
    return put_by_index(input, (slice(None),) * axis + (index,), src)


def slice_scatter(input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None,
                  step: int = 1) -> Tensor:
    """Return a copy of x in which src replaces x[start:end:step] along an axis.

    Args:
        input: tensor x.
        src: tensor with the shape of the slice.
        dim: axis.
        start: first position; default: 0.
        end: limit, not included; default: the end of the axis.
        step: distance between the positions.
    """
    check_tensor("slice_scatter", src, "src")
    axis = one_dim(dim, input.ndim, "slice_scatter")
    return put_by_index(input, (slice(None),) * axis + (slice(start, end, step),), src)
