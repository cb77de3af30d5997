"""Learning-rate schedules: functions of the train step, which starts at 0.

    lr = CosineScheduler(0.1, steps=1000)
    lr(0), lr(500)          # 0.1, 0.05

Values are computed in double precision; the engine stores them as float32. A schedule with `is_constant` is
evaluated only once. With b the base rate, n the step, S `steps`:

| class | lr(n) |
|---|---|
| PiecewiseConstantScheduler | values[i] at the first i with n <= boundaries[i] (inclusive), else the last |
| PiecewiseScalingScheduler | b * (1, *scale)[i], i as above; factors are relative to b |
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
    """Base class of the schedules. A subclass defines `decay(n)`.

    Args:
        base_lr: the rate with which warm-up and decay start.
        lr_lbn: the logical name of the blob that holds the rate, instead of base_lr (CustomScheduler).
        warmup: `warmup.linear(...)`, `warmup.constant(...)`, or None.
    """

    def __init__(self, base_lr: float | None = None, lr_lbn: str | None = None,
                 warmup: WarmupConf | None = None):
        what = type(self).__name__
        if warmup is not None and not isinstance(warmup, WarmupConf):
            raise ArgumentError(f"{what}: warmup is not a warm-up",
                                expected="warmup.linear, warmup.constant or None",
                                got=repr(warmup), fix="write warmup=flow.optimizer.warmup.linear(100, 0.1)")
        if (base_lr is None) == (lr_lbn is None):
            raise CheckError(f"{what}: a base rate, or the name of a blob",
                             expected="exactly one of base_lr and lr_lbn", got=f"{base_lr!r}, {lr_lbn!r}",
                             fix="leave one of them out")
        # None for a CustomScheduler, which has no decay.
        self.base_lr: Any = None if base_lr is None else number(what, "base_lr", base_lr)
        self.lr_lbn, self.warmup = lr_lbn, warmup

    def __call__(self, step: int) -> float:
        """Return the learning rate of train step `step`, which is 0 for the first step."""
        if step < 0:
            raise ArgumentError(f"{type(self).__name__}: the step is negative", expected="0, 1, 2, ...",
                                got=str(step), fix="count steps from 0")
        if self.warmup is not None and step < self.warmup.steps:
            return self.warmup(self.base_lr, step)
        try:
            return self.decay(step)
        except OverflowError:
            raise ArgumentError(f"{self!r}: the learning rate overflows", expected="a rate that decays",
                                got=f"an overflow at step {step}",
                                fix="choose decay_rate so that it falls") from None

    def decay(self, n: int) -> float:
        """Return the rate at step n without warm-up."""
        raise UnsupportedError(f"{type(self).__name__}: no decay(n) is defined",
                               expected="a class that defines it",
                               got="the base class",
                               fix="use PiecewiseConstantScheduler([], [lr]) for a constant rate")

    @property
    def is_constant(self) -> bool:
        """True if each step has the same rate."""
        return (self.warmup is None or self.warmup.steps == 0) and self._flat()

    def _flat(self) -> bool:
        return False

    def __repr__(self) -> str:
        """Return the call that creates the schedule."""
        names = [n for n in inspect.signature(type(self)).parameters if n != "warmup"
                 or self.warmup is not None]
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in names)})"


class PiecewiseConstantScheduler(LrScheduler):
    """A schedule of constant values between boundaries.

    The rate is values[0] up to and including step boundaries[0], then values[1], and so on.

    Args:
        boundaries: a sorted list of steps; [] for a constant rate.
        values: the rates, one more than boundaries.
        warmup: a warm-up of flow.optimizer.warmup, or None.
    """

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
    """A schedule that multiplies base_lr by a factor after each boundary.

    The rate is base_lr up to and including step boundaries[0], then base_lr * scale[0], and so on.

    Args:
        base_lr: the first rate.
        boundaries: a sorted list of steps.
        scale: one factor of base_lr per boundary, or one factor for all boundaries.
        warmup: a warm-up of flow.optimizer.warmup, or None.
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
    """Half a cosine from base_lr at step 0 to base_lr * alpha at step `steps`, and constant after that.

    Args:
        base_lr: the first rate.
        steps: the number of steps of the decay, 1 or more.
        alpha: the last rate as a fraction of base_lr.
        warmup: a warm-up of flow.optimizer.warmup, or None.
    """

    def __init__(self, base_lr: float, steps: int, alpha: float = 0.0, warmup: WarmupConf | None = None):
        super().__init__(base_lr, warmup=warmup)
        self.steps = count(type(self).__name__, "steps", steps, 1)
        self.alpha = number(type(self).__name__, "alpha", alpha)

    def decay(self, n: int) -> float:
        return rates.cosine(self.base_lr, n, self.steps, self.alpha)


