"""`flow.optimizer.warmup`: small learning rates for the first steps, while the weights are still random.

Warm-up replaces the schedule before step `steps`. After that the schedule uses the absolute step, as if there
had been no warm-up.
"""
from __future__ import annotations

from flowedu.optim import rates
from flowedu.optim.checks import count, number


class WarmupConf:
    """Base class of the warm-ups, called with (base_lr, step) for step < `steps`."""

    steps: int

    def __call__(self, base_lr: float, step: int) -> float:
        raise NotImplementedError


class constant(WarmupConf):
    """The rate base_lr * multiplier for the first `steps` steps.

    Args:
        steps: the number of steps, 0 or more.
        multiplier: the factor, between 0 and 1.
    """

    def __init__(self, steps: int, multiplier: float):
        self.steps = count("warmup.constant", "steps", steps, 0)
        self.multiplier = number("warmup.constant", "multiplier", multiplier, above=0, below=1)

    def __call__(self, base_lr: float, step: int) -> float:
        return rates.constant(base_lr, step, self.steps, self.multiplier)

    def __repr__(self) -> str:
        return f"warmup.constant({self.steps}, {self.multiplier})"


class linear(WarmupConf):
    """A linear increase from base_lr * start_multiplier to base_lr at step `steps`.

    Args:
        steps: the number of steps, 0 or more.
        start_multiplier: the first factor, in [0, 1).
    """

    def __init__(self, steps: int, start_multiplier: float):
        self.steps = count("warmup.linear", "steps", steps, 0)
        self.start_multiplier = number("warmup.linear", "start_multiplier", start_multiplier, least=0,
                                       below=1)

    def __call__(self, base_lr: float, step: int) -> float:
        return base_lr * (self.start_multiplier + (1 - self.start_multiplier) * step / self.steps)

    def __repr__(self) -> str:
        return f"warmup.linear({self.steps}, {self.start_multiplier})"
