"""One rank's part of a hop, in NumPy, over a communicator (ranks/base.py).

Every rank derives the same messages from the two layouts, so only the values are sent.

Where a hop is exactly a collective (all-gather, reduce-scatter, all-reduce, broadcast) the communicator's own
function does it, without a copy when the parts are adjacent in memory. Everything else is an exchange of
packed pieces.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowedu.core.sbp.boxing.algebra import Hop, Primitive, Route
from flowedu.core.sbp.boxing.geometry import Box, Shape, align_grids, inside, lines, transfer
from flowedu.core.sbp.boxing.inops import identity
from flowedu.core.sbp.boxing.primitives import ALL_REDUCE, groups
from flowedu.core.sbp.sbp import Layout, boxes, shape_of, split_axis
from flowedu.core.values.spec import Spec

COMBINE = {"sum": np.add, "max": np.maximum, "min": np.minimum}
Index = tuple[slice, ...]
Program = Callable[..., np.ndarray | None]           # (comm, part, what) -> part


class Piece(NamedTuple):
    """A piece that this rank needs.

    A piece is either at index `own` of this rank's part, or the elements [start, stop) of the data from
    `sender`.
    """

    sender: int
    own: Index | None
    start: int
    stop: int
    shape: Shape


class Script(NamedTuple):
    """The work of one rank in a transfer.

    Attributes:
        sends: (to, indices in the own part).
        receives: (from, elements).
        cells: (index in the result, pieces that are combined there); None if the rank receives nothing.
        shape: the shape of the result.
        holes: True if some cells have no pieces and must be filled.
    """

    sends: tuple[tuple[int, tuple[Index, ...]], ...]
    receives: tuple[tuple[int, int], ...]
    cells: tuple[tuple[Index, tuple[Piece, ...]], ...] | None
    shape: Shape
    holes: bool


def perform(comm, route: Route, part: np.ndarray | None, what: str = "") -> np.ndarray | None:
    """Perform one rank's part of a route: Route.perform for the rank of `comm`."""
    programs = route.programs.get(comm.rank)
    if programs is None:
        programs = route.programs[comm.rank] = [_program(h, comm.rank) for h in route.hops]
    for program in programs:
        part = program(comm, part, what or route.title)
    return part


def _program(hop: Hop, rank: int) -> Program:
    own = PROGRAMS.get(hop.primitive)
    return transferred(hop.src, hop.dst, hop.spec, rank) if own is None else own(hop, rank)


def script(src: Layout, dst: Layout, shape: Shape, rank: int) -> Script:
    """Return the messages of this rank, and the cells of its result in which they are used.

    Pieces between two ranks are in the order of the receiver's cells.
    """
    have = {d: src.box(shape, i) for i, d in enumerate(src.devices)}
    sends: dict[int, list[Index]] = {}
    counts: dict[int, int] = {}
    cells = None
    whole: Box = ()
    for i, (device, need) in enumerate(zip(dst.devices, transfer(src, dst, shape))):
        if device == rank:
            whole, cells = dst.box(shape, i), []
        for cell in need.cells:
            mine = []
            for piece in cell.pieces:
                n = math.prod(shape_of(piece.box))
                if device == rank and piece.sender == rank:
                    mine.append(Piece(rank, inside(piece.box, have[rank]), 0, 0, shape_of(piece.box)))
                elif device == rank:
                    at = counts.get(piece.sender, 0)
                    counts[piece.sender] = at + n
                    mine.append(Piece(piece.sender, None, at, at + n, shape_of(piece.box)))
                elif piece.sender == rank and n:
                    sends.setdefault(device, []).append(inside(piece.box, have[rank]))
            if device == rank:
                cells.append((inside(cell.box, whole), tuple(mine)))
    return Script(tuple((to, tuple(at)) for to, at in sorted(sends.items())),
                  tuple((sender, n) for sender, n in sorted(counts.items()) if n),
                  None if cells is None else tuple(cells), shape_of(whole),
                  cells is not None and any(not pieces for _, pieces in cells))


