"""Memory planning: where each buffer of a plan lies in the arena.

A buffer lives from the step that writes it to the last step that reads it. Two that never live together may share
memory. Large ones are placed first, each at the lowest offset where it overlaps no live neighbour (greedy by size,
Pisarchyk and Lee, 2020).
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowedu.core.values.storage import no_memory
from flowedu.errors import OutOfMemoryError

ALIGN = 64


@dataclass(eq=False)
class Buffer:
    """A piece of memory of a plan.

    kind: "temp" (in the arena), "scratch" (in the arena, for one step), or memory that outlives the step: "input",
    "variable", "host", "const". first, last: steps between which it lives. nbytes is unrounded.
    """

    name: str
    kind: str
    nbytes: int
    first: int = 0
    last: int = 0
    offset: int = -1
    array: object = None
    pinned: bool = False       # read after the last step (outputs)

    @property
    def in_arena(self) -> bool:
        return self.kind in ("temp", "scratch")


def rounded(nbytes: int) -> int:
    return max(ALIGN, -(-nbytes // ALIGN) * ALIGN)


def place(buffers: Sequence[Buffer]) -> int:
    """Give every arena buffer its offset; returns the bytes the arena needs."""
    placed: list[Buffer] = []
    size = 0
    for b in sorted((b for b in buffers if b.in_arena), key=lambda b: (-b.nbytes, b.first)):
        neighbours = sorted((o for o in placed if o.first <= b.last and b.first <= o.last), key=lambda o: o.offset)
        at = 0
        for o in neighbours:
            if at + rounded(b.nbytes) <= o.offset:
                break
            at = max(at, o.offset + rounded(o.nbytes))
        b.offset = at
        size = max(size, at + rounded(b.nbytes))
        placed.append(b)
    return size


def lower_bound(buffers: Sequence[Buffer], steps: int) -> int:
    """The most bytes alive at one step: no placement can need less."""
    live = [0] * (steps + 2)
    for b in buffers:
        if b.in_arena:
            live[b.first] += rounded(b.nbytes)
            live[b.last + 1] -= rounded(b.nbytes)
    best = now = 0
    for change in live:
        now += change
        best = max(best, now)
    return best


def total(buffers: Sequence[Buffer]) -> int:
    """What the buffers would need without sharing."""
    return sum(rounded(b.nbytes) for b in buffers if b.in_arena)


def no_room(plan) -> OutOfMemoryError:
    """The error for a plan whose arena found no memory; it names the largest value and the line that made it."""
    large = max((b for b in plan.buffers if b.in_arena), key=lambda b: b.nbytes)
    step, made = next((s, p) for s in plan.steps for p in (*s.places, s.scratch)
                      if p is large or getattr(p, "buffer", None) is large)
    what = "scratch" if made is large else f"{made.spec}"
    got = f"an arena whose largest part is {what} of {step.name}, {large.nbytes:,} bytes; in all"
    return no_memory(plan.graph.name, got, plan.arena, at=step.node.line if step.node is not None else None,
                     fix="feed smaller batches, or make that value smaller")
