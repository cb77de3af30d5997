"""flow.optimizer.loss_scale: factors that keep small gradients of half-precision training above 0.

OneFlow multiplies the loss by the factor and divides the gradients by it. flowedu's gradients are float32 or float64,
where both together change nothing but rounding and the point of overflow; so the policies are checked and kept, and
neither multiplication is done: training is exactly the same with them as without.
"""
from __future__ import annotations

from types import SimpleNamespace

from flowedu.optim.warmup import count, number


class LossScalePolicy:
    """Base of the policies."""


class StaticLossScalePolicy(LossScalePolicy):
    """One factor for the whole training. No effect in float32 and float64: see the top of this file."""

    def __init__(self, loss_scale_factor: float):
        self.loss_scale_factor = number("loss_scale.static_loss_scale", "loss_scale_factor", loss_scale_factor, above=0)


class DynamicLossScalePolicy(LossScalePolicy):
    """A factor that grows by `multiplier` after `increment_period` steps without overflow. No effect here, as above."""

    def __init__(self, initial_loss_scale: float = 2 ** 30, increment_period: int = 2000, multiplier: float = 2.0):
        what = "loss_scale.dynamic_loss_scale"
        self.initial_loss_scale = number(what, "initial_loss_scale", initial_loss_scale, above=0)
        self.increment_period = count(what, "increment_period", increment_period, 1)
        self.multiplier = number(what, "multiplier", multiplier, above=1)


loss_scale = SimpleNamespace(static_loss_scale=StaticLossScalePolicy, dynamic_loss_scale=DynamicLossScalePolicy)
