"""flow.optimizer.loss_scale: factors that keep small gradients above 0.

The loss is multiplied by a factor before the backward pass, so that gradients do not vanish on the way, and the gradients
are divided by it before penalties, clipping and update. A factor that is a power of two changes no bit of a result, unless
something leaves the range of its element type. With a dynamic policy that is what is looked for: if a gradient is inf or
nan, nothing is updated in that step, and the next one tries a smaller factor.

The functions work on tensors and on values of a graph alike; a factor is a number, or a float32 value of shape (1,).
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from flowedu.core.ops.define import REGISTRY
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec
from flowedu.oneflow04.initializers import constant_initializer, zeros_initializer
from flowedu.optim.checks import count, number

FACTOR, COUNTER = Spec((1,), dt.float32), Spec((1,), dt.int64)
LARGEST = 3.4028234663852886e38                     # of float32


class LossScalePolicy:
    """Base of the policies: a factor for every step."""

    def factor(self, variable: Callable[[str, Spec, Callable], Any]) -> Any:
        """The factor of this step. variable(name, Spec, initializer): what is remembered from step to step."""
        raise NotImplementedError

    def finish(self, variable: Callable[[str, Spec, Callable], Any], finite: Any) -> None:
        """After the updates: `finite`, a bool value of shape (1,), says whether they were made. Only called for a policy
        that is `dynamic`."""

    dynamic = False


class StaticLossScalePolicy(LossScalePolicy):
    """One factor for the whole training. Gradients that overflow are not looked for."""

    def __init__(self, loss_scale_factor: float):
        self.loss_scale_factor = number("loss_scale.static_loss_scale", "loss_scale_factor", loss_scale_factor, above=0)

    def factor(self, variable):
        return self.loss_scale_factor


class DynamicLossScalePolicy(LossScalePolicy):
    """A factor that is multiplied by `multiplier` after `increment_period` steps without overflow, and divided by it (down
    to 1) after a step with one, which updates nothing.

    It is remembered as the variable System-Train-DynamicLossScale-<job>-LossScale, with the number of good steps since it
    last changed in ...-GoodStepCounter; checkpoints hold both.
    """

    dynamic = True

    def __init__(self, initial_loss_scale: float = 2 ** 30, increment_period: int = 2000, multiplier: float = 2.0):
        what = "loss_scale.dynamic_loss_scale"
        self.initial_loss_scale = number(what, "initial_loss_scale", initial_loss_scale, above=0)
        self.increment_period = count(what, "increment_period", increment_period, 1)
        self.multiplier = number(what, "multiplier", multiplier, above=1)

    def factor(self, variable):
        return variable("LossScale", FACTOR, constant_initializer(self.initial_loss_scale))

    def finish(self, variable, finite):
        e, scale = REGISTRY, self.factor(variable)
        good = variable("GoodStepCounter", COUNTER, zeros_initializer())
        one, none, period = (e["constant"](shape=(1,), value=n, dtype=dt.int64) for n in (1, 0, self.increment_period))
        steps = e["add"](good, one)
        full = e["ge"](steps, period)
        grown = e["where"](full, e["minimum"](scale * self.multiplier, LARGEST), scale)
        shrunk = e["maximum"](scale / self.multiplier, 1.0)
        e["assign"](e["where"](finite, grown, shrunk), scale)
        e["assign"](e["where"](e["both"](finite, e["lt"](steps, period)), steps, none), good)


loss_scale = SimpleNamespace(static_loss_scale=StaticLossScalePolicy, dynamic_loss_scale=DynamicLossScalePolicy)


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


def _as(x: Any, dtype: dt.dtype) -> Any:
    return x if x.dtype is dtype else REGISTRY["cast"](x, dtype=dtype)
