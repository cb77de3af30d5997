"""Boxes: the part of a value that each device has, the parts that it needs, and their senders.

Without partial sums every device has one hyper-rectangle. The distinct ones form a grid of cells.
A partial value has several addends (slots), each with such a grid. If the target is partial,
each cell of a source addend goes to the target addend that takes it with the fewest bytes.

    one addend to one       cells are moved     slice, all-gather, all-to-all, copy ...
    many to one             cells are summed    reduce-scatter, reduce
    one to many             cells stay          keep-first, pad; all other cells are zero
"""
from __future__ import annotations

import functools
import itertools
import math
from collections import Counter, defaultdict
from typing import Any, NamedTuple

from flowedu.core.sbp.sbp import Box, Layout, boxes
from flowedu.core.values.spec import Shape


class Piece(NamedTuple):
    """A part of one addend, and the device that sends it."""

    box: Box
    addend: int
    sender: int


class Cell(NamedTuple):
    """A part of a device's box. Its value is the reduction of `pieces` (none: neutral element)."""

    box: Box
    pieces: tuple[Piece, ...]


class Need(NamedTuple):
    """The box of one device of `dst`: a row-major grid with `counts` cells along each axis."""

    counts: Shape
    cells: tuple[Cell, ...]


def overlap(a: Box, b: Box) -> Box | None:
    """Return the intersection, or None if it is empty (equal empty intervals do intersect)."""
    intersection = []
    for x, y in zip(a, b):
        start, stop = max(x[0], y[0]), min(x[1], y[1])
        if start >= stop and x != y:
            return None
        intersection.append((start, stop))
    return tuple(intersection)


def size(box: Box) -> int:
    return math.prod(b - a for a, b in box)


def inside(box: Box, whole: Box) -> tuple[slice, ...]:
    """Return the index of `box` in an array of the elements of `whole`."""
    return tuple(slice(a - start, b - start) for (a, b), (start, _) in zip(box, whole))


@functools.lru_cache(maxsize=8192)
def transfer(src: Layout, dst: Layout, shape: Shape) -> tuple[Need, ...]:
    """Return the Need of each device of `dst`: its cells and their senders."""
    # A device that owns a piece keeps it. Otherwise the sender is the owner at the smallest
    # distance (axes of the source's grid that differ). Ties go to the one that has sent least.
    have, want = boxes(src.sbp, src.hierarchy, shape), boxes(dst.sbp, dst.hierarchy, shape)
    cuts = [sorted({box[d] for box in have}) for d in range(len(shape))]
    owners: dict[tuple[int, Box], list[int]] = {}
    for i, (device, box) in enumerate(zip(src.devices, have)):
        owners.setdefault((src.slot(i), box), []).append(device)
    takers, slots = None if dst.slots == 1 else _assign_takers(owners, dst, want), src.slots
    sent: Counter = Counter()
    place = {d: src.coords(i) for i, d in enumerate(src.devices)}

    def distance(d: int, to: int) -> int:
        return sum(a != b for a, b in zip(place[d], place[to])) if to in place else 0

    needs = []
    for i, (device, box) in enumerate(zip(dst.devices, want)):
        slot = dst.slot(i)
        grid = [[(c, o[0]) for c in cut if (o := overlap((c,), (b,))) is not None]
                for cut, b in zip(cuts, box)]
        cells = []
        for at in itertools.product(*grid):
            whole, part = tuple(c for c, _ in at), tuple(o for _, o in at)
            pieces = []
            for addend in range(slots):
                if takers is None or slot in takers[addend, part]:
                    senders = owners[addend, whole]
                    sender = device if device in senders else min(
                        senders, key=lambda d: (distance(d, device), sent[d], abs(d - device), d))
                    if sender != device:
                        sent[sender] += size(part)
                    pieces.append(Piece(part, addend, sender))
            cells.append(Cell(part, tuple(pieces)))
        needs.append(Need(tuple(map(len, grid)), tuple(cells)))
    return tuple(needs)


