"""Learning-rate schedules: a function of the train step, which starts at 0.

    lr = CosineScheduler(0.1, steps=1000)
    lr(0), lr(500)          # 0.1, 0.05

Values are computed in double precision; the engine stores them as float32. A schedule with `is_constant` is
evaluated only once. With b the base rate, n the step, S `steps`:

| class | lr(n) |
|---|---|
| PiecewiseConstantScheduler | values[i] at the first i with n <= boundaries[i] (inclusive), else the last |
| PiecewiseScalingScheduler | b * (1, then scale...)[i], i as above: factors are of b, not of the rate before
|
| CosineScheduler | b * ((1 - alpha) * (1 + cos(pi * min(n, S) / S)) / 2 + alpha) |
| PolynomialScheduler | (b - end) * (1 - n/S)^power + end, n at most S |
| LinearCosineScheduler | b * ((alpha + 1 - n/S) * (1 + cos(2 pi num_periods n/S)) / 2 + beta), n at most S |
| ExponentialScheduler | b * decay_rate^(n/S) |
| InverseTimeScheduler | b / (1 + decay_rate * n/S) |
| NaturalExpScheduler | b * e^(-decay_rate * n/S) |
| CustomScheduler | a blob that the job itself computes |
"""
from __future__ import annotations

import inspect
import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from flowedu.errors import ArgumentError, CheckError, UnsupportedError
from flowedu.oneflow04.optim.warmup import WarmupConf
from flowedu.optim import rates
from flowedu.optim.checks import count, number


class LrScheduler:
    """Base of the schedules.

    Args:
        base_lr: the rate that warm-up and decay start from.
        lr_lbn: logical name of the blob that holds the rate, instead of base_lr (CustomScheduler).
        warmup: `warmup.linear(...)`, `warmup.constant(...)` or None.

    A schedule of your own: derive from this class and write `decay(n)`.
    """

    def __init__(self, base_lr: float | None = None, lr_lbn: str | None = None, warmup: WarmupConf | None = None):
        what = type(self).__name__
        if warmup is not None and not isinstance(warmup, WarmupConf):
            raise ArgumentError(f"{what}: warmup is not a warm-up", expected="warmup.linear, warmup.constant or None",
                                got=repr(warmup), fix="write warmup=flow.optimizer.warmup.linear(100, 0.1)")
        if (base_lr is None) == (lr_lbn is None):
            raise CheckError(f"{what}: a base rate, or the name of a blob",
                             expected="exactly one of base_lr and lr_lbn", got=f"{base_lr!r}, {lr_lbn!r}",
                             fix="leave one of them out")
        self.base_lr = None if base_lr is None else number(what, "base_lr", base_lr)
        self.lr_lbn, self.warmup = lr_lbn, warmup

    def __call__(self, step: int) -> float:
        """The learning rate of train step `step` (the first is 0)."""
        if step < 0:
            raise ArgumentError(f"{type(self).__name__}: the step is negative", expected="0, 1, 2, ...", got=str(step),
                                fix="count steps from 0")
        if self.warmup is not None and step < self.warmup.steps:
            return self.warmup(self.base_lr, step)
        try:
            return self.decay(step)
        except OverflowError:
            raise ArgumentError(f"{self!r}: the learning rate grew beyond all numbers", expected="a rate that decays",
                                got=f"an overflow at step {step}", fix="choose decay_rate so that it falls") from None

    def decay(self, n: int) -> float:
        """The rate at step n, warm-up aside."""
        raise UnsupportedError(f"{type(self).__name__}: no decay(n) is defined", expected="a class that defines it",
                               got="the base class", fix="use PiecewiseConstantScheduler([], [lr]) for a constant rate")

    @property
    def is_constant(self) -> bool:
        """True: every step has the same rate. False: it may change."""
        return (self.warmup is None or self.warmup.steps == 0) and self._flat()

    def _flat(self) -> bool:
        return False

    def __repr__(self) -> str:
        """The call that makes it."""
        names = [n for n in inspect.signature(type(self)).parameters if n != "warmup" or self.warmup is not None]
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in names)})"


