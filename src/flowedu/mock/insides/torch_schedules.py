"""optim.lr_scheduler with PyTorch's semantics.

A schedule with a formula (flowedu/optim/lr_scheduler/decay.py) multiplies the rate by the factor from one
step to the next, so that a program can also set or scale the rate.
"""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from flowedu.mock.insides.torch_cycles import (
    ChainedScheduler,
    CyclicLR,
    OneCycleLR,
    ReduceLROnPlateau,
    SequentialLR,
)
from flowedu.mock.insides.torch_schedule import LRScheduler, _LRScheduler, allow_other_signature
from flowedu.optim import lr_scheduler as ours
from flowedu.optim import rates
from flowedu.optim.base import Optimizer
from flowedu.optim.checks import count, number

__all__ = ["ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR",
           "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR",
           "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR", "_LRScheduler"]


class LambdaLR(ours.LambdaLR, LRScheduler):
    """Rate base_lr * lr_lambda(step). lr_lambda: a function, or a list with one per group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable | Sequence[Callable], last_epoch: int = -1,
                 verbose: bool = False):
        super().__init__(optimizer, lr_lambda, last_epoch, verbose)

    @allow_other_signature
    def get_lr(self) -> list[float]:
        return [b * f(self.last_epoch) for b, f in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(ours.MultiplicativeLR, LRScheduler):
    """Multiply the rate by lr_lambda(step) in every step. lr_lambda: a function or one per group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable | Sequence[Callable], last_epoch: int = -1,
                 verbose: bool = False):
        super().__init__(optimizer, lr_lambda, last_epoch, verbose)

    @allow_other_signature
    def get_lr(self) -> list[float]:
        return (self.same() if self._is_initial
                else [lr * f(self.last_epoch) for lr, f in zip(self.same(), self.lr_lambdas)])


class StepLR(LRScheduler):
    """Multiply the rate by gamma every step_size steps."""

    formula = ours.StepLR

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1,
                 verbose: bool = False):
        self.step_size, self.gamma = (count("StepLR", "step_size", step_size, 1),
                                      number("StepLR", "gamma", gamma))
        super().__init__(optimizer, last_epoch, verbose)

    @allow_other_signature
    def get_lr(self) -> list[float]:
        return (self.same() if self.last_epoch == 0 or self.last_epoch % self.step_size
                else self.times(self.gamma))


class MultiStepLR(LRScheduler):
    """Multiply the rate by gamma at each of the steps `milestones`."""

    formula = ours.MultiStepLR

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1,
                 last_epoch: int = -1, verbose: bool = False):
        self.milestones, self.gamma = Counter(milestones), number("MultiStepLR", "gamma", gamma)
        super().__init__(optimizer, last_epoch, verbose)

    @allow_other_signature
    def get_lr(self) -> list[float]:
        return self.times(self.gamma ** self.milestones.get(self.last_epoch, 0))

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        return rates.exponential(base_lr, self.gamma, sum(n for at, n in self.milestones.items()
                                                          if at <= step))


class ConstantLR(LRScheduler):
    """Multiply the rate by `factor` during the first total_iters steps."""

    formula = ours.ConstantLR

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5,
                 last_epoch: int = -1, verbose: bool = False):
        self.factor = number("ConstantLR", "factor", factor, least=0, below=math.nextafter(1, 2))
        self.total_iters = count("ConstantLR", "total_iters", total_iters, 0)
        super().__init__(optimizer, last_epoch, verbose)

    @allow_other_signature
    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self.times(self.factor)
        if self.last_epoch != self.total_iters:
            return self.same()
        return self.times(1.0 / self.factor) if self.factor else list(self.base_lrs)


class LinearLR(LRScheduler):
    """Change the factor of the rate linearly from start_factor to end_factor in total_iters steps."""

    formula = ours.LinearLR

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0,
                 total_iters: int = 5, last_epoch: int = -1, verbose: bool = False):
        self.start_factor = number("LinearLR", "start_factor", start_factor, above=0,
                                   below=math.nextafter(1, 2))
        self.end_factor = number("LinearLR", "end_factor", end_factor, least=0, below=math.nextafter(1, 2))
        self.total_iters = count("LinearLR", "total_iters", total_iters, 1)
        super().__init__(optimizer, last_epoch, verbose)

    @allow_other_signature
    def get_lr(self) -> list[float]:
        n, rise = self.last_epoch, self.end_factor - self.start_factor
        if n == 0:
            return self.times(self.start_factor)
        if self._is_initial or n > self.total_iters:
            return self.same()
        return self.times(1.0 + rise / (self.total_iters * self.start_factor + (n - 1) * rise))


