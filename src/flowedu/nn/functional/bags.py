"""Sums, means, or maxima of the rows of a table, one result per bag of indices (embedding_bag)."""
from __future__ import annotations

from math import inf

from flowedu.core.ops.promote import cast
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, ShapeError
from flowedu.errors.once import inert
from flowedu.nn.functional.dense import embedding
from flowedu.ops.checks import require_range
from flowedu.tensor import Tensor
from flowedu.tensor import elementwise as E
from flowedu.tensor.construction.creation import arange, full, zeros
from flowedu.tensor.devices.conversion import use_device_of
from flowedu.tensor.indexing.gather_scatter import gather, index_add, scatter_reduce
from flowedu.tensor.indexing.sort_and_search import searchsorted

MODES = ("sum", "mean", "max")


def _bags(input: Tensor, offsets: Tensor | None, include_last_offset: bool) -> tuple[Tensor, int]:
    """Return the number of its bag for each index of a flat input, and the number of bags."""
    if input.ndim == 2:
        if offsets is not None:
            raise ArgumentError("embedding_bag: if input is 2D, then offsets has to be None, as input is "
                                "treated is a mini-batch of fixed length sequences", expected="offsets=None",
                                got=f"offsets {tuple(offsets.shape)}",
                                fix="input.reshape(-1), if the offsets hold")
        n, length = input.shape
        with use_device_of(input):
            return arange(n).unsqueeze(1).expand(n, length).reshape(-1), n
    if input.ndim != 1 or offsets is None or offsets.ndim != 1:
        raise ShapeError("embedding_bag: offsets has to be a 1D Tensor, input 1D or 2D",
                         expected="input (bags, length), or input (indices,) and offsets (bags,)",
                         got=f"input {tuple(input.shape)}, offsets "
                         f"{None if offsets is None else tuple(offsets.shape)}",
                         fix="offsets: where each bag begins in the input, from 0")
    if include_last_offset and not offsets.shape[0]:
        raise ShapeError("embedding_bag: include_last_offset needs at least one offset",
                         expected="offsets (bags + 1,)", got="no offset", fix="flow.tensor([0]) for no bags")
    n = offsets.shape[0] - bool(include_last_offset)
    offsets = _checked_offsets(offsets, input.shape[0])
    with use_device_of(input):
        bag = searchsorted(offsets, arange(input.shape[0]), right=True) - 1
        return E.clamp(bag, min=0, max=n), n


def _checked_offsets(offsets: Tensor, length: int) -> Tensor:
    """Return the offsets after checking that they start at 0, never decrease, and end within the input."""
    offsets = require_range(
        offsets, 0, 0, tested=offsets[:1], problem="embedding_bag: offsets[0] has to be 0, i.e., the first "
        "sequence in the mini-batch has to start from position 0", expected="0", fix="flow.tensor([0, ...])")
    offsets = require_range(
        offsets, 0, tested=offsets[1:] - offsets[:-1], problem="embedding_bag: offsets decrease",
        expected="steps of 0 or more between offsets",
        fix="offsets.sort().values, with the bags in the same order")
    return require_range(
        offsets, 0, length, problem="embedding_bag: an offset is beyond the input",
        expected=f"at most {length}, the number of indices", fix="begin each bag within the input")


def _maxima(rows: Tensor, bag: Tensor, n: int) -> Tensor:
    """Return the element-wise maxima of each bag's rows; the first of equal elements gets the gradient."""
    length, at = rows.shape[0], bag.unsqueeze(1).expand(rows.shape)               # eager: scatter_reduce is
    if not length:
        # With the history of no rows.
        return zeros(n, rows.shape[1], dtype=rows.dtype) + rows.sum(0)
    own = rows.detach()
    top = scatter_reduce(zeros(n + 1, rows.shape[1], dtype=rows.dtype), 0, at, own, "amax",
                         include_self=False)
    place = E.where(E.eq(own, top[bag]), arange(length).unsqueeze(1), length - 1)
    first = scatter_reduce(full((n + 1, rows.shape[1]), length, dtype=dt.int64), 0, at, place, "amin")[:n]
    return E.where(E.lt(first, length), gather(rows, 0, E.clamp(first, max=length - 1)), 0.0)


def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None,
                  norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean",
                  sparse: bool = False,
                  per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
                  padding_idx: int | None = None) -> Tensor:
    """Return the sum, mean, or maximum of the rows of `weight` for each bag of indices.

    Args:
        input: indices, (bags, length), or (indices,) with `offsets`.
        weight: the table, (rows, size).
        offsets: start of each bag in a flat input, (bags,); default: None, for an input with two axes.
        max_norm: largest norm of a selected row; default: no limit. Rows with a larger norm are scaled down
            in place before they are read (eager mode only).
        norm_type: order p of the norm that `max_norm` limits.
        scale_grad_by_freq: divide the gradient of a row by the number of its uses in the batch.
        mode: "sum", "mean", or "max". With `offsets`, "max" works only in eager mode.
        sparse: accepted for compatibility; gradients are dense.
        per_sample_weights: factor of each index, for "sum" only; default: 1.
        include_last_offset: the last offset is the end of the last bag; indices after it belong to no bag.
        padding_idx: index that is left out of the bags; default: none.

    Returns:
        A tensor (bags, size), with zeros for empty bags.
    """
    inert("nn.functional.embedding_bag(sparse)", bool(sparse), False, "gradients are dense")
    if mode not in MODES:
        raise ArgumentError("embedding_bag: mode has to be one of sum, mean, max",
                            expected='"sum", "mean" or "max"', got=repr(mode), fix='mode="mean"')
    if per_sample_weights is not None and mode != "sum":
        raise ArgumentError("embedding_bag: per_sample_weights is only supported for mode='sum'",
                            expected='mode="sum"',
                            got=f"mode={mode!r}", fix="embedding(input, weight), then multiply and reduce")
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ShapeError("embedding_bag: expected per_sample_weights to have the same shape as input",
                         expected=str(tuple(input.shape)), got=str(tuple(per_sample_weights.shape)),
                         fix="a factor for each index")
    bag, n = _bags(input, offsets, include_last_offset)
    flat = input.reshape(-1)
    rows = embedding(flat, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)
    if padding_idx is not None:                     # to a bag of their own behind the last
        bag = E.where(E.eq(flat, padding_idx % weight.shape[0]), n, bag)
    with use_device_of(rows):
        if mode == "max" and offsets is None and input.shape[1]:
            unread = E.eq(bag, n).reshape(n, -1, 1)
            y = E.where(unread, -inf, rows.reshape(n, -1, rows.shape[1])).max(1).values
            return E.where(unread.all(1), 0.0, y)
        if mode == "max":
            return _maxima(rows, bag, n)
        y = zeros(n + 1, weight.shape[1], dtype=rows.dtype)
        if per_sample_weights is not None:
            rows = rows * cast(per_sample_weights.reshape(-1, 1), rows.dtype)
        y = index_add(y, 0, bag, rows)[:n]
        if mode == "sum":
            return y
        counts = index_add(zeros(n + 1, dtype=dt.int64), 0, bag, E.eq(bag, bag).long())[:n]
    return y / cast(E.clamp(counts, min=1), y.dtype).unsqueeze(1)


__all__ = ["embedding_bag"]
