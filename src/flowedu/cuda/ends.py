"""Bounds of the arrays in an arena, step by step, for the checks of the simulator. A GPU does not use them.

Under these checks every array is placed at twice its offset, so that a gap of its own size follows it. An
out-of-range index then hits the gap instead of a neighbour. Arrays that overlap by design still do.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from flowedu.core.graph.memory import Buffer
from flowedu.cuda.machine import machine


def spread() -> int:
    """Return the factor by which offsets are multiplied."""
    return 2 if machine().checks else 1


class Ends:
    """Arrays that start or end before each step of a plan.

    lasting: (address, bytes) of arrays outside the arena.
    """

    def __init__(self, base: int, size: int, buffers: Iterable[Buffer], lasting: Sequence[tuple[int, int]]):
        self.part = machine().library.cudasim_part
        self.starts: dict[int, list[tuple[int, int]]] = {}
        self.stops: dict[int, list[tuple[int, int]]] = {}
        for b in buffers:
            if b.in_arena and b.nbytes:
                region = base + spread() * b.offset, b.nbytes
                self.starts.setdefault(b.first, []).append(region)
                # Outputs are also read by the steps that pack them, which follow: they end when the next run
                # starts.
                self.stops.setdefault(0 if b.pinned else b.last + 1, []).append(region)
        self.part(base, size, False, None)
        for address, nbytes in (r for r in lasting if r[1]):
            self.part(address, nbytes, True, None)

    def before(self, step: int, stream: int) -> None:
        for address, nbytes in self.stops.get(step, ()):
            self.part(address, nbytes, False, stream)
        for address, nbytes in self.starts.get(step, ()):
            self.part(address, nbytes, True, stream)
