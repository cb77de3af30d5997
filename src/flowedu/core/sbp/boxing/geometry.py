"""Boxes: the part of a value that each device has, the part it lacks, and the device that sends it.

Without partial sums every device has one hyper-rectangle, and the different ones form a grid of cells. A partial value is
several addends (slots), each laid out so. A change of layout is then one question, asked cell by cell: which addend of
the target takes this cell of that addend? The one for which the fewest bytes travel. Everything else follows:

    one addend to one       cells move                  slice, all-gather, all-to-all, copy ...
    many to one             cells meet and are summed   reduce-scatter, reduce
    one to many             cells stay where they are   keep-first, pad; what is nowhere is zero
"""
from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from typing import NamedTuple

from flowedu.core.sbp.sbp import Box, Layout, boxes

Shape = tuple[int, ...]


class Piece(NamedTuple):
    """A part of one addend, and the device that gives it."""

    box: Box
    addend: int
    sender: int


class Cell(NamedTuple):
    """A part of what a device is to have: pieces that are summed; none: zero (the identity of the reducer)."""

    box: Box
    pieces: tuple[Piece, ...]


class Need(NamedTuple):
    """What one device is to have: a grid of cells, row-major, with `counts` of them along each axis."""

    counts: Shape
    cells: tuple[Cell, ...]


def overlap(a: Box, b: Box) -> Box | None:
    """Where both are; None where that is nowhere. (An axis without elements does not count as nowhere.)"""
    found = []
    for x, y in zip(a, b):
        start, stop = max(x[0], y[0]), min(x[1], y[1])
        if start >= stop and x != y:
            return None
        found.append((start, stop))
    return tuple(found)


def size(box: Box) -> int:
    return math.prod(b - a for a, b in box)


def shape_of(box: Box) -> Shape:
    return tuple(b - a for a, b in box)


def inside(box: Box, whole: Box) -> tuple[slice, ...]:
    """The index of `box` in an array that holds `whole`."""
    return tuple(slice(a - start, b - start) for (a, b), (start, _) in zip(box, whole))


@functools.lru_cache(maxsize=8192)
def transfer(src: Layout, dst: Layout, shape: Shape) -> tuple[Need, ...]:
    """For each device of `dst` what it is to have, and from whom. Whoever has a piece keeps it; of several owners the one
    gives it that is nearest in the source's grid (in the fewest axes elsewhere), of these the one that has given least so
    far, of these the nearest by number."""
    have, want = boxes(src.sbp, src.hierarchy, shape), boxes(dst.sbp, dst.hierarchy, shape)
    cuts = [sorted({box[d] for box in have}) for d in range(len(shape))]
    owners: dict[tuple[int, Box], list[int]] = {}
    for i, (device, box) in enumerate(zip(src.devices, have)):
        owners.setdefault((src.slot(i), box), []).append(device)
    taken, slots = None if dst.slots == 1 else _taken(owners, dst, want), src.slots
    given: Counter = Counter()
    place = {d: src.coords(i) for i, d in enumerate(src.devices)}
    away = lambda d, to: sum(a != b for a, b in zip(place[d], place[to])) if to in place else 0
    needs = []
    for i, (device, box) in enumerate(zip(dst.devices, want)):
        slot = dst.slot(i)
        grid = [[(c, o[0]) for c in cut if (o := overlap((c,), (b,))) is not None] for cut, b in zip(cuts, box)]
        cells = []
        for at in itertools.product(*grid):
            whole, part = tuple(c for c, _ in at), tuple(o for _, o in at)
            pieces = []
            for addend in range(slots):
                if taken is None or slot in taken[addend, part]:
                    found = owners[addend, whole]
                    sender = device if device in found else min(
                        found, key=lambda d: (away(d, device), given[d], abs(d - device), d))
                    if sender != device:
                        given[sender] += size(part)
                    pieces.append(Piece(part, addend, sender))
            cells.append(Cell(part, tuple(pieces)))
        needs.append(Need(tuple(map(len, grid)), tuple(cells)))
    return tuple(needs)


