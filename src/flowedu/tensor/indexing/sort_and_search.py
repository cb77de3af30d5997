"""Sorting and searching, such as sort, topk, median, and searchsorted.

The module also contains functions whose result size depends on the data, such as unique and bincount.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowedu.core.eager.dispatch import TensorBase
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import REDUCING, cast, is_number, result_type, scalar
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError, AxisError, DTypeError, ShapeError
from flowedu.errors.once import inert
from flowedu.ops.checks import require_range
from flowedu.tensor import elementwise as E
from flowedu.tensor import return_types
from flowedu.tensor.arguments.dims import move_axis, one_dim, real_dim, reshaped
from flowedu.tensor.arguments.memory_check import room_for
from flowedu.tensor.arguments.types import Number
from flowedu.tensor.devices.conversion import beside
from flowedu.tensor.indexing.nonzero_positions import data, from_data
from flowedu.tensor.reductions import reduce as R
from flowedu.tensor.shapes import reshape_and_permute as S
from flowedu.tensor.shapes import split_and_flip as P

_op = REGISTRY.__getitem__
_GATHER, _DIM_GATHER = _op("gather"), _op("dim_gather")


def _last(what: str, x: Tensor, dim: int) -> tuple[Tensor, int]:
    """Return (x with `dim` as the last axis, the axis)."""
    axis = one_dim(dim, x.ndim, what)
    return move_axis(x, axis, x.ndim - 1), axis


def _sortable(x: Tensor) -> Tensor:
    c = REDUCING.get(x.dtype.name)
    return x if c is None else cast(x, c)


def _order(x: Tensor, descending: bool) -> Tensor:
    """Return the int64 positions that sort x along its last axis, stable."""
    return cast(_op("argsort").call((_sortable(x),), (bool(descending),)), dt.int64)


def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> return_types.sort:
    """Sort along an axis and return (values, indices).

    Equal elements keep their order, and NaN counts as the largest value.

    Args:
        input: tensor.
        dim: axis.
        descending: if True, the largest element is first.
        stable: accepted for compatibility; sorting is always stable.
    """
    if not input.ndim:
        one_dim(dim, 0, "sort")
        return return_types.sort(E.clone(input), beside(scalar(0, dt.int64), input))
    x, axis = _last("sort", input, dim)
    at = _order(x, descending)
    values = _DIM_GATHER.call((x, at), (x.ndim - 1,))
    return return_types.sort(move_axis(values, x.ndim - 1, axis), move_axis(at, x.ndim - 1, axis))


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the int64 positions that sort x along an axis.

    Args:
        input: tensor.
        dim: axis.
        descending: if True, the largest element is first.
        stable: accepted for compatibility; sorting is always stable.
    """
    if not input.ndim:
        return beside(scalar(0, dt.int64), input)
    x, axis = _last("argsort", input, dim)
    return move_axis(_order(x, descending), x.ndim - 1, axis)


def msort(input: Tensor) -> Tensor:
    """Return the values sorted along the first axis.

    Args:
        input: tensor.
    """
    return sort(input, 0)[0]


def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True,
         sorted: bool = True) -> return_types.topk:
    """Return (values, indices) of the k largest elements along an axis.

    Args:
        input: tensor.
        k: number of elements.
        dim: axis.
        largest: False returns the k smallest elements.
        sorted: accepted for compatibility; the result is always sorted, the best element first.
    """
    if not input.ndim:
        one_dim(dim, 0, "topk")
        return return_types.topk(E.clone(input), beside(scalar(0, dt.int64), input))
    x, axis = _last("topk", input, dim)
    if not 0 <= k <= x.shape[-1]:
        raise ShapeError("topk: selected index k out of range", expected=f"0 <= k <= {x.shape[-1]}",
                         got=f"k={k}", fix="k=min(k, x.shape[dim])")
    if largest:
        at = cast(_op("top_k").call((_sortable(x),), (k,)), dt.int64)
    else:
        at = P.part(_order(x, False), x.ndim - 1, 0, k)
    values = _DIM_GATHER.call((x, at), (x.ndim - 1,))
    return return_types.topk(move_axis(values, x.ndim - 1, axis), move_axis(at, x.ndim - 1, axis))


