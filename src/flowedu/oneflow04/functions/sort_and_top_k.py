"""Sorting functions of OneFlow 0.4 for blobs and tensors: sort, argsort, top_k, and in_top_k."""
from __future__ import annotations

from flowedu import ops
from flowedu.core.ops.reduce import sum as sum_op
from flowedu.core.ops.view import cast, reshape, transpose
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, CheckError, DTypeError, ShapeError
from flowedu.oneflow04.functions.axes import normal_axis
from flowedu.ops.front import front
from flowedu.ops.order import argsort as argsort_op
from flowedu.ops.order import top_k as top_k_op
from flowedu.ops.scatter import dim_gather

_e = ops.elementwise


def exchange_axes(x, a: int, b: int):
    """Return x with two axes exchanged, or x itself if they are the same axis."""
    perm = list(range(x.ndim))
    perm[a], perm[b] = perm[b], perm[a]
    return x if a == b else transpose(x, perm=tuple(perm))


def _positions(what: str, x, axis, direction: str):
    """Return (axis from the front, the indices that sort x along its last axis after a swap with `axis`)."""
    if isinstance(axis, str):                       # before 0.4 the second argument was the direction
        axis, direction = -1, axis
    if direction not in ("ASCENDING", "DESCENDING"):
        raise CheckError(f"{what}: unknown direction", expected='"ASCENDING" or "DESCENDING"',
                         got=repr(direction), fix=f'{what}(x, direction="DESCENDING") puts the largest first')
    axis = normal_axis(axis, x.ndim, what)
    return axis, argsort_op(exchange_axes(x, axis, x.ndim - 1), descending=direction == "DESCENDING")


@front("ArgSort")
def argsort(input, axis: int = -1, direction: str = "ASCENDING"):
    """Return the indices that sort `input` along an axis, as int32.

    Args:
        input: a blob or tensor.
        axis: the axis to sort.
        direction: "ASCENDING" or "DESCENDING". Equal elements keep their order; NaN is the largest value.
    """
    axis, at = _positions("argsort", input, axis, direction)
    return exchange_axes(at, axis, input.ndim - 1)


@front("Sort")
def sort(input, axis: int = -1, direction: str = "ASCENDING"):
    """Sort `input` along an axis.

    Args:
        input: a blob or tensor.
        axis: the axis to sort.
        direction: "ASCENDING" or "DESCENDING".
    """
    axis, at = _positions("sort", input, axis, direction)
    last = input.ndim - 1
    return exchange_axes(dim_gather(exchange_axes(input, axis, last), at, axis=last), axis, last)


@front("TopK")
def top_k(input, axis: int = -1, k: int = 1, sorted: bool = True):
    """Return the indices of the `k` largest elements along an axis, as int32.

    The largest element comes first; equal elements keep their order. flow.dim_gather returns the elements.

    Args:
        input: a blob or tensor.
        axis: the axis to search.
        k: the number of elements; a shorter axis returns all.
        sorted: has no effect; the indices are always sorted.
    """
    if not isinstance(k, int) or k < 1:
        raise ArgumentError("math.top_k: k is not a number of elements", expected="an int of 1 or more",
                            got=repr(k), fix="math.top_k(x, k=5)")
    axis, last = normal_axis(axis, input.ndim, "math.top_k"), input.ndim - 1
    return exchange_axes(top_k_op(exchange_axes(input, axis, last), k=min(k, input.shape[axis])), axis, last)


@front("InTopK")
def in_top_k(targets, predictions, k: int):
    """Check whether the class of each target is among the `k` largest predictions.

    Args:
        targets: class indices, int32 or int64, of shape (n,).
        predictions: a blob of shape (n, classes). NaN counts as the largest value.
        k: the number of predictions that count. Ties at the boundary are inside.

    Returns: int8 of shape (n,).
    """
    if predictions.ndim != 2 or targets.shape != predictions.shape[:1]:
        raise ShapeError("math.in_top_k: targets and predictions do not fit",
                         got=f"targets {targets.shape}, predictions {predictions.shape}",
                         expected="targets (n,), predictions (n, classes), in this order",
                         fix="in_top_k(labels, logits, k=5)")
    if targets.dtype not in (dt.int32, dt.int64):
        raise DTypeError("math.in_top_k: targets have the wrong element type", expected="int32 or int64",
                         got=targets.dtype.name, fix="flow.cast(targets, flow.int32)")
    own = dim_gather(predictions, reshape(targets, shape=(*targets.shape, 1)), axis=1)
    not_larger = sum_op(cast(_e.less_equal(predictions, own), dtype=dt.int32), axis=(1,))
    return _e.greater(not_larger, predictions.shape[1] - k)


__all__ = ["argsort", "in_top_k", "sort", "top_k"]
