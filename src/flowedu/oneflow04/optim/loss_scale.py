"""Loss scaling that prevents underflow of small gradients: flow.optimizer.loss_scale.

The loss is multiplied by a factor before the backward pass, so that gradients do not underflow, and the
gradients are divided by it before penalties, clipping, and update. A factor that is a power of two does not
change results, unless a value leaves the range of its dtype. A dynamic policy detects this: if a gradient is
infinite or NaN, the step updates nothing, and the next step uses a smaller factor.
"""
from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from flowedu.core.ops.elementwise import maximum, minimum
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec
from flowedu.oneflow04.initializers import constant_initializer, zeros_initializer
from flowedu.optim import overflow
from flowedu.optim.checks import count, number

FACTOR, COUNTER = Spec((1,), dt.float32), Spec((1,), dt.int64)
LARGEST = 3.4028234663852886e38                     # largest float32


class LossScalePolicy:
    """Base class of the policies, which return a factor for each step."""

    def factor(self, variable: Callable[[str, Spec, Callable], Any]) -> Any:
        """Return the factor of this step.

        `variable(name, Spec, initializer)` returns a variable for state of the policy.
        """
        raise NotImplementedError

    def finish(self, variable: Callable[[str, Spec, Callable], Any], finite: Any) -> None:
        """Update the state after the updates. Only called for a `dynamic` policy.

        `finite` is a bool value of shape (1,), True if the updates were applied.
        """

    dynamic = False


class StaticLossScalePolicy(LossScalePolicy):
    """A constant loss scale. Overflow of gradients is not detected.

    Args:
        loss_scale_factor: the factor, above 0.
    """

    def __init__(self, loss_scale_factor: float):
        self.loss_scale_factor = number("loss_scale.static_loss_scale", "loss_scale_factor",
                                        loss_scale_factor, above=0)

    def factor(self, variable):
        return self.loss_scale_factor


class DynamicLossScalePolicy(LossScalePolicy):
    """A loss scale that grows after steps without overflow and shrinks after a step with overflow.

    After `increment_period` steps without overflow the factor is multiplied by `multiplier`. After a step
    with overflow, which updates nothing, it is divided by `multiplier`, down to 1. The factor is stored in
    the variable System-Train-DynamicLossScale-<job>-LossScale. The number of good steps since the last change
    of the factor is stored in ...-GoodStepCounter. Checkpoints contain both variables.

    Args:
        initial_loss_scale: the first factor, above 0.
        increment_period: the number of steps, 1 or more.
        multiplier: the change of the factor, above 1.
    """

    dynamic = True

    def __init__(self, initial_loss_scale: float = 2 ** 30, increment_period: int = 2000,
                 multiplier: float = 2.0):
        what = "loss_scale.dynamic_loss_scale"
        self.initial_loss_scale = number(what, "initial_loss_scale", initial_loss_scale, above=0)
        self.increment_period = count(what, "increment_period", increment_period, 1)
        self.multiplier = number(what, "multiplier", multiplier, above=1)

    def factor(self, variable):
        return variable("LossScale", FACTOR, constant_initializer(self.initial_loss_scale))

    def finish(self, variable, finite):
        scale = self.factor(variable)
        good = variable("GoodStepCounter", COUNTER, zeros_initializer())
        overflow.follow(scale, good, finite, self.increment_period, minimum(scale * self.multiplier, LARGEST),
                        maximum(scale / self.multiplier, 1.0))


loss_scale = SimpleNamespace(static_loss_scale=StaticLossScalePolicy,
                             dynamic_loss_scale=DynamicLossScalePolicy)
