"""gather, scatter and their family: indices that choose, for blobs and tensors (OneFlow 0.4).

Indices are int32 or int64. One that is out of range is an error when the job runs, never a silent 0.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from flowedu import ops
from flowedu.core.ops.view import check_number
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, DTypeError, ShapeError
from flowedu.oneflow04.axes import normal_axis
from flowedu.oneflow04.matrix_ops import positions
from flowedu.ops.front import front
from flowedu.ops.host import define_host

_o = ops.REGISTRY
_e = ops.elementwise


def _numbered(indices, batch: int):
    """Indices (batch, n) as rows for gather_nd: (batch, n, 2), the number of the batch before each index."""
    n = prod(indices.shape[1:])
    own = _o["reshape"](indices, shape=(batch, n, 1))
    number = _o["expand"](_o["reshape"](positions(batch, indices.dtype), shape=(batch, 1, 1)), shape=(batch, n, 1))
    return _o["concat"](number, own, axis=2)


def _check_batch(what: str, a, b, name: str, batch_dims: int) -> None:
    if not 0 <= batch_dims <= b.ndim or a.shape[:batch_dims] != b.shape[:batch_dims]:
        raise ShapeError(f"{what}: the batch axes differ", expected=f"the first {batch_dims} axes of both equal",
                         got=f"{a.shape} and {name} {b.shape}", fix="check batch_dims and the order of the axes")


@front("Gather")
def gather(params, indices, axis: int | None = None, batch_dims: int = 0):
    """params[indices] along `axis` (default: the first behind the batch axes).

    batch_dims: how many leading axes both have in common; each batch is indexed on its own. The shape of the result:
    params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:]. With batch axes OneFlow 0.4 takes no other
    axis than the default.
    """
    _check_batch("gather", params, indices, "indices", batch_dims)
    axis = normal_axis(batch_dims if axis is None else axis, params.ndim, "gather")
    if axis < batch_dims:
        raise ArgumentError("gather: axis is one of the batch axes", expected=f"an axis of {batch_dims} or more",
                            got=str(axis), fix=f"axis={batch_dims}, or a smaller batch_dims")
    if not batch_dims:
        return _o["gather"](params, indices, axis=axis)
    batch, at = prod(params.shape[:batch_dims]), axis - batch_dims + 1
    x = _o["reshape"](params, shape=(batch, *params.shape[batch_dims:]))
    x = _o["transpose"](x, perm=(0, at, *(i for i in range(1, x.ndim) if i != at)))
    y = _o["gather_nd"](x, _numbered(_o["reshape"](indices, shape=(batch, prod(indices.shape[batch_dims:]))), batch))
    y = _o["transpose"](y, perm=(0, *range(2, at + 1), 1, *range(at + 1, y.ndim)))
    return _o["reshape"](y, shape=(*params.shape[:axis], *indices.shape[batch_dims:], *params.shape[axis + 1:]))


@front("BatchGather")
def batch_gather(input, indices):
    """Parts of each batch, by its own indices: all axes of `indices` but the last are batch axes, which `input` has, too.
    y[b, j, ...] = input[b, indices[b, j], ...]."""
    return gather.__wrapped__(input, indices, batch_dims=max(indices.ndim - 1, 0))


@front("GatherNd")
def gather_nd(params, indices):
    """For every row of `indices` (its last axis), the part of `params` it names: indices (n, 1) names n rows, (n, 2) n
    rows of matrices or n elements of one. Shape: indices.shape[:-1] + params.shape[indices.shape[-1]:]."""
    return _o["gather_nd"](params, indices)


@front("ScatterNd")
def scatter_nd(indices, updates, shape: Sequence[int]):
    """Zeros of `shape`, with every part of `updates` added where its row of `indices` says: parts for one place add up."""
    return _o["scatter_nd"](updates, indices, shape=tuple(int(n) for n in shape))


@front("TensorScatterNdUpdate")
def tensor_scatter_nd_update(params, indices, updates):
    """`params`, the parts that rows of `indices` name replaced by those of `updates`; of several for one place the last
    one stays, and alone has a gradient."""
    return _o["scatter_nd_update"](params, indices, updates)


@front("TensorScatterNdAdd")
def tensor_scatter_nd_add(params, indices, updates):
    """`params`, with the parts of `updates` added where rows of `indices` say."""
    if params.dtype is not updates.dtype:
        raise DTypeError("tensor_scatter_nd_add: the dtypes differ", expected="equal dtypes",
                         got=f"params {params.dtype.name}, updates {updates.dtype.name}", fix="flow.cast one of them")
    return _e.add(params, _o["scatter_nd"](updates, indices, shape=params.shape))


@front("DimGather")
def dim_gather(input, dim: int, index):
    """y[i, j] = input[i, index[i, j]] for dim 1, and so on: as NumPy's take_along_axis. Axes other than dim must agree."""
    return _o["dim_gather"](input, index, axis=normal_axis(dim, input.ndim, "dim_gather"))


