"""Formulas of learning rates, shared by flow.optimizer (job functions) and flow.optim.lr_scheduler (tensors).

b is the initial rate, and n the step, from 0. Values are computed in double precision.

| formula | rate | in flow.optimizer | in flow.optim.lr_scheduler |
|---|---|---|---|
| constant | b * factor for n < steps, then b | warmup.constant | ConstantLR |
| linear | b * (from start to end in `steps` steps, then end) | | LinearLR |
| exponential | b * rate^part | ExponentialScheduler | ExponentialLR, StepLR, MultiStepLR |
| inverse_time | b / (1 + rate * part) | InverseTimeScheduler | |
| natural_exp | b * e^(-rate * part) | NaturalExpScheduler | |
| polynomial | (b - end) * (1 - n/steps)^power + end, n at most steps | PolynomialScheduler | PolynomialLR |
| cosine | b * ((1 - alpha) * (1 + cos(pi n/steps)) / 2 + alpha), n at most steps | CosineScheduler |
CosineDecayLR |
| linear_cosine | b * ((alpha + 1 - n/steps) * (1 + cos(2 pi periods n/steps)) / 2 + beta) |
LinearCosineScheduler | |
| half_cosine | low + (b - low) * (1 + cos(pi n/steps)) / 2 | | CosineAnnealingLR, CosineAnnealingWarmRestarts
|

`part` is n / steps, rounded down with `staircase`. For MultiStepLR it is the number of milestones passed.
(The linear warm-up of flow.optimizer multiplies before it divides, so its last bit differs.)
"""
from __future__ import annotations

import math


def constant(b: float, n: int, steps: int, factor: float) -> float:
    return b * factor if n < steps else b


def linear(b: float, n: int, steps: int, start: float, end: float) -> float:
    part = min(n, steps) / steps
    return b * (start + (end - start) * part)


def part(n: int, steps: int, staircase: bool) -> float:
    """Return n / steps, rounded down if `staircase`."""
    return n // steps if staircase else n / steps


def exponential(b: float, rate: float, part: float) -> float:
    return b * rate ** part


def inverse_time(b: float, rate: float, part: float) -> float:
    return b / (1 + rate * part)


def natural_exp(b: float, rate: float, part: float) -> float:
    return b * math.exp(-rate * part)


def polynomial(b: float, n: int, steps: int, end: float, power: float, cycle: bool) -> float:
    """Return the polynomial decay; `cycle` extends `steps` to its next multiple."""
    if cycle:
        n = max(n, 1)
        steps *= -(-n // steps)  # rounded up
    return (b - end) * (1 - min(n, steps) / steps) ** power + end


def cosine(b: float, n: int, steps: int, alpha: float) -> float:
    return b * ((1 - alpha) * (1 + math.cos(math.pi * min(n, steps) / steps)) / 2 + alpha)


def linear_cosine(b: float, n: int, steps: int, periods: float, alpha: float, beta: float) -> float:
    part = min(n, steps) / steps
    cosine = (1 + math.cos(2 * math.pi * periods * part)) / 2
    return b * ((alpha + 1 - part) * cosine + beta)


def half_cosine(b: float, n: float, steps: int, low: float) -> float:
    return low + (b - low) * (1 + math.cos(math.pi * n / steps)) / 2