def _pick(result: Callable, x: Tensor, axis: int, at: Tensor, keepdim: bool) -> Any:
    """Return (values, indices) for one position `at` (..., 1) along the last axis of x, moved back to `axis`.
    """
    values = move_axis(_DIM_GATHER.call((x, at), (x.ndim - 1,)), x.ndim - 1, axis)
    at = move_axis(at, x.ndim - 1, axis)
    if not keepdim:
        shape = (*values.shape[:axis], *values.shape[axis + 1:])
        values, at = reshaped(values, shape), reshaped(at, shape)
    return result(values, at)


def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> return_types.kthvalue:
    """Return (values, indices) of the k-th smallest element along an axis.

    Args:
        input: tensor.
        k: rank of the element, counted from 1.
        dim: axis.
        keepdim: keep the axis, with size 1.
    """
    if not input.ndim:
        one_dim(dim, 0, "kthvalue")
        if k != 1:
            raise ShapeError("kthvalue: selected number k out of range for dimension",
                             expected="k=1 for a 0-dim tensor", got=f"k={k}", fix="k=1")
        return return_types.kthvalue(E.clone(input), beside(scalar(0, dt.int64), input))
    x, axis = _last("kthvalue", input, dim)
    if not 1 <= k <= x.shape[-1]:
        raise ShapeError("kthvalue: selected number k out of range for dimension",
                         expected=f"1 <= k <= {x.shape[-1]}", got=f"k={k}", fix="k counts from 1")
    return _pick(return_types.kthvalue, x, axis, P.part(_order(x, False), x.ndim - 1, k - 1, k), keepdim)