class PiecewiseConstantScheduler(LrScheduler):
    """values[0] up to and including step boundaries[0], then values[1], and so on. ([], [0.1]): always 0.1."""

    def __init__(self, boundaries: Sequence[int], values: Sequence[float], warmup: WarmupConf | None = None):
        what = type(self).__name__
        self.boundaries = _boundaries(what, boundaries)
        self.values = _numbers(what, "values", values, len(self.boundaries) + 1)
        super().__init__(self.values[0], warmup=warmup)

    def decay(self, n: int) -> float:
        return self.values[bisect_left(self.boundaries, n)]

    def _flat(self) -> bool:
        return len(set(self.values)) == 1


class PiecewiseScalingScheduler(LrScheduler):
    """base_lr up to and including step boundaries[0], then base_lr * scale[0], and so on.

    Args:
        scale: one factor of base_lr per boundary; a single number stands for the same factor at every boundary.
    """

    def __init__(self, base_lr: float, boundaries: Sequence[int], scale: float | Sequence[float],
                 warmup: WarmupConf | None = None):
        what = type(self).__name__
        super().__init__(base_lr, warmup=warmup)
        self.boundaries = _boundaries(what, boundaries)
        if not hasattr(scale, "__len__"):
            scale = [scale] * len(self.boundaries)
        self.scale = _numbers(what, "scale", scale, len(self.boundaries))
        self.factors = (1.0, *self.scale)

    def decay(self, n: int) -> float:
        return self.base_lr * self.factors[bisect_left(self.boundaries, n)]

    def _flat(self) -> bool:
        return len(set(self.factors)) == 1


class CosineScheduler(LrScheduler):
    """Half a cosine from base_lr at step 0 down to base_lr * alpha at step `steps`; constant after that."""

    def __init__(self, base_lr: float, steps: int, alpha: float = 0.0, warmup: WarmupConf | None = None):
        super().__init__(base_lr, warmup=warmup)
        self.steps = count(type(self).__name__, "steps", steps, 1)
        self.alpha = number(type(self).__name__, "alpha", alpha)

    def decay(self, n: int) -> float:
        return rates.cosine(self.base_lr, n, self.steps, self.alpha)


class PolynomialScheduler(LrScheduler):
    """From base_lr to end_learning_rate at step `steps` along (1 - n/steps)^power; constant after that.

    Args:
        cycle: instead of staying there, stretch `steps` to its next multiple: the rate jumps up again (steps 0 and 1
            have the same rate).
    """

    def __init__(self, base_lr: float, steps: int, end_learning_rate: float = 0.0001, power: float = 1.0,
                 cycle: bool = False, warmup: WarmupConf | None = None):
        what = type(self).__name__
        super().__init__(base_lr, warmup=warmup)
        self.steps = count(what, "steps", steps, 1)
        self.end_learning_rate = number(what, "end_learning_rate", end_learning_rate)
        self.power = number(what, "power", power, least=0)
        self.cycle = bool(cycle)

    def decay(self, n: int) -> float:
        return rates.polynomial(self.base_lr, n, self.steps, self.end_learning_rate, self.power, self.cycle)


class PolynomialSchduler(PolynomialScheduler):
    """PolynomialScheduler under the name it had, misspelt, in OneFlow before 0.4."""


class LinearCosineScheduler(LrScheduler):
    """A straight line to 0 at step `steps`, times a cosine of num_periods periods; alpha and beta lift both."""

    def __init__(self, base_lr: float, steps: int, num_periods: float = 0.5, alpha: float = 0.0, beta: float = 0.001,
                 warmup: WarmupConf | None = None):
        what = type(self).__name__
        super().__init__(base_lr, warmup=warmup)
        self.steps = count(what, "steps", steps, 1)
        self.num_periods = number(what, "num_periods", num_periods)
        self.alpha, self.beta = number(what, "alpha", alpha), number(what, "beta", beta)

    def decay(self, n: int) -> float:
        return rates.linear_cosine(self.base_lr, n, self.steps, self.num_periods, self.alpha, self.beta)


