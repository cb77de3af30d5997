"""Layouts: how a logical value lies on devices.

An SBP is a short text: "B", broadcast, every device has all of it; "S0", "S1" ..., split, every device has a part along
that axis; "P", partial, every device has an array of the full shape and the value is their sum ("Pmax", "Pmin": their
maximum, minimum). How a size is cut among devices is in core/values/place.py.

Devices stand in a row, or in a grid (the hierarchy), row-major. A layout has one SBP for each axis of the grid; splits
are applied one after the other: 6 rows, ("S0", "S0") on 2x2, are cut into 3 and 3, then into 2, 1, 2, 1; on a row of four
they are 2, 2, 1, 1.
"""
from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from flowedu.core.values.place import Place, bounds, format_devices
from flowedu.errors import ArgumentError

_FORM = re.compile(r"B|P|Pmax|Pmin|S\d+")
DUAL = {"B": "P", "P": "B"}              # how the gradient of what lies so lies; others lie as the value does
REDUCERS = {"P": "sum", "Pmax": "max", "Pmin": "min"}
Box = tuple[tuple[int, int], ...]        # [start, stop) along every axis


def split_axis(sbp: str) -> int | None:
    """The axis of "S<axis>"; None for "B" and "P"."""
    return int(sbp[1:]) if sbp[0] == "S" else None


def is_sbp(sbp: object) -> bool:
    return isinstance(sbp, str) and _FORM.fullmatch(sbp) is not None


def _axes(sbp: str | tuple, hierarchy: int | tuple) -> zip:
    """(SBP, devices) of each axis of the hierarchy."""
    return zip((sbp,) if isinstance(sbp, str) else sbp, (hierarchy,) if isinstance(hierarchy, int) else hierarchy)


def misfit(sbp: str | tuple[str, ...], shape: Sequence[int], hierarchy: int | tuple[int, ...],
           alone: bool = False) -> tuple[int, int | None, int] | None:
    """The first split that leaves a device nothing: the axis, its shortest part until then (None: there is no such axis),
    and how many devices cut it. alone: a device for itself is to have something, too."""
    least = list(shape)                                    # the smallest part along each axis, so far
    for s, k in _axes(sbp, hierarchy):
        axis = split_axis(s)
        if axis is not None and (k > 1 or alone):
            if axis >= len(shape):
                return axis, None, k
            if least[axis] < k:
                return axis, least[axis], k
            least[axis] //= k
    return None


def fits(sbp: str | tuple[str, ...], shape: Sequence[int], hierarchy: int | tuple[int, ...]) -> bool:
    """Whether a value of this shape may lie so: every split axis exists and every device gets something of it."""
    return misfit(sbp, shape, hierarchy) is None


@functools.lru_cache(maxsize=16384)
def boxes(sbp: tuple[str, ...], hierarchy: tuple[int, ...], shape: tuple[int, ...]) -> tuple[Box, ...]:
    """The part of the value that each device has, [start, stop) along every axis; devices in order."""
    found = []
    for coords in itertools.product(*map(range, hierarchy)):
        box = [(0, n) for n in shape]
        for s, k, c in zip(sbp, hierarchy, coords):
            axis = split_axis(s)
            if axis is not None and k > 1:
                start, stop = box[axis]
                a, b = bounds(stop - start, k)[c]
                box[axis] = (start + a, start + b)
        found.append(tuple(box))
    return tuple(found)


def local_shape(sbp: str | tuple[str, ...], shape: Sequence[int], hierarchy: int | tuple[int, ...],
                i: int) -> tuple[int, ...]:
    """The shape of what device number i has."""
    sbps, sizes = zip(*_axes(sbp, hierarchy))
    return tuple(b - a for a, b in boxes(sbps, sizes, tuple(shape))[i])


def pretty(sbp: str | tuple[str, ...]) -> str:
    """As OneFlow writes it: S(0); (S(0), B) for a grid of devices."""
    if not isinstance(sbp, str):
        return pretty(sbp[0]) if len(sbp) == 1 else f"({', '.join(map(pretty, sbp))})"
    return f"S({sbp[1:]})" if sbp[0] == "S" else sbp


