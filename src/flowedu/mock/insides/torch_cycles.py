"""optim.lr_scheduler with PyTorch's semantics: composed, cyclic, and metric-based schedules."""
from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flowedu.errors import ArgumentError
from flowedu.mock.insides.torch_schedule import LRScheduler, allow_other_signature
from flowedu.optim import lr_scheduler as ours
from flowedu.optim.base import Optimizer
from flowedu.optim.lr_scheduler.composed import _Composed
from flowedu.optim.lr_scheduler.cycles import Numbers, _Cycle


class _Composition(LRScheduler):
    """Base class of schedules that are composed of others."""

    def _take_schedulers(self, optimizer: Any, schedulers: Sequence[LRScheduler]) -> None:
        take: Any = _Composed._take                       # it needs no attribute of a _Composed
        take(self, optimizer, schedulers)
        self._schedulers, self.optimizer, self.verbose = vars(self).pop("schedulers"), optimizer, False
        for i, s in enumerate(schedulers):
            if not hasattr(s, "_update_lr"):
                raise ArgumentError(f"{type(self).__name__}: schedulers[{i}] is OneFlow's",
                                    got=type(s).__name__,
                                    expected="schedules that PyTorch has",
                                    fix="flow.optim.lr_scheduler has one for these")

    schedulers = property(lambda self: self._schedulers,
                          lambda self, value: vars(self).update(schedulers=value))

    def state_dict(self) -> dict:
        """Return the state, including the states of the schedules, without the optimizer."""
        return {**super().state_dict(), "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: Mapping) -> None:
        parts = state_dict.get("_schedulers", state_dict.get("schedulers", ()))
        super().load_state_dict({k: v for k, v in state_dict.items()
                                 if k not in ("_schedulers", "schedulers")})
        for s, state in zip(self._schedulers, parts):
            s.load_state_dict(state)


class SequentialLR(_Composition):
    """schedulers[0] until step milestones[0], then schedulers[1], and so on. Each starts at its step 0."""

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int],
                 last_epoch: int = -1, verbose: bool = False):
        self._take_schedulers(optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ArgumentError("SequentialLR expects number of schedulers provided to be one more than the "
                                "number of milestone points", expected=f"{len(schedulers) - 1} rising steps",
                                got=str([*milestones]), fix="one milestone between each two schedulers")
        self._milestones, self.last_epoch, self.verbose = list(milestones), last_epoch + 1, verbose
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        self._undo(self)                                  # each constructor has set the rates of its step 0
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def _undo(self, schedule: LRScheduler) -> None:
        if isinstance(schedule, _Composition):
            for s in schedule._schedulers:
                self._undo(s)
        else:
            schedule.last_epoch -= 1

    @allow_other_signature
    def step(self) -> None:
        """Advance the active schedule by one step."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        if i and self._milestones[i - 1] == self.last_epoch:
            self._schedulers[i]._update_lr(0)
        else:
            self._schedulers[i].step()
        self._last_lr = self._schedulers[i].get_last_lr()

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        i = bisect_right(self._milestones, step)
        return self._schedulers[i].lr_at(base_lr, step - self._milestones[i - 1] if i else step, group)


class ChainedScheduler(_Composition):
    """Composition of schedules: each changes the rate that the previous one sets."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None):
        first = schedulers[0] if isinstance(schedulers, (list, tuple)) and schedulers else None
        self._take_schedulers(optimizer or getattr(first, "optimizer", None), schedulers)
        self._last_lr = self.same()

    @allow_other_signature
    def step(self) -> None:
        """Advance every schedule by one step."""
        for s in self._schedulers:
            s.step()
        self._last_lr = self.same()

    def _update_lr(self, epoch: int | None = None) -> None:
        for s in self._schedulers:
            s._update_lr(epoch)
        self._last_lr = self.same()

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        for s in self._schedulers:
            base_lr = s.lr_at(base_lr, step, group)
        return base_lr

    @property
    def last_epoch(self) -> int:
        """Step of the first schedule."""
        return self._schedulers[0].last_epoch


class _Cycling(_Cycle):
    """Mixin of schedules with flowedu's formula, whose _set also changes the momentum."""

    momenta: Any
    step = LRScheduler.step

    @allow_other_signature
    def get_lr(self) -> list[float]:
        return self._rates()

    def _store_momenta(self) -> None:
        """Store the limits of the momentum in the parameter groups, as PyTorch does."""
        for i, group in enumerate(self.optimizer.param_groups if self.cycle_momentum else ()):
            group["base_momentum"], group["max_momentum"] = self.momenta[0][i], self.momenta[1][i]


class OneCycleLR(_Cycling, ours.OneCycleLR, LRScheduler):
    __doc__ = ours.OneCycleLR.__doc__

    def __init__(self, optimizer: Optimizer, max_lr: Numbers, total_steps: int | None = None,
                 epochs: int | None = None,
                 steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos",
                 cycle_momentum: bool = True, base_momentum: Numbers = 0.85, max_momentum: Numbers = 0.95,
                 div_factor: float = 25.0, final_div_factor: float = 1e4, three_phase: bool = False,
                 last_epoch: int = -1, verbose: bool = False):
        ours.OneCycleLR.__init__(self, optimizer, max_lr, total_steps, epochs, steps_per_epoch, pct_start,
                                 anneal_strategy,
                                 cycle_momentum, base_momentum, max_momentum, div_factor, final_div_factor,
                                 three_phase, last_epoch, verbose)
        self._store_momenta()
        for group, high, low in zip(optimizer.param_groups, self.parts[0][1], self.parts[-1][1]):
            group["max_lr"], group["min_lr"] = high, low


class CyclicLR(_Cycling, ours.CyclicLR, LRScheduler):
    __doc__ = ours.CyclicLR.__doc__

    def __init__(self, optimizer: Optimizer, base_lr: Numbers, max_lr: Numbers, step_size_up: int = 2000,
                 step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
                 scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle",
                 cycle_momentum: bool = True,
                 base_momentum: Numbers = 0.8, max_momentum: Numbers = 0.9, last_epoch: int = -1,
                 verbose: bool = False):
        ours.CyclicLR.__init__(self, optimizer, base_lr, max_lr, step_size_up, step_size_down, mode, gamma,
                               scale_fn,
                               scale_mode, cycle_momentum, base_momentum, max_momentum, last_epoch, verbose)
        self._store_momenta()

    def state_dict(self) -> dict:
        """Return the state without the optimizer and scale_fn."""
        return {**super().state_dict(), "_scale_fn_custom": None}


class ReduceLROnPlateau(ours.ReduceLROnPlateau):
    __doc__ = ours.ReduceLROnPlateau.__doc__

    def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
                 threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0,
                 min_lr: float | Sequence[float] = 0, eps: float = 1e-8, verbose: bool = False):
        super().__init__(optimizer, mode, factor, patience, threshold, threshold_mode, cooldown, min_lr, eps,
                         verbose)
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.mode_worse = math.inf if mode == "min" else -math.inf

    last_step = property(lambda self: self.last_epoch, lambda self, n: setattr(self, "last_epoch", n))
    num_bad_steps = property(lambda self: self.num_bad_epochs,
                             lambda self, n: setattr(self, "num_bad_epochs", n))

    def is_better(self, value: float, best: float) -> bool:
        """Return True if `value` is better than `best`."""
        sign = -1 if self.mode == "min" else 1
        bound = (best * (1 + sign * self.threshold) if self.threshold_mode == "rel"
                 else best + sign * self.threshold)
        return sign * value > sign * bound

    def step(self, metrics: Any, epoch: int | None = None) -> None:
        """Record the metric (a number or a tensor of one element) and reduce the rates if necessary."""
        more = len(self.optimizer.param_groups) - len(self.min_lrs)
        if more > 0 and self.default_min_lr is not None:  # parameter groups added later
            self.min_lrs = [*self.min_lrs, *[self.default_min_lr] * more]
        if epoch is not None:
            self.last_epoch = epoch - 1
        super().step(metrics)

    def _reduce_lr(self, epoch: int) -> None:
        if len(self.optimizer.param_groups) != len(self.min_lrs):
            raise ArgumentError("ReduceLROnPlateau: min_lr has a rate for each parameter group",
                                got=f"{len(self.min_lrs)}",
                                expected=f"{len(self.optimizer.param_groups)}", fix="set scheduler.min_lrs")
        super()._reduce_lr(epoch)

    def load_state_dict(self, state_dict: Mapping) -> None:
        """Restore a state of PyTorch's or flowedu's class."""
        names = {"last_step": "last_epoch", "num_bad_steps": "num_bad_epochs"}
        vars(self).update({names.get(k, k): v for k, v in state_dict.items()})
