"""Functions of OneFlow 0.4 for the ids of sparse features, and counts of infinite and NaN elements."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowedu.core.ops.elementwise import ne
from flowedu.core.ops.reduce import sum as sum_op
from flowedu.core.ops.view import cast, constant, reshape
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, ShapeError
from flowedu.oneflow04.functions.axes import normal_axis
from flowedu.ops.front import front
from flowedu.ops.host import define_host


def _find_unique(x: np.ndarray):
    """Return (unique elements in order of first occurrence, index of each element among them, counts)."""
    values, first, at, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return values[order], rank[at.reshape(-1)], counts[order]


def _fill_up(n: int, a: np.ndarray) -> np.ndarray:
    return np.concatenate([a, np.zeros((n - len(a), *a.shape[1:]), a.dtype)])


def _count(x, out_idx):
    values, at, counts = _find_unique(x)
    kind = out_idx.numpy
    return (_fill_up(x.size, values), at.astype(kind), _fill_up(x.size, counts.astype(kind)),
            np.array([values.size], kind))


_unique_op = define_host("unique_with_counts(x, *, out_idx) -> y, idx, count, num_unique", host=_count,
                         shape=lambda x: (x.shape, x.shape, x.shape, (1,)),
                         dtype=lambda x, out_idx: (x.dtype, out_idx, out_idx, out_idx))


@front("UniqueWithCounts", "y")
def unique_with_counts(x, out_idx=dt.int32):
    """Return the unique elements of a vector, their indices, and their counts.

    Args:
        x: a vector of n elements.
        out_idx: the dtype of the indices and counts.

    Returns: (y, idx, count, num_unique). y (n,) has the unique elements in order of first occurrence; idx
    (n,) is the index in y of each element; count (n,) counts occurrences; num_unique (1,) is the number of
    unique elements. Elements of y and count after the first num_unique are 0. flow.sync_dynamic_resize
    removes these.
    """
    if x.ndim != 1:
        raise ShapeError("unique_with_counts: x is not a vector", expected="one axis", got=str(x.shape),
                         fix="flow.reshape(x, [-1])")
    return _unique_op(x, out_idx=dt.as_dtype(out_idx, "unique_with_counts: out_idx"))


def _sums(indices, values):
    found, at, _ = _find_unique(indices)
    rows = values.reshape(indices.size, -1)
    total = np.zeros_like(rows)
    np.add.at(total, at, rows)
    return (_fill_up(indices.size, found).reshape(indices.shape), total.reshape(values.shape),
            np.array([found.size], np.int64))


_sums_op = define_host("indexed_slices_reduce_sum(indices, values) -> y_indices, y_values, num_unique",
                       host=_sums, shape=lambda indices, values: (indices.shape, values.shape, (1,)),
                       dtype=lambda indices, values: (indices.dtype, values.dtype, dt.int64))


@front("IndexedSlicesReduceSum", "y_indices")
def indexed_slices_reduce_sum(indices, values):
    """Sum the slices of `values` that have the same index, for example the gradient of the rows of a table.

    Args:
        indices: integers.
        values: a blob of shape indices.shape + slice shape.

    Returns: (unique indices, sums of their slices, number of unique indices). The first two have the shapes
    of the arguments and are padded with 0.
    """
    if values.shape[:indices.ndim] != indices.shape:
        raise ShapeError("indexed_slices_reduce_sum: values and indices differ",
                         expected=f"values {indices.shape} + ...",
                         got=str(values.shape), fix="one slice of values for each index")
    return _sums_op(indices, values)


_resize_op = define_host("sync_dynamic_resize(x, size, *, axis) -> y", dynamic=["y"], shape=lambda x: x.shape,
                         host=lambda x, size, axis: x[(slice(None),
                                                       ) * axis + (slice(int(size.reshape(-1)[0])),)],
                         dtype=lambda x: x.dtype)


@front("SyncDynamicResize")
def sync_dynamic_resize(inputs, size, axis: int = 0, eager: bool = False):
    """Return the first `size` elements along an axis.

    Args:
        inputs: a blob or tensor.
        size: an int32 or int64 blob of shape (1,), whose value is known when the job runs.
        axis: the axis to cut.
        eager: has no effect.
    """
    axis = normal_axis(axis, inputs.ndim, "sync_dynamic_resize")
    if size.spec.size != 1 or size.dtype not in (dt.int32, dt.int64):
        raise ArgumentError("sync_dynamic_resize: size is not an integer", expected="int32 or int64 (1,)",
                            got=str(size.spec), fix="the num_unique of unique_with_counts")
    return _resize_op(inputs, size, axis=axis)


@front("CountNotFinite")
def count_not_finite(x):
    """Count the elements that are infinite or NaN.

    Args:
        x: a blob or tensor.

    Returns: int64 of shape (1,).
    """
    odd = ne(x - x, constant(shape=(), value=0, dtype=x.dtype))            # inf - inf and nan - nan are NaN
    return reshape(sum_op(cast(odd, dtype=dt.int64), axis=tuple(range(x.ndim)), keepdims=False), shape=(1,))


@front("MultiCountNotFinite")
def multi_count_not_finite(x: Sequence):
    """Count the elements of several blobs that are infinite or NaN.

    Args:
        x: a list of blobs.

    Returns: int64 of shape (1,).
    """
    if not isinstance(x, (list, tuple)) or not x:
        raise ArgumentError("multi_count_not_finite: x is no list", expected="a list of blobs",
                            got=repr(x)[:60], fix="count_not_finite counts in one")
    total = count_not_finite.__wrapped__(x[0])
    for other in x[1:]:
        total = total + count_not_finite.__wrapped__(other)
    return total


__all__ = ["count_not_finite", "indexed_slices_reduce_sum", "multi_count_not_finite", "sync_dynamic_resize",
           "unique_with_counts"]
