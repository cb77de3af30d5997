"""Schedulers composed of schedulers."""
from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from flowedu.errors import ArgumentError
from flowedu.optim.base import Optimizer
from flowedu.optim.checks import count, number
from flowedu.optim.lr_scheduler.base import LRScheduler
from flowedu.optim.lr_scheduler.decay import ConstantLR, LinearLR


class _Composed(LRScheduler):
    """Base class of composed schedulers, which read the rates of their parts without stepping them.

    The last_step of the parts follows.
    """

    schedulers: list[LRScheduler]

    def _take(self, optimizer: Optimizer | None, schedulers: Sequence[LRScheduler]) -> None:
        what = type(self).__name__
        if not isinstance(schedulers, (list, tuple)) or not schedulers or \
                not all(isinstance(s, LRScheduler) for s in schedulers):
            raise ArgumentError(f"{what} expects at least one scheduler in a list of schedulers",
                                got=repr(schedulers)[:80],
                                expected="[scheduler, ...], none of them ReduceLROnPlateau, which goes by a "
                                "metric",
                                fix=f"{what}([StepLR(optimizer, 10), ...])" if what == "ChainedScheduler" else
                                f"{what}(optimizer, [StepLR(optimizer, 10), ...], ...)")
        for i, s in enumerate(schedulers):
            if s.optimizer is not optimizer:
                raise ArgumentError(f"{what} expects all schedulers to belong to the same optimizer, but got "
                                    f"schedulers at index {i} to be different", expected="one optimizer",
                                    got="two", fix="make all of them over the same optimizer")
        self.schedulers = list(schedulers)

    def get_lr(self, base_lr: float, step: int) -> float:
        return self.lr_at(base_lr, step)

    def state_dict(self) -> dict:
        """Return all attributes except the optimizer, with the states of the parts."""
        return {**super().state_dict(), "schedulers": [s.state_dict() for s in self.schedulers]}

    def load_state_dict(self, state_dict: Mapping) -> None:
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "schedulers"})
        for s, state in zip(self.schedulers, state_dict["schedulers"]):
            s.load_state_dict(state)


class SequentialLR(_Composed):
    """Sequence of schedules: schedulers[0] until step milestones[0], then schedulers[1], and so on.

    Args:
        optimizer: optimizer of all schedulers.
        schedulers: schedulers, in order.
        milestones: steps at which the next scheduler starts.
        interval_rescaling: True counts the steps of a schedule from its milestone, False from step 0. One
            bool for all schedules, or one per milestone.
        last_step: index of the last step made, to resume a schedule; default: -1, start at step 0.
        verbose: print every rate.
    """

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int],
                 interval_rescaling: bool | Sequence[bool] = False, last_step: int = -1,
                 verbose: bool = False):
        self._take(optimizer, schedulers)
        n = len(self.schedulers) - 1
        if len(milestones) != n or list(milestones) != sorted(milestones):
            raise ArgumentError("SequentialLR expects number of schedulers provided to be one more than the "
                                "number of milestone points, which rise", expected=f"{n} rising steps",
                                got=str(list(milestones)), fix="one milestone between each two schedulers")
        rescale = ([interval_rescaling] * n if isinstance(interval_rescaling,
                                                          bool) else list(interval_rescaling))
        if len(rescale) != n:
            raise ArgumentError("SequentialLR: interval_rescaling expects a bool or a list with one per "
                                "milestone",
                                expected=f"{n}", got=str(interval_rescaling), fix="interval_rescaling=True")
        self.milestones, self.interval_rescaling = list(milestones), rescale
        super().__init__(optimizer, last_step, verbose)

    def _part(self, step: int) -> tuple[LRScheduler, int]:
        """Return the active schedule and its own step."""
        i = bisect_right(self.milestones, step)
        return (self.schedulers[i], step - self.milestones[i - 1] if i and self.interval_rescaling[i - 1]
                else step)

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        part, own = self._part(step)
        return part.lr_at(base_lr, own, group)

    def step(self) -> None:
        super().step()
        part, own = self._part(self.last_step)
        part.last_step = own