class PolynomialScheduler(LrScheduler):
    """A decay from base_lr to end_learning_rate at step `steps` along (1 - n/steps)^power, then constant.

    Args:
        base_lr: the first rate.
        steps: the number of steps of the decay, 1 or more.
        end_learning_rate: the last rate.
        power: the exponent, 0 or more.
        cycle: restart the decay instead of keeping the last rate: `steps` is extended to its next multiple.
            Steps 0 and 1 have the same rate.
        warmup: a warm-up of flow.optimizer.warmup, or None.
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
    """The misspelt name of PolynomialScheduler in OneFlow before 0.4.

    Args:
        base_lr: the first rate.
        steps: the number of steps of the decay, 1 or more.
        end_learning_rate: the last rate.
        power: the exponent, 0 or more.
        cycle: restart the decay instead of keeping the last rate.
        warmup: a warm-up of flow.optimizer.warmup, or None.
    """


class LinearCosineScheduler(LrScheduler):
    """A linear decay to 0 at step `steps`, multiplied by a cosine.

    Args:
        base_lr: the first rate.
        steps: the number of steps of the decay, 1 or more.
        num_periods: the number of periods of the cosine.
        alpha: an offset of the linear decay.
        beta: an offset of the product.
        warmup: a warm-up of flow.optimizer.warmup, or None.
    """

    def __init__(self, base_lr: float, steps: int, num_periods: float = 0.5, alpha: float = 0.0,
                 beta: float = 0.001, warmup: WarmupConf | None = None):
        what = type(self).__name__
        super().__init__(base_lr, warmup=warmup)
        self.steps = count(what, "steps", steps, 1)
        self.num_periods = number(what, "num_periods", num_periods)
        self.alpha, self.beta = number(what, "alpha", alpha), number(what, "beta", beta)

    def decay(self, n: int) -> float:
        return rates.linear_cosine(self.base_lr, n, self.steps, self.num_periods, self.alpha, self.beta)


class _Decay(LrScheduler):
    """Base class of schedules that depend on n / steps.

    Args:
        base_lr: the first rate.
        steps: the unit of time in steps, 1 or more.
        decay_rate: the speed of the decay.
        staircase: round n / steps down, so that the rate changes every `steps` steps.
        warmup: a warm-up of flow.optimizer.warmup, or None.
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
    """The schedule base_lr * decay_rate^(n / steps).

    Args:
        base_lr: the first rate.
        steps: the number of steps after which the rate is multiplied by decay_rate, 1 or more.
        decay_rate: the factor, 0 or more.
        staircase: round n / steps down, so that the rate changes every `steps` steps.
        warmup: a warm-up of flow.optimizer.warmup, or None.
    """

    least_rate = 0

    def decay(self, n: int) -> float:
        return rates.exponential(self.base_lr, self.decay_rate, self.part(n))


class InverseTimeScheduler(_Decay):
    """The schedule base_lr / (1 + decay_rate * n / steps).

    Args:
        base_lr: the first rate.
        steps: the unit of time in steps, 1 or more.
        decay_rate: the speed of the decay, 0 or more.
        staircase: round n / steps down, so that the rate changes every `steps` steps.
        warmup: a warm-up of flow.optimizer.warmup, or None.
    """

    least_rate = 0

    def decay(self, n: int) -> float:
        return rates.inverse_time(self.base_lr, self.decay_rate, self.part(n))


class NaturalExpScheduler(_Decay):
    """The schedule base_lr * e^(-decay_rate * n / steps).

    Args:
        base_lr: the first rate.
        steps: the unit of time in steps, 1 or more.
        decay_rate: the speed of the decay.
        staircase: round n / steps down, so that the rate changes every `steps` steps.
        warmup: a warm-up of flow.optimizer.warmup, or None.
    """

    def decay(self, n: int) -> float:
        return rates.natural_exp(self.base_lr, self.decay_rate, self.part(n))


class CustomScheduler(LrScheduler):
    """A schedule whose rate is a blob of the job.

    Args:
        lbn: the logical name of the blob, "op/blob".
    """

    lr_lbn: str

    def __init__(self, lbn: str):
        if not isinstance(lbn, str):
            raise ArgumentError("CustomScheduler: lbn is not a name",
                                expected='a logical blob name, "op/blob"',
                                got=repr(lbn), fix="pass blob.logical_blob_name")
        super().__init__(lr_lbn=lbn)

    @property
    def lbn(self) -> str:
        return self.lr_lbn

    def decay(self, n: int) -> float:
        raise UnsupportedError(f"{self!r}: the job computes this rate", expected="the value of the blob",
                               got="a call for a number", fix="read the blob: flow.watch shows it")


def as_scheduler(value: Any, what: str) -> LrScheduler:
    """Return `value`.

    Raise ArgumentError, which starts with the optimizer's name `what`, unless it is a schedule.
    """
    if not isinstance(value, LrScheduler):
        constant = isinstance(value, (int, float))
        raise ArgumentError(f"{what}: lr_scheduler is not a schedule", expected="a flow.optimizer.*Scheduler",
                            got=repr(value), fix=f"write flow.optimizer.PiecewiseConstantScheduler([], "
                                                 f"[{value if constant else 0.1}])")
    return value


def _boundaries(what: str, boundaries: Sequence[int]) -> tuple[int, ...]:
    if not hasattr(boundaries, "__len__"):
        raise ArgumentError(f"{what}: boundaries is not a list", expected="a list of steps",
                            got=repr(boundaries), fix="write [] for none")
    out = tuple(count(what, f"boundaries[{i}]", b, 0) for i, b in enumerate(boundaries))
    if any(a > b for a, b in zip(out, out[1:])):
        raise ArgumentError(f"{what}: boundaries must rise", expected="a sorted list of steps",
                            got=str(list(out)), fix=f"write {sorted(out)}, with the values in that order")
    return out


def _numbers(what: str, name: str, values: Any, length: int) -> tuple[float, ...]:
    n = len(values) if hasattr(values, "__len__") else "no list"
    if n != length:
        raise CheckError(f"{what}: {name} and boundaries do not fit together", expected=f"{length} {name}",
                         got=str(n),
                         fix="one rate before the first boundary and one after each" if name == "values"
                         else "one factor per boundary; before the first it is 1")
    return tuple(number(what, f"{name}[{i}]", v) for i, v in enumerate(values))
