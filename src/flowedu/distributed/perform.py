"""One rank's half of a hop, in NumPy, over a communicator (sbp/ranks): every rank works out the same messages from the two
layouts, so nothing but the values travels.

A hop is an exchange of packed pieces; an all-reduce is the communicator's own. (Others that are exactly one collective are
too, with distributed/collective.py.)
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from flowedu.core.sbp.boxing.geometry import Shape, inside, shape_of, transfer
from flowedu.core.sbp.boxing.inops import identity
from flowedu.core.sbp.sbp import Layout
from flowedu.core.shelves import shelf
from flowedu.core.values.spec import Spec

COMBINE = {"sum": np.add, "max": np.maximum, "min": np.minimum}
Index = tuple[slice, ...]
Program = Callable[..., np.ndarray | None]           # (comm, part, what) -> part


class Piece(NamedTuple):
    """A piece that this rank needs: `own`, its index in the part that the rank has already, or elements [start, stop) of
    what `sender` sends."""

    sender: int
    own: Index | None
    start: int
    stop: int
    shape: Shape


class Script(NamedTuple):
    """What one rank does in a transfer.

    Attributes: sends, (to, indices in the own part); receives, (from, elements); cells, (index in the result, pieces that
    are combined there), or None where the rank gets nothing; shape of the result; holes, whether there are cells without
    pieces, to be filled.
    """

    sends: tuple[tuple[int, tuple[Index, ...]], ...]
    receives: tuple[tuple[int, int], ...]
    cells: tuple[tuple[Index, tuple[Piece, ...]], ...] | None
    shape: Shape
    holes: bool


def script(src: Layout, dst: Layout, shape: Shape, rank: int) -> Script:
    """This rank's messages and what becomes of them. Pieces between two ranks go in the order of the receiver's cells."""
    have = {d: src.box(shape, i) for i, d in enumerate(src.devices)}
    sends: dict[int, list[Index]] = {}
    counts: dict[int, int] = {}
    cells, whole = None, ()
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
    """Move, reduce or fill."""
    found = shelf("hops that are one collective", otherwise=nothing)(src, dst, spec.shape, rank)
    if found is not None:
        return found
    kind, todo, reducer = _dtype(spec), script(src, dst, spec.shape, rank), src.reducer or dst.reducer or "sum"
    combine, fill, receives = COMBINE[reducer], identity(reducer, spec.dtype), [(p, (n,), kind) for p, n in todo.receives]

    def program(comm, part, what):
        got = {}
        if todo.sends or receives:
            came = comm.exchange([(to, _packed(part, at)) for to, at in todo.sends], receives, what)
            got = {sender: a for (sender, _, _), a in zip(receives, came)}
        if todo.cells is None:
            return None
        out = np.full(todo.shape, fill, kind) if todo.holes else np.empty(todo.shape, kind)
        for at, pieces in todo.cells:
            here = out[(*at, ...)]                         # a view, of a number too
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
    """All-reduce in this rank's group."""
    group, op = next((tuple(sorted(g)) for g in groups if rank in g), None), src.reducer
    if group is None:
        return nothing
    return lambda comm, part, what: comm.all_reduce(part, group, op, what)


def nothing(*given) -> None:
    """A rank outside takes no part."""


def _packed(part: np.ndarray, at: tuple[Index, ...]) -> np.ndarray:
    """The pieces in a row; no copy where there is one, and it lies in a row already."""
    if len(at) == 1:
        return np.ascontiguousarray(part[at[0]]).reshape(-1)
    return np.concatenate([part[a].reshape(-1) for a in at])


def _dtype(spec: Spec) -> np.dtype:
    """bfloat16 travels as float32: NumPy has no such type."""
    return np.dtype(np.float32) if spec.dtype.numpy is None else spec.dtype.numpy
