"""Rows of a route's diagram: devices, or groups of neighboring devices if there are many.

The messages between groups are counted without a list of all messages, which 1,000 devices have a million of:
one NumPy call per device replaces the loops of core/sbp/boxing/geometry.py.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from flowedu.core.sbp.boxing.algebra import Hop, Route
from flowedu.core.sbp.boxing.primitives import ALL_REDUCE, MOVE, REDUCE, groups
from flowedu.core.sbp.sbp import Box, boxes
from flowedu.core.values.place import bounds, format_devices

SINGLE = 64                                      # with more devices, a row is always a group
SIZES = (16, 12, 8, 6, 4, 3, 2, 1)               # numbers of groups

Edges = list[list[int]]                          # of the blocks along each shown axis


@dataclass(frozen=True)
class Row:
    """A row of a diagram: one device, or a group of devices."""

    devices: tuple[int, ...]

    @property
    def range(self) -> str:
        """Return the numbers of the devices as text: `3`, `0-61`, or `0 to 122` with gaps."""
        text = format_devices(self.devices)
        return f"{self.devices[0]} to {self.devices[-1]}" if "," in text else text

    @property
    def name(self) -> str:
        """Return the devices as text: `device 3`, `devices 0-61`."""
        return f"device{'s' * (len(self.devices) > 1)} {self.range}"


def make_rows(devices: Sequence[int], n: int) -> list[Row]:
    """Divide the devices into n groups of neighbors."""
    return [Row(tuple(devices[a:b])) for a, b in bounds(len(devices), n)]


def possible_groups(route: Route) -> list[int]:
    """Return numbers of groups, best first: rows of the grid of devices, then others."""
    grids = [math.prod(at.hierarchy[:i]) for at in (route.src, route.dst)
             for i in range(1, len(at.hierarchy))]
    return [*sorted({n for n in grids if 1 < n <= SIZES[0]}, reverse=True), *SIZES]


def reduce_edges(edges: Edges, n: int) -> Edges:
    """Return at most n + 1 edges of each axis, evenly chosen."""
    return [at if len(at) <= n + 1 else [*(at[a] for a, _ in bounds(len(at) - 1, n)), at[-1]] for at in edges]


def touched(parts: Sequence[Box], axes: Sequence[int], edges: Edges) -> list[int]:
    """Return the numbers of the blocks, in row-major order, that contain elements of `parts`."""
    if not parts:
        return []
    inside = np.ones((len(parts), 1), np.int64)
    result = inside.max(axis=0)
    for i, (axis, at) in enumerate(zip(axes, edges)):
        start, stop = (np.array([p[axis][k] for p in parts])[:, None] for k in (0, 1))
        along = ((start < np.array(at[1:])) & (stop > np.array(at[:-1]))).astype(np.int64)
        result = (inside.T @ along).ravel() if i else along.max(axis=0)
        inside = along
    return np.flatnonzero(result).tolist()


# ---- messages
def count_messages(hop: Hop, rows: Sequence[Row]) -> dict[tuple[int, int], tuple[int, int]]:
    """Return {(row of the senders, row of the receivers): (number of messages, their bytes)}."""
    devices = np.array([d for row in rows for d in row.devices])
    order = np.argsort(devices)
    row_of = np.repeat(np.arange(len(rows)), [len(row.devices) for row in rows])[order]
    devices = devices[order]
    counts = np.zeros((len(rows), len(rows)), np.int64)
    sizes = np.zeros_like(counts)
    for receiver, senders, elements in _incoming(hop):
        at, to = (row_of[np.searchsorted(devices, d)] for d in (senders, receiver))
        np.add.at(counts[:, to], at, 1)
        np.add.at(sizes[:, to], at, elements)
    return {(int(p), int(q)): (int(counts[p, q]), int(sizes[p, q]) * hop.spec.dtype.bytes)
            for p, q in np.argwhere(counts)}


def describe_messages(senders: Row, receivers: Row, count: int, size: str) -> str:
    """Return "device 0 sends 16 bytes to device 1", or the count and the bytes of messages between groups."""
    if len(senders.devices) == len(receivers.devices) == 1:
        return f"{senders.name} sends {size} to {receivers.name}"
    return f"{senders.name} to {receivers.name}: {count:,} message{'s' * (count > 1)}, {size}"


Incoming = Iterator[tuple[int, np.ndarray, np.ndarray]]     # a receiver, its senders, their elements


def _incoming(hop: Hop) -> Incoming:
    """Yield the messages of a hop by receiver."""
    if hop.primitive is ALL_REDUCE:
        yield from _all_reduce(hop)
    elif hop.primitive in (MOVE, REDUCE) and hop.dst.slots == 1:
        yield from _transfer(hop)
    else:
        for sender, receiver, nbytes in hop.messages():
            yield receiver, np.array([sender]), np.array([nbytes // hop.spec.dtype.bytes])


def _all_reduce(hop: Hop) -> Incoming:
    """Each device sends its part of a share to the device that sums it, and gets the other sums."""
    shape = hop.spec.shape
    for group in groups(hop.src, hop.dst, shape):
        box = hop.src.box(shape, hop.src.devices.index(group[0]))
        share = np.array([b - a for a, b in bounds(math.prod(b - a for a, b in box), len(group))])
        devices = np.array(group)
        for i, receiver in enumerate(group):
            elements = share + share[i]
            sends = (elements > 0) & (devices != receiver)
            yield receiver, devices[sends], elements[sends]


def _transfer(hop: Hop) -> Incoming:
    """Choose senders as geometry.transfer does: one per distinct part, by distance, load, and number."""
    src, dst, shape = hop.src, hop.dst, hop.spec.shape
    have, want = (boxes(at.sbp, at.hierarchy, shape) for at in (src, dst))
    number: dict[tuple[int, Box], int] = {}
    part = np.array([number.setdefault((src.slot(i), box), len(number)) for i, box in enumerate(have)])
    devices, coords = np.array(src.devices), np.array([src.coords(i) for i in range(src.k)])
    held = np.array(have, np.int64).reshape(src.k, len(shape), 2)
    sent = np.zeros(src.k, np.int64)
    first = np.searchsorted(np.sort(part), np.arange(len(number)))
    index = {d: i for i, d in enumerate(src.devices)}
    for receiver, box in zip(dst.devices, want):
        need = np.array(box, np.int64).reshape(len(shape), 2)
        along = np.minimum(held[:, :, 1], need[:, 1]) - np.maximum(held[:, :, 0], need[:, 0])
        elements = np.maximum(along, 0).prod(axis=1)
        own = index.get(receiver)
        chosen = np.arange(src.k)
        if len(number) < src.k:                  # several devices have the same part
            far = (coords != coords[own]).sum(axis=1) if own is not None else np.zeros(src.k, np.int64)
            chosen = np.lexsort((devices, abs(devices - receiver), sent, far, part))[first]
        sends = elements[chosen] > 0
        if own is not None:
            sends &= part[chosen] != part[own]
        chosen = chosen[sends]
        sent[chosen] += elements[chosen]
        yield receiver, devices[chosen], elements[chosen]
