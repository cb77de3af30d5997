"""ReduceLROnPlateau: a learning rate that depends on a metric instead of the number of steps."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from flowedu.errors import ArgumentError, CallError
from flowedu.errors.ignored import refuse_ignored
from flowedu.optim.base import Optimizer
from flowedu.optim.checks import number


class ReduceLROnPlateau:
    """Multiplication of the rates by `factor` if a metric has not improved for more than `patience` steps.

    nn.Graph does not support it, because its rates are functions of the step alone.

    Args:
        optimizer: optimizer whose groups get the rates.
        mode: "min" if smaller metrics are better, "max" if larger ones are.
        factor: factor below 1.
        patience: number of steps without improvement.
        threshold: smallest improvement that counts.
        threshold_mode: "rel" multiplies the threshold by the best value, "abs" does not.
        cooldown: number of steps after a reduction that do not count as steps without improvement.
        min_lr: lower limit of the rates, or a list with one per group.
        eps: smallest reduction of a rate; smaller ones are skipped.
        verbose: print reductions.
    """

    _uncalled = ("_init_is_better", "_reset")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        refuse_ignored(cls, "override is_better")

    def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
                 threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0,
                 min_lr: float | Sequence[float] = 0, eps: float = 1e-8, verbose: bool = False):
        what = "ReduceLROnPlateau"
        if not isinstance(optimizer, Optimizer):
            given = type(optimizer).__name__
            raise CallError(f"{what}: {given} is not an Optimizer", expected="an optimizer of flow.optim",
                            got=given, fix=f"{what}(optimizer, ...)")
        for name, value, known in (("mode", mode, ("min", "max")), ("threshold_mode", threshold_mode,
                                                                    ("rel", "abs"))):
            if value not in known:
                raise ArgumentError(f"{what}: {name.replace('_', ' ')} {value} is unknown!",
                                    expected=" or ".join(known), got=repr(value), fix=f"{name}={known[0]!r}")
        groups = len(optimizer.param_groups)
        lowest: list[Any] = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * groups
        if len(lowest) != groups:
            raise ArgumentError(f"{what}: expected {groups} min_lrs, got {len(lowest)}",
                                expected=f"{groups} rates",
                                got=str(len(lowest)), fix="one per parameter group, or one number for all")
        self.factor = number(what, "factor", factor, below=1.0)
        self.optimizer, self.mode = optimizer, mode
        self.patience, self.cooldown = patience, cooldown
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.min_lrs, self.eps = lowest, eps
        self.verbose, self.last_step = verbose, 0
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_steps = self.cooldown_counter = 0
        self._last_lr = [group["lr"] for group in optimizer.param_groups]

    def is_better(self, value: float, best: float) -> bool:
        """Return True if `value` is an improvement on `best`."""
        sign = -1 if self.mode == "min" else 1
        margin = self.threshold * (best if self.threshold_mode == "rel" else 1)
        if math.isinf(best):
            return sign * value > sign * best
        return sign * value > sign * (best + sign * margin)

    def _is_better(self, a: float, best: float) -> bool:
        """Call is_better. PyTorch calls this name, and older versions is_better; both may be overridden."""
        return self.is_better(a, best)

    def step(self, metrics: Any) -> None:
        """Compare the metric, a number or a tensor of one element, and reduce the rates if necessary."""
        value = float(metrics)
        self.last_step += 1
        if self._is_better(value, self.best):
            self.best, self.num_bad_steps = value, 0
        else:
            self.num_bad_steps += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_steps = 0
        if self.num_bad_steps > self.patience:
            self._reduce_lr(self.last_step)
            self.cooldown_counter, self.num_bad_steps = self.cooldown, 0
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def _reduce_lr(self, epoch: int) -> None:
        for i, group in enumerate(self.optimizer.param_groups):
            old = float(group["lr"])
            new = max(old * self.factor, self.min_lrs[i])
            if old - new > self.eps:
                group["lr"] = new
                if self.verbose:
                    print(f"Step {epoch}: reducing learning rate of group {i} to {new:.4e}.")

    @property
    def in_cooldown(self) -> bool:
        return self.cooldown_counter > 0

    def get_last_lr(self) -> list[float]:
        """Return the current rate of each group."""
        return self._last_lr

    def state_dict(self) -> dict:
        """Return all attributes except the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: Mapping) -> None:
        self.__dict__.update(state_dict)
