"""Ops whose meaning on the CPU is a Python function, made of others on a GPU: what a device does with its part of an axis
that is read at some places only (ops/part.py). The part gets one more row, of zeros: there others' indices point."""
from __future__ import annotations

from collections.abc import Callable

from flowedu.core.ops.define import REGISTRY, Op
from flowedu.core.ops.tensor import Tensor
from flowedu.tensor.elementwise import clamp, where

_concat, _constant, _slice = REGISTRY["concat"], REGISTRY["constant"], REGISTRY["slice"]


def _at(index: Tensor, first: int, rows: int, size: int) -> Tensor:
    """Where in the part, with a row of zeros behind it, an index points; out of range if it is outside of the axis."""
    wrong = where(index < 0, index, clamp(index, min=rows + 1))
    there = where((index >= 0) & (index < size), index * 0 + rows, wrong)
    return where((index >= first) & (index < first + rows), index - first, there)


def _longer(x: Tensor, axis: int) -> Tensor:
    """x with a row of zeros behind it."""
    shape = (*x.shape_()[:axis], 1, *x.shape_()[axis + 1:])
    zero = _constant(shape=shape, value=0, dtype=x.dtype)
    return _concat(x, zero, axis=axis)


def _shorter(x: Tensor, axis: int, rows: int) -> Tensor:
    """x without what is behind so many rows."""
    stop = tuple(rows if d == axis else n for d, n in enumerate(x.shape_()))
    return _slice(x, start=(0,) * x.ndim, stop=stop, step=(1,) * x.ndim)


def _gather(op: Op) -> Callable:
    return lambda x, index, axis, first, size: op(
        _longer(x, axis), _at(index, first, x.shape_()[axis], size), axis=axis)


def _gather_grad(op: Op) -> Callable:
    def composed(dy, index, axis, first, rows, size):
        added = dy if dy.dtype.is_floating_point else dy.double()            # gather_grad sums floats only
        dx = op(added, _at(index, first, rows, size), axis=axis, size=rows + 1)
        return _shorter(dx.to(dy.dtype), axis, rows)
    return composed


def _slice_part(x: Tensor, start, stop, step, first) -> Tensor:
    shape, here, there = [], [], []
    for n, a, b, s, f in zip(x.shape_(), start, stop, step, first):
        count = max(-(-(b - a) // s), 0)
        low = max(-(-(f - a) // s), 0)                       # the first j for which a + j * s lies in this part
        high = max(min(-(-(f + n - a) // s), count), low)
        shape.append(count)
        there.append((low, high))
        here.append((a + low * s - f, a + (high - 1) * s - f + 1) if high > low else (0, 0))
    if any(low == high for low, high in there):
        return _constant(shape=tuple(shape), value=0, dtype=x.dtype)
    cut = _slice(x, start=tuple(a for a, _ in here), stop=tuple(b for _, b in here), step=tuple(step))
    start, stop = zip(*there)
    return REGISTRY["slice_grad"](cut, shape=tuple(shape), start=start, stop=stop, step=(1,) * x.ndim)


COMPOSED: dict[Op, Callable[..., Tensor]] = {
    REGISTRY["slice_part"]: _slice_part,
    **{REGISTRY[f"{name}_part"]: _gather(REGISTRY[name]) for name in ("gather", "dim_gather")},
    **{REGISTRY[f"{name}_part_grad"]: _gather_grad(REGISTRY[f"{name}_grad"]) for name in ("gather", "dim_gather")}}