def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median, or NaN if an element is NaN.

    If there are two middle elements, the median is the smaller one.

    Args:
        input: tensor.
        dim: axis; the result is then (values, indices). By default, the median of all elements is returned.
        keepdim: keep the axis, with size 1.
    """
    if dim is None:
        if not input._numel:
            return beside(scalar(float("nan"), input.dtype), input)
        return reshaped(median(reshaped(input, (input._numel,)), 0)[0], ())
    if not input.ndim:
        one_dim(dim, 0, "median")
        return return_types.median(E.clone(input), beside(scalar(0, dt.int64), input))
    x, axis = _last("median", input, dim)
    if not x.shape[-1]:
        raise AxisError("median: there is no median of zero elements", expected="one element or more",
                        got=str(x.shape), fix="check that the input is not empty")
    order, n = _order(x, False), x.shape[-1]
    at = P.part(order, x.ndim - 1, (n - 1) // 2, (n - 1) // 2 + 1)
    if x.dtype.is_floating_point:                          # NaNs come last
        last = P.part(order, x.ndim - 1, n - 1, n)
        at = E.where(E.isnan(_DIM_GATHER.call((x, last), (x.ndim - 1,))), last, at)
    return _pick(return_types.median, x, axis, at, keepdim)


def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> return_types.mode:
    """Return (values, indices) of the most frequent element along an axis.

    If several elements are equally frequent, the smallest one is returned.

    Args:
        input: tensor.
        dim: axis.
        keepdim: keep the axis, with size 1.
    """
    if not input.ndim:
        one_dim(dim, 0, "mode")
        return return_types.mode(E.clone(input), beside(scalar(0, dt.int64), input))
    x, axis = _last("mode", input, dim)
    at = reshaped(_op("mode_place")(x), (*x.shape[:-1], 1))
    return _pick(return_types.mode, x, axis, at, keepdim)


def quantile(input: Tensor, q: Tensor | float | Sequence[float], dim: int | None = None,
             keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """Return quantiles, or NaN if an element is NaN.

    Args:
        input: floating tensor.
        q: number in [0, 1], or a vector of such numbers.
        dim: axis; default: all elements.
        keepdim: keep the axis, with size 1.
        interpolation: "linear", "lower", "higher", "midpoint", or "nearest".
    """
    from flowedu.tensor.construction.creation import tensor
    from flowedu.tensor.construction.destination import home
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise ArgumentError("quantile: unknown interpolation", got=repr(interpolation),
                            expected='"linear", "lower", "higher", "midpoint" or "nearest"',
                            fix="leave it out: linear")
    qs = q if isinstance(q, TensorBase) else tensor(q, dtype=input.dtype, device=home(input))
    qs.uniform |= qs is not q
    if dim is not None:
        one_dim(dim, input.ndim, "quantile")
    flat = dim is None or not input.ndim
    x = reshaped(input, (input._numel,)) if flat else input
    axis = 0 if flat or dim is None else one_dim(dim, x.ndim, "quantile")
    x = move_axis(sort(x, axis)[0], axis, x.ndim - 1)
    place = reshaped(qs, (qs._numel,)) * float(x.shape[-1] - 1)
    low = E.floor(place)
    w = {"linear": place - low, "lower": place * 0, "higher": cast(E.gt(place, low), x.dtype), "midpoint":
         cast(E.gt(place, low), x.dtype) * 0.5, "nearest": E.round(place) - low}[interpolation]
    i = cast(low, dt.int64)
    a = _GATHER.call((x, i), (x.ndim - 1,))
    # The same element if nothing is between.
    b = _GATHER.call((x, cast(E.ceil(place), dt.int64)), (x.ndim - 1,))
    # NaN comes last in the sorted order
    nan = E.isnan(P.part(x, x.ndim - 1, x.shape[-1] - 1, x.shape[-1]))
    y = move_axis(E.where(nan, float("nan"), E.lerp(a, b, w)), x.ndim - 1, 0)     # (q, other axes)
    if keepdim:
        shape = [1] * input.ndim if flat else [*x.shape[:-1][:axis], 1, *x.shape[:-1][axis:]]
        y = reshaped(y, (qs._numel, *shape))
    return y if qs.ndim else reshaped(y, y.shape[1:])


# ---- lookup
def searchsorted(sorted_sequence: Tensor, input: Tensor | Number, *, out_int32: bool = False,
                 right: bool = False, side: str | None = None, sorter: Tensor | None = None) -> Tensor:
    """Return the position at which each value would be inserted into a sorted sequence.

    Args:
        sorted_sequence: sorted vector, or tensor that is sorted along its last axis. Its other axes are those
            of the input.
        input: tensor of values, or a number.
        out_int32: return int32 instead of int64.
        right: if True, return the position after equal elements instead of before them.
        side: "left" or "right", an alternative to `right`; default: None.
        sorter: int64 positions that sort the sequence if it is not sorted, from argsort; default: None.
    """
    if sorter is not None:
        sorted_sequence = _DIM_GATHER.call((sorted_sequence, sorter), (sorted_sequence.ndim - 1,))
    right = right or side == "right"
    if is_number(input) and not sorted_sequence.dtype.is_floating_point:
        input, right = _whole(input, right, *sorted_sequence.dtype.limits)
    x = input if isinstance(input, TensorBase) else scalar(input, result_type(sorted_sequence, input))
    y = _op("searchsorted")(sorted_sequence, x, right=right)
    return cast(y, dt.int32) if out_int32 else y


def _whole(x: Any, right: bool, low: int, high: int) -> tuple[int, bool]:
    """Return (integer in [low, high], right) with the position of x among integers; NaN comes last."""
    if low <= x <= high:
        return (math.floor if right else math.ceil)(x), right
    return (low, False) if x < low else (high, True)


def bucketize(input: Tensor | Number, boundaries: Tensor, *, out_int32: bool = False,
              right: bool = False) -> Tensor:
    """Return the index of the bucket that contains each value; `boundaries` separates the buckets.

    Args:
        input: tensor of values, or a number.
        boundaries: sorted vector.
        out_int32: return int32 instead of int64.
        right: if True, values equal to a boundary belong to the bucket after it, else to the one before it.
    """
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


def isin(elements: Tensor | Number, test_elements: Tensor | Number, *, assume_unique: bool = False,
         invert: bool = False) -> Tensor:
    """Return True for each element that is equal to one of the test elements.

    Args:
        elements: tensor of any shape, or a number.
        test_elements: tensor of any shape, or a number.
        assume_unique: has no effect; True emits a warning once.
        invert: if True, return the opposite.
    """
    inert("isin(assume_unique)", bool(assume_unique), False, "repeated elements are looked up as fast")
    if not isinstance(test_elements, TensorBase):
        found = E.eq(elements, test_elements)
    elif not isinstance(elements, TensorBase):
        found = E.any(E.eq(test_elements, elements))
    else:
        found = E.any(E.eq(S.unsqueeze(elements, -1), S.ravel(test_elements)), -1)
    return E.logical_not(found) if invert else found


def in_top_k(targets: Tensor, predictions: Tensor, k: int) -> Tensor:
    """Return a bool tensor (n,), True where class targets[i] is one of the k largest of predictions[i].

    Args:
        targets: integers (n,).
        predictions: scores (n, classes).
        k: number of classes. A class with the same score as the k-th largest one is included.
    """
    own = _DIM_GATHER.call((predictions, S.unsqueeze(targets, 1)), (1,))
    return E.lt(R.sum(cast(E.gt(predictions, own), dt.int32), 1), k)


def one_hot(input: Tensor, num_classes: int = -1, on_value: Number = 1, off_value: Number = 0) -> Tensor:
    """Return a tensor with a new last axis that contains 1 at the index and 0 elsewhere.

    The dtype is int64, or float32 if `on_value` or `off_value` is a float.

    Args:
        input: integers of any shape.
        num_classes: size of the new axis; default: -1, the largest index plus 1.
        on_value: value at the index.
        off_value: value elsewhere.
    """
    if input.dtype not in (dt.int64, dt.int32):
        raise DTypeError("one_hot: one_hot is only applicable to index tensor", expected="int64 or int32",
                         got=input.dtype.name, fix="x.long()")
    if num_classes == -1:
        a = data("one_hot without num_classes", input)
        if not a.size:
            raise ArgumentError("one_hot: Can not infer total number of classes from empty tensor.",
                                expected="num_classes", got=str(a.shape), fix="num_classes=10, say")
        num_classes = int(a.max()) + 1
    input = require_range(input, 0, num_classes - 1,
                          problem="one_hot: Class values must be smaller than num_classes",
                          expected=f"values in [0, {num_classes})", fix="num_classes=int(x.max()) + 1")
    whole = isinstance(on_value, int) and isinstance(off_value, int)
    return _op("one_hot")(input, depth=num_classes, on_value=float(on_value), off_value=float(off_value),
                          dtype=dt.int64 if whole else dt.float32)


# ---- functions whose result size depends on the data
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Return the elements where the mask is True, as a vector.

    Args:
        input: tensor.
        mask: bool tensor; the shapes broadcast.
    """
    if mask.dtype is not dt.bool_:
        raise DTypeError("masked_select: expected BoolTensor for mask", expected="bool", got=mask.dtype.name,
                         fix="compare first: x.masked_select(mask != 0)")
    x, mask = S.broadcast_tensors(input, mask)
    places = np.flatnonzero(data("masked_select", mask).reshape(-1)).astype(np.int64)
    return _GATHER.call((S.ravel(x), from_data(input, places)), (0,))


