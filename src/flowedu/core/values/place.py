"""Places: grids of devices, and how a size is cut among the devices.

Cuts are balanced: when n elements are cut among k devices, the first n mod k devices get one more
than the others (OneFlow's BalancedSplitter).
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Place(NamedTuple):
    """Device numbers in a grid, in row-major order. hierarchy: the sizes of the grid."""

    devices: tuple[int, ...]
    hierarchy: tuple[int, ...]

    def __str__(self) -> str:
        text = format_devices(self.devices)
        return text if len(self.hierarchy) == 1 else f"{text} as {self.hierarchy}"


def format_devices(devices: Sequence[int]) -> str:
    """Return "0-3" for a range of devices, and "0,2" for others."""
    first, last = devices[0], devices[-1]
    if len(devices) > 1 and tuple(devices) == tuple(range(first, last + 1)):
        return f"{first}-{last}"
    return ",".join(map(str, devices))


def parts(n: int, k: int) -> tuple[int, ...]:
    """Return how many of n elements each of k devices gets: parts(5, 3) is (2, 2, 1)."""
    each, more = divmod(n, k)
    return tuple(each + (i < more) for i in range(k))


def bounds(n: int, k: int) -> list[tuple[int, int]]:
    """Return (start, stop) of each device's elements: bounds(5, 3) is [(0, 2), (2, 4), (4, 5)].

    Args:
        n, k: number of elements and number of devices.
    """
    out, at = [], 0
    for size in parts(n, k):
        out.append((at, at + size))
        at += size
    return out
