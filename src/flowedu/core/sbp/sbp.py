"""Layouts of a logical value on devices.

An SBP is a short text. "B", broadcast: every device has the whole value. "S0", "S1" ..., split:
every device has a part along that axis. "P", partial: every device has an array of the full shape,
and the value is their sum ("Pmax", "Pmin": their maximum, minimum).

Devices form a row or a row-major grid (the hierarchy). A layout has one SBP for each axis of the
grid, and splits are applied in order. On 2x2, ("S0", "S0") splits 6 rows into 3 and 3, then into 2,
1, 2, 1. On a row of four devices, "S0" splits 6 rows into 2, 2, 1, 1.
"""
from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from flowedu.core.values.place import Place, bounds, format_devices
from flowedu.errors import layouts as errors

_FORM = re.compile(r"B|P|Pmax|Pmin|S\d+")
DUAL = {"B": "P", "P": "B"}              # SBP of a value -> SBP of its gradient (others: equal)
REDUCERS = {"P": "sum", "Pmax": "max", "Pmin": "min"}
Box = tuple[tuple[int, int], ...]        # [start, stop) along every axis


def split_axis(sbp: str) -> int | Any:
    """Return the axis of "S<axis>", or None for "B" and "P"."""
    return int(sbp[1:]) if sbp[0] == "S" else None


def is_sbp(sbp: object) -> bool:
    return isinstance(sbp, str) and _FORM.fullmatch(sbp) is not None


def find_misfit(sbp: tuple[str, ...], shape: Sequence[int], hierarchy: tuple[int, ...],
                alone: bool = False) -> tuple[int, int | None, int] | None:
    """Return (axis, its shortest part or None, devices) of the first impossible split, or None."""
    # The length is None if the shape has no such axis. alone: also check splits over one device.
    least = list(shape)                                    # the shortest part along each axis
    for s, k in zip(sbp, hierarchy):
        axis = split_axis(s)
        if axis is not None and (k > 1 or alone):
            if axis >= len(shape):
                return axis, None, k
            if least[axis] < k:
                return axis, least[axis], k
            least[axis] //= k
    return None


def fits(sbp: tuple[str, ...], shape: Sequence[int], hierarchy: tuple[int, ...]) -> bool:
    """Return True if every split axis exists and every device gets elements of it."""
    return find_misfit(sbp, shape, hierarchy) is None


@functools.lru_cache(maxsize=16384)
def boxes(sbp: tuple[str, ...], hierarchy: tuple[int, ...],
          shape: tuple[int, ...]) -> tuple[Box, ...]:
    """Return the box of each device, in order: [start, stop) along every axis."""
    result = []
    for coords in itertools.product(*map(range, hierarchy)):
        box = [(0, n) for n in shape]
        for s, k, c in zip(sbp, hierarchy, coords):
            axis = split_axis(s)
            if axis is not None and k > 1:
                start, stop = box[axis]
                a, b = bounds(stop - start, k)[c]
                box[axis] = (start + a, start + b)
        result.append(tuple(box))
    return tuple(result)


def shape_of(box: Box) -> tuple[int, ...]:
    return tuple(b - a for a, b in box)


def pretty(sbp: str | tuple[str, ...]) -> str:
    """Return OneFlow's notation: S(0), or (S(0), B) for a grid of devices."""
    if not isinstance(sbp, str):
        return pretty(sbp[0]) if len(sbp) == 1 else f"({', '.join(map(pretty, sbp))})"
    return f"S({sbp[1:]})" if sbp[0] == "S" else sbp


