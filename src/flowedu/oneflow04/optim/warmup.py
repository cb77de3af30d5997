"""`flow.optimizer.warmup`: small learning rates for the first steps, while the weights are still random.

Warm-up replaces the schedule until step `steps`; from then on the schedule goes by the absolute step, as if it had
run all along.
"""
from __future__ import annotations

import math
import operator
from typing import Any

from flowedu.errors import ArgumentError


def number(what: str, name: str, value: Any, least: float = -math.inf, below: float = math.inf,
           above: float = -math.inf) -> float:
    """`value` as a finite float with least <= value < below and above < value; ArgumentError otherwise."""
    try:
        x = float(value)
    except (TypeError, ValueError):
        x = math.nan
    if not (math.isfinite(x) and least <= x < below and x > above):
        bounds = [f">= {least:g}"] * (least > -math.inf) + [f"> {above:g}"] * (above > -math.inf)
        bounds += [f"< {below:g}"] * (below < math.inf)
        raise ArgumentError(f"{what}: {name} is out of range", got=repr(value),
                            expected=" and ".join(["a finite number " + bounds[0], *bounds[1:]]) if bounds
                            else "a finite number", fix=f"change {name}")
    return x


def count(what: str, name: str, value: Any, least: int) -> int:
    """`value` as an int >= least; ArgumentError otherwise."""
    try:
        n = operator.index(value)
    except TypeError:
        n = least - 1
    if n < least:
        raise ArgumentError(f"{what}: {name} is not a number of steps", expected=f"an int >= {least}", got=repr(value),
                            fix=f"write {name}=int(...), steps and not epochs")
    return n


class WarmupConf:
    """Base of the warm-ups; called with (base_lr, step) for step < `steps`."""

    steps: int

    def __call__(self, base_lr: float, step: int) -> float:
        raise NotImplementedError


class constant(WarmupConf):
    """base_lr * multiplier, 0 < multiplier < 1, for the first `steps` steps."""

    def __init__(self, steps: int, multiplier: float):
        self.steps = count("warmup.constant", "steps", steps, 0)
        self.multiplier = number("warmup.constant", "multiplier", multiplier, above=0, below=1)

    def __call__(self, base_lr: float, step: int) -> float:
        return base_lr * self.multiplier

    def __repr__(self) -> str:
        return f"warmup.constant({self.steps}, {self.multiplier})"


class linear(WarmupConf):
    """From base_lr * start_multiplier, 0 <= start_multiplier < 1, in a straight line to base_lr at step `steps`."""

    def __init__(self, steps: int, start_multiplier: float):
        self.steps = count("warmup.linear", "steps", steps, 0)
        self.start_multiplier = number("warmup.linear", "start_multiplier", start_multiplier, least=0, below=1)

    def __call__(self, base_lr: float, step: int) -> float:
        return base_lr * (self.start_multiplier + (1 - self.start_multiplier) * step / self.steps)

    def __repr__(self) -> str:
        return f"warmup.linear({self.steps}, {self.start_multiplier})"