def _assign_takers(owners: dict[tuple[int, Box], list[int]], dst: Layout, want: tuple) -> dict:
    """Return {(addend of the source, part of a cell): the addends of the target that take it}."""
    # The cheapest addend takes a part; among equals, the one that has received least. All addends
    # of a maximum that need no message take it, because a repeated value does not change a maximum.
    wanted: dict[Box, dict[int, list[int]]] = {}           # {box: {addend of the target: devices}}
    for i, (device, box) in enumerate(zip(dst.devices, want)):
        wanted.setdefault(box, {}).setdefault(dst.slot(i), []).append(device)
    load, takers = Counter[Any](), {}
    for (addend, cell), holders in owners.items():
        for box, slots in wanted.items():
            part = overlap(cell, box)
            if part is None:
                continue
            n = size(part)
            cost = {slot: n * sum(d not in holders for d in ds) for slot, ds in slots.items()}
            free = tuple(s for s, c in cost.items() if c == 0) if dst.reducer != "sum" else ()
            chosen = free or (min(cost, key=lambda s: (cost[s], load[s], s)),)
            takers[addend, part] = chosen
            load[chosen[0]] += cost[chosen[0]]
    return takers


def messages(src: Layout, dst: Layout, shape: Shape) -> dict[tuple[int, int], int]:
    """Return {(from device, to device): elements} of a transfer."""
    elements: Counter = Counter()
    for device, need in zip(dst.devices, transfer(src, dst, shape)):
        for cell in need.cells:
            for piece in cell.pieces:
                if piece.sender != device and size(piece.box):
                    elements[piece.sender, device] += size(piece.box)
    return dict(sorted(elements.items()))


def moved(src: Layout, dst: Layout, shape: Shape) -> int:
    """Return the number of elements that the devices of `dst` need and do not have."""
    if dst.slots > 1:
        return sum(messages(src, dst, shape).values())
    have = dict(zip(src.devices, boxes(src.sbp, src.hierarchy, shape)))
    total, slots = 0, src.slots
    for device, box in zip(dst.devices, boxes(dst.sbp, dst.hierarchy, shape)):
        local = overlap(box, have[device]) if device in have else None
        total += slots * size(box) - (0 if local is None else size(local))
    return total


# ---- equivalent layouts, and layouts that differ along some axes only
def equivalent(a: Layout, b: Layout, shape: Shape) -> bool:
    """Return True if every device has the same box of the same addend under both layouts."""
    if set(a.devices) != set(b.devices) or a.slots != b.slots or a.reducer != b.reducer:
        return False
    have, want = boxes(a.sbp, a.hierarchy, shape), boxes(b.sbp, b.hierarchy, shape)
    order = [b.devices.index(d) for d in a.devices]
    pairs = {(a.slot(i), b.slot(j)) for i, j in enumerate(order)}
    return have == tuple(want[j] for j in order) and len(pairs) == a.slots


@functools.lru_cache(maxsize=8192)
def merge_axes(at: Layout, shape: Shape) -> Layout:
    """Return the layout on as few grid axes as possible: (B, B) on 2x2 becomes B on 4."""
    at = at.plain
    for a in range(len(at.sbp) - 1):
        if at.sbp[a] == at.sbp[a + 1]:
            h = at.hierarchy
            flat = Layout(at.sbp[:a] + at.sbp[a + 1:], at.devices,
                          h[:a] + (h[a] * h[a + 1],) + h[a + 2:])
            if boxes(flat.sbp, flat.hierarchy, shape) == boxes(at.sbp, h, shape):
                return merge_axes(flat, shape)
    return at


def refine_grid(at: Layout, hierarchy: Shape, shape: Shape) -> Layout | None:
    """Return the layout on a finer grid (B on 4 becomes (B, B) on 2x2), or None if boxes differ."""
    sbp, sizes = [], iter(hierarchy)
    for s, k in zip(at.sbp, at.hierarchy):
        n = 1
        while n < k:
            n *= next(sizes)
            sbp.append(s)
        if n != k:
            return None
    fine = Layout(tuple(sbp), at.devices, hierarchy)
    return fine if boxes(fine.sbp, hierarchy, shape) == boxes(at.sbp, at.hierarchy, shape) else None


def align_grids(src: Layout, dst: Layout, shape: Shape) -> tuple[Layout, Layout] | None:
    """Return both layouts on a common grid of the same devices, or None if none exists."""
    if src.devices != dst.devices:
        return None
    if src.hierarchy == dst.hierarchy:
        return src, dst
    if len(src.hierarchy) < len(dst.hierarchy):
        fine = refine_grid(src, dst.hierarchy, shape)
        return fine and (fine, dst)
    fine = refine_grid(dst, src.hierarchy, shape)
    return fine and (src, fine)


def lines(at: Layout, axes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return groups of device indices. In a group, only coordinates along these axes differ."""
    groups: dict[Shape, list[int]] = defaultdict(list)
    for i in range(at.k):
        groups[tuple(c for a, c in enumerate(at.coords(i)) if a not in axes)].append(i)
    return [tuple(g) for g in groups.values()]