@front("OneHot")
def one_hot(indices, depth: int, on_value=1, off_value=0, axis: int = -1, dtype=None):
    """A new axis (the last, or `axis`) of `depth` elements: on_value at the index, off_value elsewhere. dtype: int32."""
    axis = normal_axis(axis, indices.ndim + 1, "one_hot")
    dtype = dt.as_dtype(dtype or dt.int32)
    for value in (on_value, off_value):
        check_number("one_hot", value, dtype)
    y = _o["one_hot"](indices, depth=depth, on_value=float(on_value), off_value=float(off_value), dtype=dtype)
    last = indices.ndim
    return y if axis == last else _o["transpose"](y, perm=(*range(axis), last, *range(axis, last)))


def _check_segments(what: str, num_segments) -> int:
    if isinstance(num_segments, bool) or not isinstance(num_segments, (int, np.integer)) or num_segments < 1:
        raise ArgumentError(f"{what}: num_segments is not a number of segments", expected="an int of 1 or more",
                            got=repr(num_segments), fix="the largest segment id is num_segments - 1")
    return int(num_segments)


@front("UnsortedSegmentSum")
def unsorted_segment_sum(data, segment_ids, num_segments: int, axis: int = 0):
    """Sums over parts of `data` along `axis`: part i goes into segment segment_ids[i]. Empty segments are 0.

    Segment ids may have several axes: those of data from `axis` on.
    """
    return _o["gather_grad"](data, segment_ids, axis=normal_axis(axis, data.ndim, "unsorted_segment_sum"),
                             size=_check_segments("unsorted_segment_sum", num_segments))


@front("UnsortedSegmentSumLike")
def unsorted_segment_sum_like(data, segment_ids, like, axis: int = 0):
    """unsorted_segment_sum with as many segments as `like` has along `axis`."""
    axis = normal_axis(axis, data.ndim, "unsorted_segment_sum_like")
    return _o["gather_grad"](data, segment_ids, axis=axis, size=like.shape[axis])


@front("UnsortedBatchSegmentSum")
def unsorted_batch_segment_sum(data, segment_ids, num_segments: int):
    """unsorted_segment_sum for each of a batch: segment_ids has data's leading axes, the last of them is summed over."""
    dims = segment_ids.ndim - 1
    _check_batch("unsorted_batch_segment_sum", data, segment_ids, "segment_ids", dims + 1)
    size = _check_segments("unsorted_batch_segment_sum", num_segments)
    batch, inner = data.shape[:dims], data.shape[dims + 1:]
    count, n = prod(batch), segment_ids.shape[-1]
    rows = _numbered(_o["reshape"](segment_ids, shape=(count, n)), count)
    y = _o["scatter_nd"](_o["reshape"](data, shape=(count, n, *inner)), rows, shape=(count, size, *inner))
    return _o["reshape"](y, shape=(*batch, size, *inner))


# ---- where something is not zero: how many there are is known only when the job runs
_argwhere = define_host("argwhere(x, *, dtype) -> y", host=lambda x, dtype: np.argwhere(x).astype(dtype.numpy),
                        shape=lambda x: (x.size, x.ndim), dtype=lambda dtype: dtype, dynamic=["y"],
                        doc="The index of every element that is not 0, one row each.")
_nonzero = define_host("nonzero(x) -> y", host=lambda x: np.argwhere(x).T.astype(np.int32), dtype=lambda: dt.int32,
                       shape=lambda x: (x.ndim, x.size), dynamic=["y"],
                       doc="The index of every element that is not 0, one column each.")


@front("ArgWhere")
def argwhere(condition, dtype=None):
    """The index of every element that is not 0, one row each: (how many, axes), int32. A blob of dynamic shape."""
    return _argwhere(condition, dtype=dt.as_dtype(dtype or dt.int32, "argwhere: dtype"))


@front("Nonzero")
def nonzero(a):
    """argwhere with one column for each element: (axes, how many)."""
    return _nonzero(a)


__all__ = ["argwhere", "dim_gather", "gather", "gather_nd", "nonzero", "one_hot", "scatter_nd", "tensor_scatter_nd_add",
           "tensor_scatter_nd_update", "unsorted_batch_segment_sum", "unsorted_segment_sum", "unsorted_segment_sum_like"]
