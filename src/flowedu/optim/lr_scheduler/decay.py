"""Schedulers whose learning rate is a formula of the number of steps.

b is the group's initial rate, and n the step, from 0. The formulas are OneFlow's closed forms.

| class | rate |
|---|---|
| StepLR | b * gamma^(n // step_size) |
| MultiStepLR | b * gamma^(number of milestones <= n) |
| ExponentialLR | b * gamma^n |
| ConstantLR | b * factor for n < total_iters, then b |
| LinearLR | b * (from start_factor to end_factor in total_iters steps, then end_factor) |
| PolynomialLR | (b - end) * (1 - n/decay_batch)^power + end, n at most decay_batch |
| CosineDecayLR | b * ((1 - alpha) * (1 + cos(pi n/decay_steps)) / 2 + alpha), n at most decay_steps |
| CosineAnnealingLR | eta_min + (b - eta_min) * (1 + cos(pi n/T_max)) / 2, up again after T_max |
| CosineAnnealingWarmRestarts | the same, restarted; periods of T_0, T_0 T_mult, T_0 T_mult^2, ... steps |
"""
from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from flowedu.errors import ArgumentError
from flowedu.optim import rates
from flowedu.optim.base import Optimizer
from flowedu.optim.checks import count, number
from flowedu.optim.lr_scheduler.base import LRScheduler


class StepLR(LRScheduler):
    """Multiplication of the rate by gamma every step_size steps.

    Args:
        optimizer: optimizer whose groups get the rates.
        step_size: number of steps.
        gamma: factor.
        last_step: index of the last step made, to resume a schedule; default: -1, start at step 0.
        verbose: print every rate.
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_step: int = -1,
                 verbose: bool = False):
        self.step_size = count("StepLR", "step_size", step_size, 1)
        self.gamma = number("StepLR", "gamma", gamma, above=0)
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        return rates.exponential(base_lr, self.gamma, rates.part(step, self.step_size, True))


class MultiStepLR(LRScheduler):
    """Multiplication of the rate by gamma at several steps.

    Args:
        optimizer: optimizer whose groups get the rates.
        milestones: increasing steps.
        gamma: factor.
        last_step: index of the last step made, to resume a schedule; default: -1, start at step 0.
        verbose: print every rate.
    """

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1,
                 last_step: int = -1, verbose: bool = False):
        self.milestones = [count("MultiStepLR", f"milestones[{i}]", m, 0) for i, m in enumerate(milestones)]
        if self.milestones != sorted(self.milestones):
            raise ArgumentError("MultiStepLR: milestones must rise", expected="a sorted list of steps",
                                got=str(self.milestones), fix=f"milestones={sorted(self.milestones)}")
        self.gamma = number("MultiStepLR", "gamma", gamma, above=0)
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        return rates.exponential(base_lr, self.gamma, bisect_right(self.milestones, step))


class ExponentialLR(LRScheduler):
    """Multiplication of the rate by gamma at every step.

    Args:
        optimizer: optimizer whose groups get the rates.
        gamma: factor.
        last_step: index of the last step made, to resume a schedule; default: -1, start at step 0.
        verbose: print every rate.
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_step: int = -1, verbose: bool = False):
        self.gamma = number("ExponentialLR", "gamma", gamma, above=0)
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        return rates.exponential(base_lr, self.gamma, step)