class _Decay(LrScheduler):
    """Schedules of n / steps.

    Args:
        decay_rate: how fast.
        staircase: only whole parts count: the rate stays, then drops every `steps` steps.
    """

    least_rate = -math.inf

    def __init__(self, base_lr: float, steps: int, decay_rate: float, staircase: bool = False,
                 warmup: WarmupConf | None = None):
        what = type(self).__name__
        super().__init__(base_lr, warmup=warmup)
        self.steps = count(what, "steps", steps, 1)
        self.decay_rate = number(what, "decay_rate", decay_rate, least=self.least_rate)
        self.staircase = bool(staircase)

    def part(self, n: int) -> float:
        return rates.part(n, self.steps, self.staircase)


class ExponentialScheduler(_Decay):
    """base_lr * decay_rate^(n / steps): multiplied by decay_rate every `steps` steps."""

    least_rate = 0

    def decay(self, n: int) -> float:
        return rates.exponential(self.base_lr, self.decay_rate, self.part(n))


class InverseTimeScheduler(_Decay):
    """base_lr / (1 + decay_rate * n / steps)."""

    least_rate = 0

    def decay(self, n: int) -> float:
        return rates.inverse_time(self.base_lr, self.decay_rate, self.part(n))


class NaturalExpScheduler(_Decay):
    """base_lr * e^(-decay_rate * n / steps)."""

    def decay(self, n: int) -> float:
        return rates.natural_exp(self.base_lr, self.decay_rate, self.part(n))


class CustomScheduler(LrScheduler):
    """The rate is a blob of the job itself; `lbn` is its logical name, "op/blob"."""

    def __init__(self, lbn: str):
        if not isinstance(lbn, str):
            raise ArgumentError("CustomScheduler: lbn is not a name", expected='a logical blob name, "op/blob"',
                                got=repr(lbn), fix="pass blob.logical_blob_name")
        super().__init__(lr_lbn=lbn)

    @property
    def lbn(self) -> str:
        return self.lr_lbn

    def decay(self, n: int) -> float:
        raise UnsupportedError(f"{self!r}: the job computes this rate", expected="the value of the blob",
                               got="a call for a number", fix="read the blob: flow.watch shows it")


def as_scheduler(value: Any, what: str) -> LrScheduler:
    """`value` itself; ArgumentError, which starts with the optimizer's name `what`, when it is not a schedule."""
    if not isinstance(value, LrScheduler):
        constant = isinstance(value, (int, float))
        raise ArgumentError(f"{what}: lr_scheduler is not a schedule", expected="a flow.optimizer.*Scheduler",
                            got=repr(value), fix=f"write flow.optimizer.PiecewiseConstantScheduler([], "
                                                 f"[{value if constant else 0.1}])")
    return value


def _boundaries(what: str, boundaries: Sequence[int]) -> tuple[int, ...]:
    if not hasattr(boundaries, "__len__"):
        raise ArgumentError(f"{what}: boundaries is not a list", expected="a list of steps", got=repr(boundaries),
                            fix="write [] for none")
    out = tuple(count(what, f"boundaries[{i}]", b, 0) for i, b in enumerate(boundaries))
    if any(a > b for a, b in zip(out, out[1:])):
        raise ArgumentError(f"{what}: boundaries must rise", expected="a sorted list of steps", got=str(list(out)),
                            fix=f"write {sorted(out)}, with the values in that order")
    return out


def _numbers(what: str, name: str, values: Sequence[float], length: int) -> tuple[float, ...]:
    n = len(values) if hasattr(values, "__len__") else "no list"
    if n != length:
        raise CheckError(f"{what}: {name} and boundaries do not fit together", expected=f"{length} {name}", got=str(n),
                         fix="one rate before the first boundary and one after each" if name == "values"
                         else "one factor per boundary; before the first it is 1")
    return tuple(number(what, f"{name}[{i}]", v) for i, v in enumerate(values))
