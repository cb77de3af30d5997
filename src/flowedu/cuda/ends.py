"""Bounds of the arrays in an arena, step by step, for the checks of the simulator. A GPU does not use them.

Under these checks every array is placed at twice its offset, so that a gap of its own size follows it. An
out-of-range index then hits the gap instead of a neighbour. Arrays that overlap by design still do.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from flowedu.core.graph.memory import Buffer
from flowedu.cuda.machine import machine


def spread() -> int:
    """What offsets are multiplied by."""
    return 2 if machine().checks else 1


class Ends:
    """What is born and what dies before each step of a plan. rooms: (address, bytes) of what is always there."""

    def __init__(self, base: int, size: int, buffers: Iterable[Buffer], rooms: Sequence[tuple[int, int]]):
        self.part = machine().library.cudasim_part
        self.born: dict[int, list[tuple[int, int]]] = {}
        self.dead: dict[int, list[tuple[int, int]]] = {}
        for b in buffers:
            if b.in_arena and b.nbytes:
                where = base + spread() * b.offset, b.nbytes
                self.born.setdefault(b.first, []).append(where)
                self.dead.setdefault(b.last + 1, []).append(where)
        self.part(base, size, False, None)
        for address, nbytes in (r for r in rooms if r[1]):
            self.part(address, nbytes, True, None)

    def before(self, step: int, stream: int) -> None:
        for address, nbytes in self.dead.get(step, ()):
            self.part(address, nbytes, False, stream)
        for address, nbytes in self.born.get(step, ()):
            self.part(address, nbytes, True, stream)
