"""Hops of a route that are exactly one collective (all-gather, reduce-scatter, broadcast).

The communicator's own does them, without a copy when the parts lie one after the other in memory.
core/sbp/boxing/perform.py asks here before it exchanges pieces."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flowedu.core.sbp.boxing.geometry import Shape, aligned, lines, shape_of
from flowedu.core.sbp.boxing.perform import Program, nothing
from flowedu.core.sbp.sbp import Layout, boxes, split_axis


class Collective(NamedTuple):
    """all_gather and reduce_scatter: along `axis`, in each of `groups`. broadcast: from the first of the only group."""

    kind: str
    axis: int
    groups: tuple[tuple[int, ...], ...]
    reducer: str | None


def collective(src: Layout, dst: Layout, shape: Shape) -> Collective | None:
    """The collective that does this hop: equal parts, in the order of the ranks."""
    if src.k == 1 and dst.whole and dst.k > 1:
        return Collective("broadcast", 0, ((src.devices[0], *(d for d in dst.devices if d != src.devices[0])),), None)
    pair = aligned(src, dst, shape)
    if pair is None:
        return None
    a, b = pair
    axes = tuple(i for i, (x, y) in enumerate(zip(a.sbp, b.sbp)) if x != y)
    before, after = {a.sbp[i] for i in axes}, {b.sbp[i] for i in axes}
    if len(before) != 1 or len(after) != 1:
        return None
    (x,), (y,) = before, after
    if x[0] == "S" and y == "B":
        kind, cut, full = "all_gather", a, b
    elif x[0] == "P" and y[0] == "S":
        kind, cut, full = "reduce_scatter", b, a
    else:
        return None
    axis, found = split_axis(x if kind == "all_gather" else y), lines(a, axes)
    parts, wholes = boxes(cut.sbp, cut.hierarchy, shape), boxes(full.sbp, full.hierarchy, shape)
    for line in found:
        if list(line) != sorted(line, key=lambda i: src.devices[i]) or not all(
                _tiles([parts[i] for i in line], wholes[i], axis) for i in line):
            return None
    return Collective(kind, axis, tuple(tuple(src.devices[i] for i in line) for line in found), src.reducer)


def _tiles(parts: list, whole: tuple, axis: int) -> bool:
    """Whether the parts, equal and one after the other along `axis`, are the whole."""
    start, stop = whole[axis]
    step, rest = divmod(stop - start, len(parts))
    return rest == 0 and all(
        p == tuple((start + i * step, start + (i + 1) * step) if d == axis else w for d, w in enumerate(whole))
        for i, p in enumerate(parts))


def program(src: Layout, dst: Layout, shape: Shape, rank: int) -> Program | None:
    """What `rank` does of a hop that is one collective; None where it is none."""
    found = collective(src, dst, shape)
    if found is None:
        return None
    group = next((g for g in found.groups if rank in g), None)
    if group is None:
        return nothing
    k, axis, reducer = len(group), found.axis, found.reducer
    if found.kind == "broadcast":
        root, group, mine = group[0], tuple(sorted(group)), rank in dst.devices

        def broadcast(comm, part, what):
            value = comm.broadcast(None if part is None else np.asarray(part, order="C"), root, group, what)
            return value if mine else None
        return broadcast

    shape = shape_of(dst.box(shape, dst.devices.index(rank)))

    def all_gather(comm, part, what):
        found = comm.all_gather(part, group, what)
        return np.concatenate(list(found), axis=axis) if axis else found.reshape(shape)

    def reduce_scatter(comm, part, what):
        pieces = np.stack(np.split(part, k, axis=axis)) if axis else \
            np.asarray(part, order="C").reshape(k, part.shape[0] // k, *part.shape[1:])
        return comm.reduce_scatter(pieces, group, reducer, what)
    return all_gather if found.kind == "all_gather" else reduce_scatter
