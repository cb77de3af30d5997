"""Random choices of the transforms, from flow's default generator, so that flow.manual_seed reproduces them.
"""
from __future__ import annotations

import math

from flowedu.tensor.construction.generator import default_generator

_64 = (1 << 64) - 1


def uniform(low: float = 0.0, high: float = 1.0) -> float:
    """Return a number in [low, high) from SplitMix64, because an op for one number is far slower."""
    seed, n = default_generator.next()
    z = (seed + n * 0x9E3779B97F4A7C15) & _64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _64
    return low + (high - low) * ((z ^ (z >> 31)) >> 11) * 2.0 ** -53


def log_uniform(low: float, high: float) -> float:
    """Return a number in [low, high) whose logarithm is uniform: 1/2 is as likely as 2."""
    return math.exp(uniform(math.log(low), math.log(high)))


def whole(low: int, high: int) -> int:
    """Draw an integer in [low, high)."""
    return min(low + int(uniform() * (high - low)), high - 1)


def chance(p: float) -> bool:
    """Return True with probability p."""
    return uniform() < p


def order(n: int) -> list[int]:
    """Return the integers 0 to n - 1 in random order."""
    keys = [uniform() for _ in range(n)]
    return sorted(range(n), key=keys.__getitem__)
