"""Places: on which devices something is, in which grid they stand, and how a size is cut among them.

Cuts are balanced: of n elements on k devices the first n mod k devices have one more than the others (OneFlow's
BalancedSplitter).
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Place(NamedTuple):
    """Devices (numbers among all of them) in a grid, row by row. hierarchy: the grid's sizes."""

    devices: tuple[int, ...]
    hierarchy: tuple[int, ...]

    def __str__(self) -> str:
        return ids(self.devices) if len(self.hierarchy) == 1 else f"{ids(self.devices)} as {self.hierarchy}"


def ids(devices: Sequence[int]) -> str:
    """"0-3", or "0,2"."""
    first, last = devices[0], devices[-1]
    if len(devices) > 1 and tuple(devices) == tuple(range(first, last + 1)):
        return f"{first}-{last}"
    return ",".join(map(str, devices))


def parts(n: int, k: int) -> tuple[int, ...]:
    """How many of n elements each of k devices has: parts(5, 3) is (2, 2, 1)."""
    each, more = divmod(n, k)
    return tuple(each + (i < more) for i in range(k))


def bounds(n: int, k: int) -> list[tuple[int, int]]:
    """[start, stop) of each device's elements: bounds(5, 3) is [(0, 2), (2, 4), (4, 5)]."""
    out, at = [], 0
    for size in parts(n, k):
        out.append((at, at + size))
        at += size
    return out
