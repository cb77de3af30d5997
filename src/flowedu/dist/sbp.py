"""Layouts: how a logical value lies on a row of devices.

An SBP is a short text: "B", broadcast, every device has all of it; "S0", "S1" ..., split, every device has a part along
that axis; "P", partial, every device has an array of the full shape and the value is their sum. Cuts are balanced: of
n elements on k devices the first n mod k devices have one more than the others (OneFlow's BalancedSplitter).
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from flowedu.errors import ArgumentError

_FORM = re.compile(r"B|P|S\d+")


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


def split_axis(sbp: str) -> int | None:
    """The axis of "S<axis>"; None for "B" and "P"."""
    return int(sbp[1:]) if sbp[0] == "S" else None


def is_sbp(sbp: object) -> bool:
    return isinstance(sbp, str) and _FORM.fullmatch(sbp) is not None


def check_sbp(sbp: object, what: str) -> None:
    """Raises ArgumentError when `sbp` is not the text of a layout."""
    if not is_sbp(sbp):
        raise ArgumentError(f"{what}: not a layout", expected='"B", "P", "S0", "S1" ...', got=repr(sbp),
                            fix='"S0" splits along axis 0')


def fits(sbp: str, shape: Sequence[int], k: int) -> bool:
    """Whether a value of this shape may lie so on k devices: a split axis exists and gives every device something."""
    axis = split_axis(sbp)
    return axis is None or k == 1 or (axis < len(shape) and shape[axis] >= k)


def local_shape(sbp: str, shape: Sequence[int], k: int, i: int) -> tuple[int, ...]:
    """The shape of what device i of k has."""
    axis = split_axis(sbp)
    return tuple(parts(n, k)[i] if d == axis else n for d, n in enumerate(shape))


def pretty(sbp: str) -> str:
    """As OneFlow writes it: S(0)."""
    return f"S({sbp[1:]})" if sbp[0] == "S" else sbp


def ids(devices: Sequence[int]) -> str:
    """"0-3", or "0,2"."""
    first, last = devices[0], devices[-1]
    if len(devices) > 1 and tuple(devices) == tuple(range(first, last + 1)):
        return f"{first}-{last}"
    return ",".join(map(str, devices))


class Layout(NamedTuple):
    """An SBP on a row of devices (numbers of devices among all)."""

    sbp: str
    devices: tuple[int, ...]

    @property
    def k(self) -> int:
        return len(self.devices)

    @property
    def axis(self) -> int | None:
        return split_axis(self.sbp)

    @property
    def plain(self) -> Layout:
        """The same layout; on one device everything is B."""
        return self if self.k > 1 else Layout("B", self.devices)

    def box(self, shape: Sequence[int], i: int) -> tuple[tuple[int, int], ...]:
        """[start, stop) along every axis of what device number i of the row has."""
        return tuple(bounds(n, self.k)[i] if d == self.axis else (0, n) for d, n in enumerate(shape))

    def __str__(self) -> str:
        return f"{pretty(self.sbp)} on {ids(self.devices)}"