def _taken(owners: dict[tuple[int, Box], list[int]], dst: Layout, want: tuple[Box, ...]) -> dict:
    """{(addend of the source, part of a cell): the addends of the target that take it}. The cheapest, and of equals the one
    that has taken least; a maximum takes it wherever it is for nothing, since taking it twice does no harm."""
    takers: dict[Box, dict[int, list[int]]] = {}           # {box: {addend of the target: devices}}
    for i, (device, box) in enumerate(zip(dst.devices, want)):
        takers.setdefault(box, {}).setdefault(dst.slot(i), []).append(device)
    load, taken = Counter(), {}
    for (addend, cell), found in owners.items():
        for box, slots in takers.items():
            part = overlap(cell, box)
            if part is None:
                continue
            n = size(part)
            cost = {slot: n * sum(d not in found for d in devices) for slot, devices in slots.items()}
            free = tuple(s for s, c in cost.items() if c == 0) if dst.reducer != "sum" else ()
            chosen = free or (min(cost, key=lambda s: (cost[s], load[s], s)),)
            taken[addend, part] = chosen
            load[chosen[0]] += cost[chosen[0]]
    return taken


def messages(src: Layout, dst: Layout, shape: Shape) -> dict[tuple[int, int], int]:
    """{(from device, to device): elements} of a transfer."""
    found: Counter = Counter()
    for device, need in zip(dst.devices, transfer(src, dst, shape)):
        for cell in need.cells:
            for piece in cell.pieces:
                if piece.sender != device and size(piece.box):
                    found[piece.sender, device] += size(piece.box)
    return dict(sorted(found.items()))


def moved(src: Layout, dst: Layout, shape: Shape) -> int:
    """The elements of a transfer: those of its messages. Where nothing is partial in the end they need no plan: each device
    gets what it wants of every addend, but for what it has."""
    if dst.slots > 1:
        return sum(messages(src, dst, shape).values())
    have = dict(zip(src.devices, boxes(src.sbp, src.hierarchy, shape)))
    total, slots = 0, src.slots
    for device, box in zip(dst.devices, boxes(dst.sbp, dst.hierarchy, shape)):
        mine = overlap(box, have[device]) if device in have else None
        total += slots * size(box) - (0 if mine is None else size(mine))
    return total


# ---- layouts that are the same, or differ along some axes only
def equivalent(a: Layout, b: Layout, shape: Shape) -> bool:
    """Whether every device has the same under both: the same box, of the same addend (which is numbered as you like)."""
    if set(a.devices) != set(b.devices) or a.slots != b.slots or a.reducer != b.reducer:
        return False
    have, want = boxes(a.sbp, a.hierarchy, shape), boxes(b.sbp, b.hierarchy, shape)
    pairs = set()
    for i, device in enumerate(a.devices):
        j = b.devices.index(device)
        if have[i] != want[j]:
            return False
        pairs.add((a.slot(i), b.slot(j)))
    return len(pairs) == a.slots


@functools.lru_cache(maxsize=8192)
def merged(at: Layout, shape: Shape) -> Layout:
    """The same layout on as few axes as possible: (B, B) on 2x2 is B on four."""
    at = at.plain
    for a in range(len(at.sbp) - 1):
        if at.sbp[a] == at.sbp[a + 1]:
            h = at.hierarchy
            flat = Layout(at.sbp[:a] + at.sbp[a + 1:], at.devices, h[:a] + (h[a] * h[a + 1],) + h[a + 2:])
            if boxes(flat.sbp, flat.hierarchy, shape) == boxes(at.sbp, h, shape):
                return merged(flat, shape)
    return at


def refined(at: Layout, hierarchy: Shape, shape: Shape) -> Layout | None:
    """The same layout on a finer grid: B on four is (B, B) on 2x2. None where it is not the same."""
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


def aligned(src: Layout, dst: Layout, shape: Shape) -> tuple[Layout, Layout] | None:
    """Both on one grid of the same devices; None where there is none."""
    if src.devices != dst.devices:
        return None
    if src.hierarchy == dst.hierarchy:
        return src, dst
    if len(src.hierarchy) < len(dst.hierarchy):
        fine = refined(src, dst.hierarchy, shape)
        return fine and (fine, dst)
    fine = refined(dst, src.hierarchy, shape)
    return fine and (src, fine)


def lines(at: Layout, axes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The places 0 ... k-1 in groups that differ along these axes of the grid only."""
    groups: dict[Shape, list[int]] = {}
    for i in range(at.k):
        groups.setdefault(tuple(c for a, c in enumerate(at.coords(i)) if a not in axes), []).append(i)
    return [tuple(g) for g in groups.values()]