class ConstantLR(LRScheduler):
    """Multiplication of the rate by a constant factor in the first total_iters steps.

    Args:
        optimizer: optimizer whose groups get the rates.
        factor: factor of the rate.
        total_iters: number of steps.
        last_step: index of the last step made, to resume a schedule; default: -1, start at step 0.
        verbose: print every rate.
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5,
                 last_step: int = -1, verbose: bool = False):
        self.factor = number("ConstantLR", "factor", factor, least=0)
        self.total_iters = count("ConstantLR", "total_iters", total_iters, 0)
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        return rates.constant(base_lr, step, self.total_iters, self.factor)


class LinearLR(LRScheduler):
    """Multiplication of the rate by a factor that changes linearly for total_iters steps.

    Args:
        optimizer: optimizer whose groups get the rates.
        start_factor: initial factor of the rate.
        end_factor: factor after total_iters steps.
        total_iters: number of steps.
        last_step: index of the last step made, to resume a schedule; default: -1, start at step 0.
        verbose: print every rate.
    """

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0,
                 total_iters: int = 5, last_step: int = -1, verbose: bool = False):
        self.start_factor = number("LinearLR", "start_factor", start_factor, least=0)
        self.end_factor = number("LinearLR", "end_factor", end_factor, least=0)
        self.total_iters = count("LinearLR", "total_iters", total_iters, 1)
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        return rates.linear(base_lr, step, self.total_iters, self.start_factor, self.end_factor)


class PolynomialLR(LRScheduler):
    """Polynomial decay from the initial rate to end_learning_rate.

    Args:
        optimizer: optimizer whose groups get the rates.
        decay_batch: number of steps.
        end_learning_rate: final rate.
        power: exponent; 1 is linear.
        cycle: after decay_batch steps, extend the decay to the next multiple of decay_batch, which increases
            the rate again.
        last_step: index of the last step made, to resume a schedule; default: -1, start at step 0.
        verbose: print every rate.
    """

    def __init__(self, optimizer: Optimizer, decay_batch: int, end_learning_rate: float = 0.0001,
                 power: float = 1.0, cycle: bool = False, last_step: int = -1, verbose: bool = False):
        self.max_decay_steps = count("PolynomialLR", "decay_batch", decay_batch, 1)
        self.end_learning_rate = number("PolynomialLR", "end_learning_rate", end_learning_rate)
        self.power, self.cycle = number("PolynomialLR", "power", power, least=0), bool(cycle)
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        return rates.polynomial(base_lr, step, self.max_decay_steps, self.end_learning_rate, self.power,
                                self.cycle)


class CosineDecayLR(LRScheduler):
    """Half a cosine period down to alpha times the rate, then constant.

    Args:
        optimizer: optimizer whose groups get the rates.
        decay_steps: number of steps.
        alpha: final factor.
        last_step: index of the last step made, to resume a schedule; default: -1, start at step 0.
        verbose: print every rate.
    """

    def __init__(self, optimizer: Optimizer, decay_steps: int, alpha: float = 0.0, last_step: int = -1,
                 verbose: bool = False):
        self.decay_steps = count("CosineDecayLR", "decay_steps", decay_steps, 1)
        self.alpha = number("CosineDecayLR", "alpha", alpha)
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        return rates.cosine(base_lr, step, self.decay_steps, self.alpha)


class CosineScheduler(CosineDecayLR):
    """CosineDecayLR under OneFlow 0.4's name.

    Args:
        optimizer: optimizer whose groups get the rates.
        steps: number of steps.
        alpha: final factor.
        last_step: index of the last step made, to resume a schedule; default: -1, start at step 0.
        verbose: print every rate.
    """

    def __init__(self, optimizer: Optimizer, steps: int, alpha: float = 0.0, last_step: int = -1,
                 verbose: bool = False):
        super().__init__(optimizer, steps, alpha, last_step, verbose)


class CosineAnnealingLR(LRScheduler):
    """Cosine between the initial rate and eta_min, with half a period of T_max steps.

    Args:
        optimizer: optimizer whose groups get the rates.
        T_max: number of steps from the initial rate down to eta_min.
        eta_min: lowest rate.
        last_step: index of the last step made, to resume a schedule; default: -1, start at step 0.
        verbose: print every rate.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_step: int = -1,
                 verbose: bool = False):
        self.T_max = count("CosineAnnealingLR", "T_max", T_max, 1)
        self.eta_min = number("CosineAnnealingLR", "eta_min", eta_min)
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        return rates.half_cosine(base_lr, step, self.T_max, self.eta_min)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosine periods down to eta_min, with restarts (Loshchilov and Hutter 2017).

    Args:
        optimizer: optimizer whose groups get the rates.
        T_0: number of steps of the first period.
        T_mult: factor of the length of each next period.
        eta_min: lowest rate.
        decay_rate: factor of the initial rate of each next period.
        restart_limit: number of periods, after which the rate is eta_min; 0: no limit.
        last_step: index of the last step made, to resume a schedule; default: -1, start at step 0.
        verbose: print every rate.
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0,
                 decay_rate: float = 1.0, restart_limit: int = 0, last_step: int = -1, verbose: bool = False):
        what = "CosineAnnealingWarmRestarts"
        self.T_0, self.T_mult = count(what, "T_0", T_0, 1), count(what, "T_mult", T_mult, 1)
        self.eta_min, self.decay_rate = (number(what, "eta_min", eta_min),
                                         number(what, "decay_rate", decay_rate))
        self.restart_limit = count(what, "restart_limit", restart_limit, 0)
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        restarts, length = step // self.T_0 if self.T_mult == 1 else 0, self.T_0
        step -= restarts * self.T_0
        while step >= length:
            restarts, step, length = restarts + 1, step - length, length * self.T_mult
        if self.restart_limit and restarts >= self.restart_limit:
            return self.eta_min
        top = rates.exponential(base_lr, self.decay_rate, restarts)
        return rates.half_cosine(top, step, length, self.eta_min)