class Layout(NamedTuple):
    """SBPs on a grid of devices. Create layouts with `layout()`, which checks its arguments.

    `sbp` has a text per axis of the grid. `devices` are row-major. `hierarchy`: sizes of the grid.
    """

    sbp: tuple[str, ...]
    devices: tuple[int, ...]
    hierarchy: tuple[int, ...]

    @property
    def k(self) -> int:
        return len(self.devices)

    @property
    def whole(self) -> bool:
        """True if every device has the whole value."""
        return all(s == "B" or k == 1 for s, k in zip(self.sbp, self.hierarchy))

    @property
    def partial(self) -> tuple[int, ...]:
        """The axes of the grid along which the parts have to be reduced."""
        axes = enumerate(zip(self.sbp, self.hierarchy))
        return tuple(i for i, (s, k) in axes if s[0] == "P" and k > 1)

    @property
    def reducer(self) -> str | Any:
        """The reduction of the parts: "sum", "max", "min", or None if the layout is not partial."""
        return REDUCERS[self.sbp[self.partial[0]]] if self.partial else None

    @property
    def plain(self) -> Layout:
        """The same layout without grid axes of size 1 (B on one device)."""
        if 1 not in self.hierarchy:
            return self
        axes = [(s, k) for s, k in zip(self.sbp, self.hierarchy) if k > 1] or [("B", 1)]
        return Layout(tuple(s for s, _ in axes), self.devices, tuple(k for _, k in axes))

    def coords(self, i: int) -> tuple[int, ...]:
        """Return the coordinates of device i in the grid."""
        result = []
        for k in reversed(self.hierarchy):
            i, c = divmod(i, k)
            result.append(c)
        return tuple(reversed(result))

    def slot(self, i: int) -> int:
        """Return the index of the addend that device i has a part of (0 if not partial)."""
        return _slots(self)[0][i]

    @property
    def slots(self) -> int:
        """The number of addends of a partial value."""
        return _slots(self)[1]

    def fits(self, shape: Sequence[int]) -> bool:
        return fits(self.sbp, shape, self.hierarchy)

    def box(self, shape: Sequence[int], i: int) -> Box:
        """Return [start, stop) along every axis for device i."""
        return boxes(self.sbp, self.hierarchy, tuple(shape))[i]

    def local_shape(self, shape: Sequence[int], i: int) -> tuple[int, ...]:
        """Return the shape of the part of device i."""
        return shape_of(self.box(shape, i))

    def __str__(self) -> str:
        grid = f" ({'x'.join(map(str, self.hierarchy))})" if len(self.hierarchy) > 1 else ""
        return f"{pretty(self.sbp)} on {format_devices(self.devices)}{grid}"


@functools.lru_cache(maxsize=4096)
def _slots(at: Layout) -> tuple[tuple[int, ...], int]:
    """Return the index of the addend of each device, and the number of addends."""
    axes, slots = at.partial, []
    for i in range(at.k):
        slot, c = 0, at.coords(i)
        for axis in axes:
            slot = slot * at.hierarchy[axis] + c[axis]
        slots.append(slot)
    return tuple(slots), math.prod(at.hierarchy[a] for a in axes)


def layout(sbp: str | Sequence[str], devices: Sequence[int] | Place,
           hierarchy: Sequence[int] | None = None) -> Layout:
    """Return a checked Layout.

    Args:
        sbp: a text per axis of the hierarchy, or a single text for a row or all axes of a Place.
        devices: row-major device numbers, or a Place, which includes the hierarchy.
        hierarchy: sizes of the grid; default: one row.

    Raises:
        ArgumentError: an invalid SBP, a wrong number of SBPs, a hierarchy that is not a grid of
            these devices, a repeated device, or different reductions ("P" and "Pmax").
    """
    if isinstance(devices, Place):
        devices, hierarchy = devices
        sbp = (sbp,) * len(hierarchy) if isinstance(sbp, str) else sbp
    sbp, devices = (sbp,) if isinstance(sbp, str) else tuple(sbp), tuple(devices)
    hierarchy = (len(devices),) if hierarchy is None else tuple(hierarchy)
    for s in sbp:
        if not is_sbp(s):
            raise errors.not_a_layout(s)
    if len(sbp) != len(hierarchy):
        raise errors.wrong_number_of_layouts(sbp, hierarchy, pretty(sbp))
    if math.prod(hierarchy) != len(devices) or not devices or len(set(devices)) != len(devices):
        raise errors.not_a_grid(hierarchy, devices)
    if len({s for s in sbp if s[0] == "P"}) > 1:
        raise errors.mixed_partial(pretty(sbp))
    return Layout(sbp, devices, hierarchy)


def place_of(x: Place | Layout | Sequence[int]) -> Place:
    """Return the Place of a layout, or of a row of devices."""
    if isinstance(x, (Place, Layout)):
        return Place(x.devices, x.hierarchy)
    return Place(tuple(x), (len(x),))
