"""Steps of loss scaling shared by jobs and nn.amp: scale, unscale, check for overflow, skip, rescale.

The policies are in oneflow04/optim/loss_scale.py (jobs) and nn/amp/grad_scaler.py. The functions work on
tensors and on values of a graph alike; a scale is a number, or a float32 value of shape (1,).
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowedu.core.ops.define import REGISTRY
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec


def seed(spec: Spec, factor: Any = 1.0) -> Any:
    """The gradient of a loss with which the backward pass begins: the factor, everywhere."""
    e = REGISTRY
    if isinstance(factor, float):
        return e["constant"](shape=spec.shape, value=factor, dtype=spec.dtype)
    ones = e["constant"](shape=spec.shape, value=1.0, dtype=spec.dtype)
    return e["mul"](ones, _as(e["reshape"](factor, shape=()), spec.dtype))


def divided(gradients: Sequence[Any], factor: Any) -> list[Any]:
    """The gradients of the loss as it was, for a factor that is a value."""
    inverse = REGISTRY["reciprocal"](REGISTRY["reshape"](factor, shape=()))
    return [g * _as(inverse, g.dtype) for g in gradients]


def all_finite(gradients: Sequence[Any]) -> Any:
    """A bool value of shape (1,): whether no gradient has an element that is inf or nan."""
    e, total = REGISTRY, None
    for g in gradients:                                      # x - x is 0, or nan
        part = e["reshape"](e["sum"](g - g, axis=tuple(range(g.ndim)), keepdims=False), shape=(1,))
        part = _as(part, dt.float32)
        total = part if total is None else total + part
    return e["eq"](total, total)


def step_or_none(step: Any, finite: Any) -> Any:
    """The number of the step for the update ops, or -1, with which they change nothing (core/ops/update.py)."""
    return REGISTRY["where"](finite, step, REGISTRY["constant"](shape=(1,), value=-1, dtype=dt.int64))


def follow(scale: Any, good: Any, finite: Any, period: int, grown: Any, shrunk: Any) -> None:
    """Write the factor of the next step into `scale`, and the number of good steps since it last changed into `good`.

    Args:
        finite: whether this step was good. period: after how many good ones in a row the factor is `grown`; after one that
            was not it is `shrunk`.
    """
    e = REGISTRY
    one, none, many = (e["constant"](shape=(1,), value=n, dtype=dt.int64) for n in (1, 0, period))
    steps = e["add"](good, one)
    full = e["ge"](steps, many)
    e["assign"](e["where"](finite, e["where"](full, grown, scale), shrunk), scale)
    e["assign"](e["where"](e["both"](finite, e["lt"](steps, many)), steps, none), good)


def _as(x: Any, dtype: dt.dtype) -> Any:
    return x if x.dtype is dtype else REGISTRY["cast"](x, dtype=dtype)
