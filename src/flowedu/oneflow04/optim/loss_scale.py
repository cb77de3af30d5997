"""flow.optimizer.loss_scale: factors that keep small gradients above 0.

The loss is multiplied by a factor before the backward pass, so that gradients do not vanish on the way, and the gradients
are divided by it before penalties, clipping and update. A factor that is a power of two changes no bit of a result, unless
something leaves the range of its element type. With a dynamic policy that is what is looked for: if a gradient is inf or
nan, nothing is updated in that step, and the next one tries a smaller factor.
"""
from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from flowedu.core.ops.define import REGISTRY
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec
from flowedu.oneflow04.initializers import constant_initializer, zeros_initializer
from flowedu.optim import overflow
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
        overflow.follow(scale, good, finite, self.increment_period, e["minimum"](scale * self.multiplier, LARGEST),
                        e["maximum"](scale / self.multiplier, 1.0))


loss_scale = SimpleNamespace(static_loss_scale=StaticLossScalePolicy, dynamic_loss_scale=DynamicLossScalePolicy)