def transferred(src: Layout, dst: Layout, spec: Spec, rank: int) -> Program:
    """Return a program that moves, reduces, or fills data."""
    found = collective(src, dst, spec.shape)
    if found is not None:
        return _collected(found, dst, spec.shape, rank)
    kind, todo, reducer = (_dtype(spec), script(src, dst, spec.shape, rank), src.reducer or dst.reducer
                           or "sum")
    combine, fill, receives = (COMBINE[reducer], identity(reducer, spec.dtype),
                               [(p, (n,), kind) for p, n in todo.receives])

    def program(comm, part, what):
        got = {}
        if todo.sends or receives:
            came = comm.exchange([(to, _packed(part, at)) for to, at in todo.sends], receives, what)
            got = {sender: a for (sender, _, _), a in zip(receives, came)}
        if todo.cells is None:
            return None
        out = np.full(todo.shape, fill, kind) if todo.holes else np.empty(todo.shape, kind)
        for at, pieces in todo.cells:
            here = out[(*at, ...)]                         # a view, even of a single element
            for i, p in enumerate(pieces):
                if p.own is None and p.start == p.stop:
                    continue                               # no elements, no message
                piece = part[p.own] if p.own is not None else got[p.sender][p.start:p.stop].reshape(p.shape)
                if i == 0:
                    here[...] = piece
                else:
                    combine(here, piece, out=here)
        return out
    return program


def all_reduced(src: Layout, groups: Sequence[tuple[int, ...]], rank: int) -> Program:
    """Return a program that computes an all-reduce in this rank's group."""
    group, op = next((tuple(sorted(g)) for g in groups if rank in g), None), src.reducer
    if group is None:
        return _nothing
    return lambda comm, part, what: comm.all_reduce(part, group, op, what)


# {primitive: function (hop, rank) -> program}; the others move, reduce, or fill data
PROGRAMS: dict[Primitive, Callable[[Hop, int], Program]] = {
    ALL_REDUCE: lambda hop, rank: all_reduced(hop.src, groups(hop.src, hop.dst, hop.spec.shape), rank)}


def _nothing(comm, part, what) -> None:
    """Do nothing, for a rank outside of the group."""


def _packed(part: np.ndarray, at: tuple[Index, ...]) -> np.ndarray:
    """Return the pieces concatenated; without a copy for one contiguous piece."""
    if len(at) == 1:
        return np.ascontiguousarray(part[at[0]]).reshape(-1)
    return np.concatenate([part[a].reshape(-1) for a in at])


def _dtype(spec: Spec) -> np.dtype:
    """Return the dtype of messages. bfloat16 is sent as float32, because NumPy does not have it."""
    return np.dtype(np.float32) if spec.dtype.numpy is None else spec.dtype.numpy


# ---- hops that are one collective
class Collective(NamedTuple):
    """A hop that is one collective.

    all_gather and reduce_scatter apply along `axis`, in each of `groups`; broadcast starts at the first rank
    of the only group.
    """

    kind: str
    axis: int
    groups: tuple[tuple[int, ...], ...]
    reducer: str | None


def collective(src: Layout, dst: Layout, shape: Shape) -> Collective | None:
    """Return the collective that performs this hop, with equal parts in rank order, or None."""
    if src.k == 1 and dst.whole and dst.k > 1:
        return Collective("broadcast", 0, ((src.devices[0], *(d for d in dst.devices if d != src.devices[0])),
                                           ), None)
    pair = align_grids(src, dst, shape)
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
    axis: Any = split_axis(x if kind == "all_gather" else y)  # never None, because this SBP is a split
    found = lines(a, axes)
    parts, wholes = boxes(cut.sbp, cut.hierarchy, shape), boxes(full.sbp, full.hierarchy, shape)
    for line in found:
        if list(line) != sorted(line, key=lambda i: src.devices[i]) or not all(
                _tiles([parts[i] for i in line], wholes[i], axis) for i in line):
            return None
    return Collective(kind, axis, tuple(tuple(src.devices[i] for i in line) for line in found), src.reducer)


def _tiles(parts: list, whole: tuple, axis: int) -> bool:
    """Return True if the parts are equal and consecutive along `axis`, and together form the whole."""
    start, stop = whole[axis]
    step, rest = divmod(stop - start, len(parts))
    return rest == 0 and all(
        p == tuple((start + i * step, start + (i + 1) * step) if d == axis else w
                   for d, w in enumerate(whole))
        for i, p in enumerate(parts))


def _collected(found: Collective, dst: Layout, shape: Shape, rank: int) -> Program:
    group = next((g for g in found.groups if rank in g), None)
    if group is None:
        return _nothing
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
