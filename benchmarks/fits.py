"""How a measured value grows with a size: a constant, and a power of the size."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

TOLERANCE = 0.3          # memory that is farther away may take twice as long over ten times the size; 2 = 10 ** 0.3
CONSTANTS = 200          # tried, from nothing to the smallest value


class Fit(NamedTuple):
    """value = constant + factor * size ** exponent. of: how many of the larger sizes the exponent was taken from."""

    exponent: float
    factor: float
    constant: float
    of: int

    def at(self, size: float) -> float:
        return self.constant + self.factor * size ** self.exponent

    def exceeds(self, nature: float) -> bool:
        """Whether it grows faster than it has to."""
        return self.exponent > nature + TOLERANCE


def fit(sizes: Sequence[float], values: Sequence[float]) -> Fit | None:
    """Least squares of logarithms. None where fewer than four values are above zero.

    A constant part would hide the power at small sizes. It is the one with which a power explains all values best; it is
    subtracted, and the exponent is that of the larger half of the sizes (three or more). A point counts as much as the
    power is in it: what is left of a value that is nearly all constant is noise.
    """
    points = sorted((n, v) for n, v in zip(sizes, values) if n > 0 and v > 0)
    if len(points) < 4:
        return None
    n, v = np.array(points).T
    constant = min(v.min() * np.linspace(0, 0.999, CONSTANTS), key=lambda c: _line(n, v, c)[2])
    many = max(3, math.ceil(len(points) / 2))
    slope, shift, _ = _line(n[-many:], v[-many:], constant)
    return Fit(float(slope), float(math.exp(shift)), float(constant), many)


def _line(n: np.ndarray, v: np.ndarray, constant: float) -> tuple[float, float, float]:
    """(slope, shift, weighted squares left) of log(v - constant) over log(n)."""
    x, y, weight = np.log(n), np.log(v - constant), ((v - constant) / v) ** 2
    mean = lambda a: (weight * a).sum() / weight.sum()
    dx, dy = x - mean(x), y - mean(y)
    slope = (weight * dx * dy).sum() / (weight * dx * dx).sum()
    return slope, mean(y) - slope * mean(x), float((weight * (dy - slope * dx) ** 2).sum())
