"""Steps of loss scaling shared by jobs and nn.amp: scale, unscale, check for overflow, skip, rescale.

The policies are in oneflow04/optim/loss_scale.py (jobs) and nn/amp/grad_scaler.py. The functions work on
tensors and on values of a graph alike; a scale is a number, or a float32 value of shape (1,).
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowedu.core.ops.elementwise import add, both, eq, ge, lt, mul, reciprocal, where
from flowedu.core.ops.reduce import sum as sum_op
from flowedu.core.ops.view import assign, cast, constant, reshape
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec


def seed(spec: Spec, factor: Any = 1.0) -> Any:
    """Return the initial gradient of the backward pass: a value like the loss, filled with `factor`."""
    if isinstance(factor, float):
        return constant(shape=spec.shape, value=factor, dtype=spec.dtype)
    ones = constant(shape=spec.shape, value=1.0, dtype=spec.dtype)
    return mul(ones, _as(reshape(factor, shape=()), spec.dtype))


def divided(gradients: Sequence[Any], factor: Any) -> list[Any]:
    """Return the gradients divided by `factor`, a tensor or a value of a graph."""
    inverse = reciprocal(reshape(factor, shape=()))
    return [g * _as(inverse, g.dtype) for g in gradients]


def all_finite(gradients: Sequence[Any]) -> Any:
    """Return a bool value of shape (1,), True if no gradient contains inf or NaN."""
    total = None
    for g in gradients:                                      # x - x is 0, or nan
        part = reshape(sum_op(g - g, axis=tuple(range(g.ndim)), keepdims=False), shape=(1,))
        part = _as(part, dt.float32)
        total = part if total is None else total + part
    return eq(total, total)


def step_or_none(step: Any, finite: Any) -> Any:
    """Return the step number for the update ops, or -1 to make them skip the step (core/ops/update.py)."""
    return where(finite, step, constant(shape=(1,), value=-1, dtype=dt.int64))


def follow(scale: Any, good: Any, finite: Any, period: int, grown: Any, shrunk: Any) -> None:
    """Write the factor of the next step into `scale`, and the number of good steps into `good`.

    Args:
        finite: True if this step was good.
        period: number of good steps in a row after which the factor becomes `grown`. After a bad step it
            becomes `shrunk`.
    """
    one, none, many = (constant(shape=(1,), value=n, dtype=dt.int64) for n in (1, 0, period))
    steps = add(good, one)
    full = ge(steps, many)
    assign(where(finite, where(full, grown, scale), shrunk), scale)
    assign(where(both(finite, lt(steps, many)), steps, none), good)


def _as(x: Any, dtype: dt.dtype) -> Any:
    return x if x.dtype is dtype else cast(x, dtype=dtype)