class Layout(NamedTuple):
    """SBPs on a grid of devices. Made by `layout()`, which checks and completes.

    Attributes: sbp, one text for each axis of the grid; devices (numbers of devices among all), row-major; hierarchy, the
    grid's sizes.
    """

    sbp: tuple[str, ...]
    devices: tuple[int, ...]
    hierarchy: tuple[int, ...]

    @property
    def k(self) -> int:
        return len(self.devices)

    @property
    def whole(self) -> bool:
        """Every device has all of it."""
        return all(s == "B" or k == 1 for s, k in zip(self.sbp, self.hierarchy))

    @property
    def partial(self) -> tuple[int, ...]:
        """The axes of the grid along which the parts are to be summed, or compared."""
        return tuple(i for i, (s, k) in enumerate(zip(self.sbp, self.hierarchy)) if s[0] == "P" and k > 1)

    @property
    def reducer(self) -> str | None:
        """"sum", "max", "min": what makes the value from its parts; None where nothing is partial."""
        return REDUCERS[self.sbp[self.partial[0]]] if self.partial else None

    @property
    def plain(self) -> Layout:
        """The same layout without axes of one device; on one device everything is B."""
        if 1 not in self.hierarchy:
            return self
        kept = [(s, k) for s, k in zip(self.sbp, self.hierarchy) if k > 1] or [("B", 1)]
        return Layout(tuple(s for s, _ in kept), self.devices, tuple(k for _, k in kept))

    def coords(self, i: int) -> tuple[int, ...]:
        """Where device number i stands in the grid."""
        found = []
        for k in reversed(self.hierarchy):
            i, c = divmod(i, k)
            found.append(c)
        return tuple(reversed(found))

    def slot(self, i: int) -> int:
        """Which addend of a partial value device number i has a part of; 0 where nothing is partial."""
        return _slots(self)[0][i]

    @property
    def slots(self) -> int:
        """How many addends a partial value has."""
        return _slots(self)[1]

    def fits(self, shape: Sequence[int]) -> bool:
        return fits(self.sbp, shape, self.hierarchy)

    def box(self, shape: Sequence[int], i: int) -> Box:
        """[start, stop) along every axis of what device number i has."""
        return boxes(self.sbp, self.hierarchy, tuple(shape))[i]

    def local_shape(self, shape: Sequence[int], i: int) -> tuple[int, ...]:
        """The shape of what device number i has."""
        return tuple(b - a for a, b in self.box(shape, i))

    def __str__(self) -> str:
        grid = f" ({'x'.join(map(str, self.hierarchy))})" if len(self.hierarchy) > 1 else ""
        return f"{pretty(self.sbp)} on {format_devices(self.devices)}{grid}"


@functools.lru_cache(maxsize=4096)
def _slots(at: Layout) -> tuple[tuple[int, ...], int]:
    """Of which addend each device has a part, and how many addends there are."""
    axes, found = at.partial, []
    for i in range(at.k):
        slot, c = 0, at.coords(i)
        for axis in axes:
            slot = slot * at.hierarchy[axis] + c[axis]
        found.append(slot)
    return tuple(found), math.prod(at.hierarchy[a] for a in axes)


def layout(sbp: str | Sequence[str], devices: Sequence[int] | Place, hierarchy: Sequence[int] | None = None) -> Layout:
    """A Layout.

    Args:
        sbp: one text for each axis of the hierarchy; a text alone is for a row of devices, or for all axes of a Place.
        devices: their numbers, row-major; or a Place, which has its hierarchy.
        hierarchy: sizes of the grid; default: one row.

    Raises:
        ArgumentError: a text that is no SBP, not one for each axis, sizes whose product is not the number of devices, a
            device twice, or sums mixed with maxima.
    """
    if isinstance(devices, Place):
        devices, hierarchy = devices
        sbp = (sbp,) * len(hierarchy) if isinstance(sbp, str) else sbp
    sbp, devices = (sbp,) if isinstance(sbp, str) else tuple(sbp), tuple(devices)
    hierarchy = (len(devices),) if hierarchy is None else tuple(hierarchy)
    for s in sbp:
        if not is_sbp(s):
            raise ArgumentError("layout: not a layout", expected='"B", "P", "S0", "S1" ...', got=repr(s),
                                fix='"S0" splits along axis 0')
    if len(sbp) != len(hierarchy):
        raise ArgumentError(f"layout: {len(sbp)} SBPs for a hierarchy of {len(hierarchy)} axes ({len(sbp)} vs "
                            f"{len(hierarchy)})", expected=f"{len(hierarchy)}, one for each axis of {hierarchy}",
                            got=pretty(sbp), fix='("S0", "B") for a grid of two axes')
    if math.prod(hierarchy) != len(devices) or not devices or len(set(devices)) != len(devices):
        raise ArgumentError("layout: the hierarchy is not a grid of these devices",
                            expected="every device once, as many as the product of the hierarchy",
                            got=f"hierarchy {hierarchy}, devices {devices}",
                            fix="hierarchy (2, 2) for devices (0, 1, 2, 3)")
    if len({s for s in sbp if s[0] == "P"}) > 1:
        raise ArgumentError("layout: partial in two ways", expected="P, Pmax or Pmin, the same along all axes",
                            got=pretty(sbp), fix="bring one of them to B or S first")
    return Layout(sbp, devices, hierarchy)


def place_of(x: Place | Layout | Sequence[int]) -> Place:
    """The place of a layout; a row of devices."""
    if isinstance(x, (Place, Layout)):
        return Place(x.devices, x.hierarchy)
    return Place(tuple(x), (len(x),))