def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
           dim: int | None = None) -> Any:
    """Return the distinct elements in order, and optionally their inverse indices and counts.

    Args:
        input: tensor.
        sorted: accepted for compatibility; the result is always sorted.
        return_inverse: also return the position of each element in the result.
        return_counts: also return the number of occurrences.
        dim: axis whose distinct slices are returned; default: None, single elements.
    """
    a = data("unique", input)
    if dim is not None:
        dim = one_dim(dim, input.ndim, "unique")
    values, inverse, counts = np.unique(a, return_inverse=True, return_counts=True, axis=dim, equal_nan=False)
    out = [from_data(input, values, input.dtype)]
    if return_inverse:
        out.append(from_data(input, np.reshape(inverse, tuple(input.shape) if dim is None
                                             else -1).astype(np.int64)))
    if return_counts:
        out.append(from_data(input, counts.astype(np.int64)))
    return out[0] if len(out) == 1 else tuple(out)


def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Any:
    """Return the elements, except for elements that equal their predecessor.

    Args:
        input: tensor.
        return_inverse: also return the position of each element in the result.
        return_counts: also return the length of each run.
        dim: axis whose slices are compared; default: None, single elements.
    """
    a = data("unique_consecutive", input)
    dim = dim if dim is None else real_dim(dim, a.ndim, "unique_consecutive")
    rows = a.reshape(-1) if dim is None else np.moveaxis(a, dim, 0)
    flat = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    new = np.r_[True, (flat[1:] != flat[:-1]).any(axis=1)] if len(flat) else np.zeros(0, bool)
    values = rows[new]
    out = [from_data(input, values if dim is None else np.moveaxis(values, 0, dim), input.dtype)]
    number = np.cumsum(new) - 1
    if return_inverse:
        out.append(reshaped(from_data(input, number.astype(np.int64)), a.shape if dim is None else (-1,)))
    if return_counts:
        out.append(from_data(input, np.bincount(number, minlength=len(values)).astype(np.int64)))
    return out[0] if len(out) == 1 else tuple(out)


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return the number of occurrences of 0, 1, 2, ... in a vector.

    Args:
        input: vector of integers of at least 0.
        weights: weight of each element, which is added instead of 1; default: None.
        minlength: smallest size of the result.
    """
    a = data("bincount", input)
    if a.ndim != 1 or a.dtype.kind not in "iu" or (a < 0).any():
        raise ArgumentError("bincount: bincount only supports 1-d non-negative integral inputs.",
                            got=f"{input.dtype.name} {tuple(input.shape)}",
                            expected="a vector of integers of 0 or more", fix="x.flatten().long()")
    size = max(int(a.max(initial=-1)) + 1, minlength)
    ones = weights if weights is not None else S.expand(beside(scalar(1, dt.int64), input), a.size)
    if weights is not None and ones.dtype not in (dt.float32, dt.float64):
        ones = cast(ones, dt.float64)
    places = cast(reshaped(input, (a.size, 1)), dt.int64)
    return _op("scatter_nd")(S.contiguous(ones), places, shape=(size,))


def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Return the number of elements in each of several bins of equal width.

    Args:
        input: tensor of any shape.
        bins: number of bins.
        min: lower end; if min and max are 0, the range of the data is used.
        max: upper end.
    """
    a = data("histc", input)
    low, high = (float(a.min()), float(a.max())) if min == max == 0 and a.size else (min, max)
    if bins < 1 or not -math.inf < low <= high < math.inf:
        raise ArgumentError("histc: bins must be > 0, min and max finite, max not below min",
                            got=f"{bins}, {low}, {high}",
                            expected="bins >= 1, min <= max",
                            fix="give min and max; flow.nan_to_num cleans the data")
    low, high = (low - 1, high + 1) if low == high else (low, high)
    with room_for("histc", Spec((bins + 1,), dt.float64)):
        counts, _ = np.histogram(a, bins=bins, range=(low, high))
    return cast(from_data(input, counts), input.dtype)