class ExponentialLR(LRScheduler):
    """Multiply the rate by gamma at every step."""

    formula = ours.ExponentialLR

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1, verbose: bool = False):
        self.gamma = number("ExponentialLR", "gamma", gamma)
        super().__init__(optimizer, last_epoch, verbose)

    @allow_other_signature
    def get_lr(self) -> list[float]:
        return self.same() if self._is_initial else self.times(self.gamma)


class PolynomialLR(LRScheduler):
    """Rate base_lr * (1 - n / total_iters)^power in step n, with n at most total_iters."""

    formula = ours.PolynomialLR
    end_learning_rate, cycle = 0.0, False                 # further parameters of OneFlow's formula

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1,
                 verbose: bool = False):
        self.total_iters = count("PolynomialLR", "total_iters", total_iters, 1)
        self.power = number("PolynomialLR", "power", power)
        super().__init__(optimizer, last_epoch, verbose)

    max_decay_steps = property(lambda self: self.total_iters)

    @allow_other_signature
    def get_lr(self) -> list[float]:
        n, steps = self.last_epoch, self.total_iters
        if self._is_initial or n > steps:
            return self.same()
        return self.times(((1.0 - n / steps) / (1.0 - (n - 1) / steps)) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """Cosine wave from the initial rate to eta_min in T_max steps, back in T_max steps, and so on."""

    formula = ours.CosineAnnealingLR

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1,
                 verbose: bool = False):
        self.T_max = count("CosineAnnealingLR", "T_max", T_max, 1)
        self.eta_min = number("CosineAnnealingLR", "eta_min", eta_min)
        super().__init__(optimizer, last_epoch, verbose)

    @allow_other_signature
    def get_lr(self) -> list[float]:
        n, low, part = self.last_epoch, self.eta_min, math.pi / self.T_max
        if self._is_initial:
            return self.same()
        if self._step_count == 1 and n > 0:
            return [rates.half_cosine(b, n, self.T_max, low) for b in self.base_lrs]
        if (n - 1 - self.T_max) % (2 * self.T_max) == 0:  # the previous step was at the minimum
            return [lr + (b - low) * (1 - math.cos(part)) / 2 for b, lr in zip(self.base_lrs, self.same())]
        factor = (1 + math.cos(part * n)) / (1 + math.cos(part * (n - 1)))
        return [factor * (lr - low) + low for lr in self.same()]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from the initial rate to eta_min in T_0 steps, repeated at T_mult times the length.

    step(epoch) accepts a fraction of a step.
    """

    decay_rate, restart_limit = 1.0, 0                    # further parameters of OneFlow's formula
    T_cur: float
    _formula: Any = ours.CosineAnnealingWarmRestarts      # for lr_at only: step and get_lr need T_cur

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0,
                 last_epoch: int = -1, verbose: bool = False):
        what = "CosineAnnealingWarmRestarts"
        self.T_0, self.T_mult = count(what, "T_0", T_0, 1), count(what, "T_mult", T_mult, 1)
        self.T_i, self.T_cur, self.eta_min = self.T_0, last_epoch, number(what, "eta_min", eta_min)
        super().__init__(optimizer, last_epoch, verbose)

    @allow_other_signature
    def get_lr(self) -> list[float]:
        return [rates.half_cosine(b, self.T_cur, self.T_i, self.eta_min) for b in self.base_lrs]

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        return self._formula.get_lr(self, base_lr, step)

    def step(self, epoch: float | None = None) -> None:
        """Advance by one step, or to `epoch`, and set the rates."""
        if epoch is None and self.last_epoch >= 0:
            epoch, self.T_cur = self.last_epoch + 1, self.T_cur + 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        else:
            epoch = number("CosineAnnealingWarmRestarts.step", "epoch", 0 if epoch is None else epoch,
                           least=0)
            self.T_cur, self.T_i = epoch, self.T_0
            while self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr())
