"""ReduceLROnPlateau: a rate that goes by a metric and not by the number of steps."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from flowedu.errors import ArgumentError, CallError
from flowedu.optim.base import Optimizer
from flowedu.optim.checks import number


class ReduceLROnPlateau:
    """Multiply the rates by `factor` when the metric has not got better for more than `patience` steps.

    Args:
        mode: "min": smaller is better; "max".
        factor: below 1.
        threshold: how much better counts: threshold_mode "rel": times best, "abs": plus best.
        cooldown: steps after a reduction that do not count.
        min_lr: no rate goes below; one for all groups, or a list.
        eps: reductions smaller than this are not made.
        verbose: print reductions.

    It has no place in an nn.Graph, whose rates are functions of the step alone.
    """

    def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
                 threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0,
                 min_lr: float | Sequence[float] = 0, eps: float = 1e-8, verbose: bool = False):
        what = "ReduceLROnPlateau"
        if not isinstance(optimizer, Optimizer):
            given = type(optimizer).__name__
            raise CallError(f"{what}: {given} is not an Optimizer", expected="an optimizer of flow.optim", got=given,
                            fix=f"{what}(optimizer, ...)")
        for name, value, known in (("mode", mode, ("min", "max")), ("threshold_mode", threshold_mode, ("rel", "abs"))):
            if value not in known:
                raise ArgumentError(f"{what}: {name.replace('_', ' ')} {value} is unknown!", expected=" or ".join(known),
                                    got=repr(value), fix=f"{name}={known[0]!r}")
        groups = len(optimizer.param_groups)
        lowest = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * groups
        if len(lowest) != groups:
            raise ArgumentError(f"{what}: expected {groups} min_lrs, got {len(lowest)}", expected=f"{groups} rates",
                                got=str(len(lowest)), fix="one per parameter group, or one number for all")
        self.factor = number(what, "factor", factor, below=1.0)
        self.optimizer, self.mode, self.patience, self.cooldown = optimizer, mode, patience, cooldown
        self.threshold, self.threshold_mode, self.min_lrs, self.eps = threshold, threshold_mode, lowest, eps
        self.verbose, self.last_step = verbose, 0
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_steps = self.cooldown_counter = 0
        self._last_lr = [group["lr"] for group in optimizer.param_groups]

    def is_better(self, value: float, best: float) -> bool:
        """Whether `value` is an improvement on `best`."""
        sign = -1 if self.mode == "min" else 1
        margin = self.threshold * (best if self.threshold_mode == "rel" else 1)
        if math.isinf(best):
            return sign * value > sign * best
        return sign * value > sign * (best + sign * margin)

    def step(self, metrics: Any) -> None:
        """Look at the metric (a number, or a tensor of one element) and reduce the rates if it is time."""
        value = float(metrics)
        self.last_step += 1
        if self.is_better(value, self.best):
            self.best, self.num_bad_steps = value, 0
        else:
            self.num_bad_steps += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_steps = 0
        if self.num_bad_steps > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_steps = self.cooldown, 0
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def _reduce(self) -> None:
        for i, group in enumerate(self.optimizer.param_groups):
            old = float(group["lr"])
            new = max(old * self.factor, self.min_lrs[i])
            if old - new > self.eps:
                group["lr"] = new
                if self.verbose:
                    print(f"Step {self.last_step}: reducing learning rate of group {i} to {new:.4e}.")

    @property
    def in_cooldown(self) -> bool:
        return self.cooldown_counter > 0

    def get_last_lr(self) -> list[float]:
        """The rates now, one per group."""
        return self._last_lr

    def state_dict(self) -> dict:
        """Everything but the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: Mapping) -> None:
        self.__dict__.update(state_dict)
