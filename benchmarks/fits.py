"""Fit of a measured value over a size, by a constant plus a power of the size."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

TOLERANCE = 0.3          # slower levels of memory may double the time over ten times the size: 2 = 10 ** 0.3
CONSTANTS = 200          # number of constants that are tried, from 0 to the smallest value


class Fit(NamedTuple):
    """A fit, value = constant + factor * size ** exponent. of: how many of the largest sizes it uses."""

    exponent: float
    factor: float
    constant: float
    of: int

    def at(self, size: float) -> float:
        return self.constant + self.factor * size ** self.exponent

    def exceeds(self, nature: float) -> bool:
        """Return True if the exponent is larger than `nature` by more than TOLERANCE."""
        return self.exponent > nature + TOLERANCE


def fit(sizes: Sequence[float], values: Sequence[float]) -> Fit | None:
    """Fit a constant and a power by least squares of logarithms. None for fewer than four values above zero.

    A constant part would hide the power at small sizes. The fit subtracts the constant with which a power
    matches all values best, and takes the exponent from the larger half of the sizes (at least three). The
    weight of a point is the share of the power in it, because the remainder of a value that is nearly all
    constant is noise.
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
    """Return (slope, shift, weighted squared error) of a line through log(v - constant) over log(n)."""
    x, y, weight = np.log(n), np.log(v - constant), ((v - constant) / v) ** 2

    def mean(a: np.ndarray) -> float:
        return (weight * a).sum() / weight.sum()

    dx, dy = x - mean(x), y - mean(y)
    slope = (weight * dx * dy).sum() / (weight * dx * dx).sum()
    return slope, mean(y) - slope * mean(x), float((weight * (dy - slope * dx) ** 2).sum())
