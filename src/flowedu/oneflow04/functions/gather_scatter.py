"""Functions of OneFlow 0.4 that gather and scatter elements of blobs and tensors by index.

Indices are int32 or int64. An index out of range raises an error when the job runs, and never returns a 0.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from flowedu import ops
from flowedu.core.ops.concat import concat
from flowedu.core.ops.view import check_number, expand, reshape, transpose
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, DTypeError, ShapeError
from flowedu.oneflow04.functions.axes import normal_axis
from flowedu.oneflow04.functions.ranges_and_triangles import positions
from flowedu.ops.front import front
from flowedu.ops.host import define_host
from flowedu.ops.index import gather as gather_op
from flowedu.ops.index import gather_grad
from flowedu.ops.index import one_hot as one_hot_op
from flowedu.ops.scatter import dim_gather as dim_gather_op
from flowedu.ops.scatter import gather_nd as gather_nd_op
from flowedu.ops.scatter import scatter_nd as scatter_nd_op
from flowedu.ops.scatter import scatter_nd_update

_e = ops.elementwise


def _numbered(indices, batch: int):
    """Return indices (batch, n) as rows (batch, n, 2) for gather_nd, with the batch index before each index.
    """
    n = prod(indices.shape[1:])
    own = reshape(indices, shape=(batch, n, 1))
    number = expand(reshape(positions(batch, indices.dtype), shape=(batch, 1, 1)), shape=(batch, n, 1))
    return concat(number, own, axis=2)


def _check_batch(what: str, a, b, name: str, batch_dims: int) -> None:
    if not 0 <= batch_dims <= b.ndim or a.shape[:batch_dims] != b.shape[:batch_dims]:
        raise ShapeError(f"{what}: the batch axes differ",
                         expected=f"the first {batch_dims} axes of both equal",
                         got=f"{a.shape} and {name} {b.shape}",
                         fix="check batch_dims and the order of the axes")


@front("Gather")
def gather(params, indices, axis: int | None = None, batch_dims: int = 0):
    """Return `params[indices]` along an axis.

    Args:
        params: a blob or tensor.
        indices: int32 or int64.
        axis: the indexed axis; None is the first axis after the batch axes.
        batch_dims: the number of leading axes that both arguments share. Each batch is indexed separately.

    Shape:
        - result: params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:]

    Note:
        With batch axes OneFlow 0.4 accepts only the default axis.
    """
    _check_batch("gather", params, indices, "indices", batch_dims)
    axis = normal_axis(batch_dims if axis is None else axis, params.ndim, "gather")
    if axis < batch_dims:
        raise ArgumentError("gather: axis is one of the batch axes",
                            expected=f"an axis of {batch_dims} or more",
                            got=str(axis), fix=f"axis={batch_dims}, or a smaller batch_dims")
    if not batch_dims:
        return gather_op(params, indices, axis=axis)
    batch, at = prod(params.shape[:batch_dims]), axis - batch_dims + 1
    x = reshape(params, shape=(batch, *params.shape[batch_dims:]))
    x = transpose(x, perm=(0, at, *(i for i in range(1, x.ndim) if i != at)))
    y = gather_nd_op(x, _numbered(reshape(indices, shape=(batch, prod(indices.shape[batch_dims:]))), batch))
    y = transpose(y, perm=(0, *range(2, at + 1), 1, *range(at + 1, y.ndim)))
    return reshape(y, shape=(*params.shape[:axis], *indices.shape[batch_dims:], *params.shape[axis + 1:]))


@front("BatchGather")
def batch_gather(input, indices):
    """Gather parts of each batch: `y[b, j, ...] = input[b, indices[b, j], ...]`.

    Args:
        input: a blob or tensor that begins with the batch axes.
        indices: int32 or int64. All axes except the last are batch axes.
    """
    return gather.__wrapped__(input, indices, batch_dims=max(indices.ndim - 1, 0))


@front("GatherNd")
def gather_nd(params, indices):
    """Gather the parts of `params` that the rows of `indices` select.

    Args:
        params: a blob or tensor.
        indices: int32 or int64 of shape (..., k). Each row along the last axis indexes the first k axes of
            `params`.

    Shape:
        - result: indices.shape[:-1] + params.shape[k:]
    """
    return gather_nd_op(params, indices)


@front("ScatterNd")
def scatter_nd(indices, updates, shape: Sequence[int]):
    """Add parts of `updates` into zeros at the positions that the rows of `indices` select.

    Args:
        indices: int32 or int64 of shape (..., k).
        updates: a blob of shape indices.shape[:-1] + shape[k:]. Parts for the same position are summed.
        shape: the shape of the result.
    """
    return scatter_nd_op(updates, indices, shape=tuple(int(n) for n in shape))


@front("TensorScatterNdUpdate")
def tensor_scatter_nd_update(params, indices, updates):
    """Replace the parts of `params` that the rows of `indices` select.

    Args:
        params: a blob or tensor.
        indices: int32 or int64 of shape (..., k).
        updates: a blob of shape indices.shape[:-1] + params.shape[k:]. Of several parts for one position the
            last remains, and only that part has a gradient.
    """
    return scatter_nd_update(params, indices, updates)


@front("TensorScatterNdAdd")
def tensor_scatter_nd_add(params, indices, updates):
    """Add `updates` to the parts of `params` that the rows of `indices` select.

    Args:
        params: a blob or tensor.
        indices: int32 or int64 of shape (..., k).
        updates: a blob of shape indices.shape[:-1] + params.shape[k:], with the dtype of `params`.
    """
    if params.dtype is not updates.dtype:
        raise DTypeError("tensor_scatter_nd_add: the dtypes differ", expected="equal dtypes",
                         got=f"params {params.dtype.name}, updates {updates.dtype.name}",
                         fix="flow.cast one of them")
    return _e.add(params, scatter_nd_op(updates, indices, shape=params.shape))


@front("DimGather")
def dim_gather(input, dim: int, index):
    """Gather along one axis as NumPy's take_along_axis: for dim 1, `y[i, j] = input[i, index[i, j]]`.

    Args:
        input: a blob or tensor.
        dim: the indexed axis.
        index: int32 or int64. All axes except `dim` agree with `input`.
    """
    return dim_gather_op(input, index, axis=normal_axis(dim, input.ndim, "dim_gather"))


@front("OneHot")
def one_hot(indices, depth: int, on_value=1, off_value=0, axis: int = -1, dtype=None):
    """Return one-hot vectors.

    Args:
        indices: int32 or int64.
        depth: the size of the new axis.
        on_value: the value at the index.
        off_value: all other values.
        axis: the position of the new axis; default: the last.
        dtype: the dtype of the result; None is int32.
    """
    axis = normal_axis(axis, indices.ndim + 1, "one_hot")
    dtype = dt.as_dtype(dtype or dt.int32)
    for value in (on_value, off_value):
        check_number("one_hot", value, dtype)
    y = one_hot_op(indices, depth=depth, on_value=float(on_value), off_value=float(off_value), dtype=dtype)
    last = indices.ndim
    return y if axis == last else transpose(y, perm=(*range(axis), last, *range(axis, last)))


def _check_segments(what: str, num_segments) -> int:
    if isinstance(num_segments, bool) or not isinstance(num_segments, (int, np.integer)) or num_segments < 1:
        raise ArgumentError(f"{what}: num_segments is not a number of segments",
                            expected="an int of 1 or more",
                            got=repr(num_segments), fix="the largest segment id is num_segments - 1")
    return int(num_segments)


@front("UnsortedSegmentSum")
def unsorted_segment_sum(data, segment_ids, num_segments: int, axis: int = 0):
    """Sum parts of `data` by segment: part i along `axis` is added to segment `segment_ids[i]`.

    Args:
        data: a blob or tensor.
        segment_ids: int32 or int64. It may have several axes, which are the axes of `data` from `axis` on.
        num_segments: the number of segments. Empty segments are 0.
        axis: the first axis of the parts.
    """
    return gather_grad(data, segment_ids, axis=normal_axis(axis, data.ndim, "unsorted_segment_sum"),
                       size=_check_segments("unsorted_segment_sum", num_segments))


@front("UnsortedSegmentSumLike")
def unsorted_segment_sum_like(data, segment_ids, like, axis: int = 0):
    """Compute unsorted_segment_sum with as many segments as `like` has elements along `axis`.

    Args:
        data: a blob or tensor.
        segment_ids: int32 or int64.
        like: a blob that determines the number of segments.
        axis: the first axis of the parts.
    """
    axis = normal_axis(axis, data.ndim, "unsorted_segment_sum_like")
    return gather_grad(data, segment_ids, axis=axis, size=like.shape[axis])


@front("UnsortedBatchSegmentSum")
def unsorted_batch_segment_sum(data, segment_ids, num_segments: int):
    """Compute unsorted_segment_sum for each element of a batch.

    Args:
        data: a blob or tensor.
        segment_ids: int32 or int64, with the leading axes of `data`. The sum runs over the last of them.
        num_segments: the number of segments.
    """
    dims = segment_ids.ndim - 1
    _check_batch("unsorted_batch_segment_sum", data, segment_ids, "segment_ids", dims + 1)
    size = _check_segments("unsorted_batch_segment_sum", num_segments)
    batch, inner = data.shape[:dims], data.shape[dims + 1:]
    count, n = prod(batch), segment_ids.shape[-1]
    rows = _numbered(reshape(segment_ids, shape=(count, n)), count)
    y = scatter_nd_op(reshape(data, shape=(count, n, *inner)), rows, shape=(count, size, *inner))
    return reshape(y, shape=(*batch, size, *inner))


# ---- nonzero elements: their number is known only when the job runs
_argwhere = define_host("argwhere(x, *, dtype) -> y",
                        host=lambda x, dtype: np.argwhere(x).astype(dtype.numpy),
                        shape=lambda x: (x.size, x.ndim), dtype=lambda dtype: dtype, dynamic=["y"],
                        doc="The index of every element that is not 0, one row each.")
_nonzero = define_host("nonzero(x) -> y", host=lambda x: np.argwhere(x).T.astype(np.int32),
                       dtype=lambda: dt.int32, shape=lambda x: (x.ndim, x.size), dynamic=["y"],
                       doc="The index of every element that is not 0, one column each.")


@front("ArgWhere")
def argwhere(condition, dtype=None):
    """Return the indices of the elements that are not 0, one row per element.

    Args:
        condition: a blob or tensor.
        dtype: the dtype of the indices; None is int32.

    Returns: a dynamic blob of shape (count, axes).
    """
    return _argwhere(condition, dtype=dt.as_dtype(dtype or dt.int32, "argwhere: dtype"))


@front("Nonzero")
def nonzero(a):
    """Return the indices of the elements that are not 0, one column per element.

    Args:
        a: a blob or tensor.

    Returns: a dynamic int32 blob of shape (axes, count).
    """
    return _nonzero(a)


__all__ = ["argwhere", "dim_gather", "gather", "gather_nd", "nonzero", "one_hot", "scatter_nd",
           "tensor_scatter_nd_add", "tensor_scatter_nd_update", "unsorted_batch_segment_sum",
           "unsorted_segment_sum", "unsorted_segment_sum_like"]