class ChainedScheduler(_Composed):
    """Chain of schedules, each of which changes the rate of the previous one.

    Args:
        schedulers: schedulers of one optimizer.
    """

    def __init__(self, schedulers: Sequence[LRScheduler]):
        first = schedulers[0] if isinstance(schedulers, (list, tuple)) and schedulers else None
        self._take(getattr(first, "optimizer", None), schedulers)
        super().__init__(self.schedulers[0].optimizer)

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        for s in self.schedulers:
            base_lr = s.lr_at(base_lr, step, group)
        return base_lr

    def step(self) -> None:
        super().step()
        for s in self.schedulers:
            s.last_step = self.last_step


class WarmUpLR(SequentialLR):
    """Warm-up with small rates, followed by another schedule.

    Args:
        scheduler_or_optimizer: the schedule after the warm-up, or an optimizer with a constant rate.
        warmup_factor: initial factor of the rate.
        warmup_iters: number of steps of the warm-up.
        warmup_method: "linear" changes the rate linearly to that of the following schedule. "constant"
            multiplies the initial rate by warmup_factor.
        warmup_prefix: count the steps of the schedule from the end of the warm-up instead of from step 0.
        last_step: index of the last step made, to resume a schedule; default: -1, start at step 0.
        verbose: print every rate.
    """

    def __init__(self, scheduler_or_optimizer: LRScheduler | Optimizer, warmup_factor: float = 1.0 / 3,
                 warmup_iters: int = 5, warmup_method: str = "linear", warmup_prefix: bool = False,
                 last_step: int = -1, verbose: bool = False):
        given = scheduler_or_optimizer
        if not isinstance(given, (LRScheduler, Optimizer)):
            raise ArgumentError("WarmUpLR: 'scheduler_or_optimizer' must be a LRScheduler or an Optimizer",
                                expected="a scheduler, or an optimizer", got=repr(given)[:80],
                                fix="WarmUpLR(StepLR(optimizer, 10), ...)")
        if warmup_method not in ("linear", "constant"):
            raise ArgumentError("WarmUpLR: 'warmup_method' must be 'linear' or 'constant'",
                                got=repr(warmup_method),
                                expected="'linear' or 'constant'", fix="warmup_method='linear'")
        after = given if isinstance(given, LRScheduler) else None
        optimizer: Any = after.optimizer if after else given
        self.warmup_factor = number("WarmUpLR", "warmup_factor", warmup_factor, least=0)
        self.warmup_iters = count("WarmUpLR", "warmup_iters", warmup_iters, 0 if after else 1)
        self.warmup_method, self.warmup_prefix = warmup_method, bool(warmup_prefix)
        parts = [after] if after else []
        if self.warmup_iters:
            parts.insert(0, self._warmup(optimizer, after, last_step))
        super().__init__(optimizer, parts, [self.warmup_iters] * (len(parts) - 1), self.warmup_prefix,
                         last_step, verbose)

    def _warmup(self, optimizer: Optimizer, after: LRScheduler | None, last_step: int) -> LRScheduler:
        if self.warmup_method == "constant":
            return ConstantLR(optimizer, self.warmup_factor, self.warmup_iters, last_step)
        ends = [1.0]
        if after is not None and not self.warmup_prefix:
            ends = [after.lr_at(b, self.warmup_iters, i) / b if b else 1.0
                    for i, b in enumerate(after.base_lrs)]
        if not all(math.isclose(e, ends[0], rel_tol=1e-5, abs_tol=1e-8) for e in ends):
            raise ArgumentError("WarmUpLR: the param_groups of the optimizer have different warmup configs",
                                expected="groups whose rates go in step", got=f"factors {ends}",
                                fix="use one optimizer per group")
        return LinearLR(optimizer, self.warmup_factor, ends[0], self.warmup_iters, last_step)
