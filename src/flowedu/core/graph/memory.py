"""Memory planner: assigns each buffer of a plan an offset in the arena.

A buffer lives from the step that writes it to the last step that reads it. Buffers whose lifetimes
do not overlap may share memory. The planner places large buffers first. Each gets the lowest offset
that no buffer with an overlapping lifetime uses (greedy by size, Pisarchyk and Lee, 2020).
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flowedu.core.values.storage import out_of_memory
from flowedu.errors import OutOfMemoryError

ALIGN = 64


@dataclass(eq=False)
class Buffer:
    """A memory region that a plan uses.

    kind: "temp" (in the arena), "scratch" (in the arena, for one step), or "input", "variable",
    "host", "const" (outside the arena). first, last: steps of its lifetime. nbytes: not rounded up.
    """

    name: str
    kind: str
    nbytes: int
    first: int = 0
    last: int = 0
    offset: int = -1
    array: Any = None
    pinned: bool = False       # read after the last step (outputs)

    @property
    def in_arena(self) -> bool:
        return self.kind in ("temp", "scratch")


def rounded(nbytes: int) -> int:
    return max(ALIGN, -(-nbytes // ALIGN) * ALIGN)


def place(buffers: Sequence[Buffer]) -> int:
    """Set the offset of every arena buffer, and return the number of bytes that the arena needs."""
    placed: list[Buffer] = []
    size = 0
    for b in sorted((b for b in buffers if b.in_arena), key=lambda b: (-b.nbytes, b.first)):
        neighbours = sorted((o for o in placed if o.first <= b.last and b.first <= o.last),
                            key=lambda o: o.offset)
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
    """Return the largest number of bytes alive at one step. No placement needs fewer."""
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
    """Return the number of bytes that the buffers need if none share memory."""
    return sum(rounded(b.nbytes) for b in buffers if b.in_arena)


def arena_out_of_memory(plan: Any) -> OutOfMemoryError:
    """Return the error for a failed arena allocation, with the largest value and its line."""
    large = max((b for b in plan.buffers if b.in_arena), key=lambda b: b.nbytes)
    step, region = next((s, p) for s in plan.steps for p in (*s.places, s.scratch)
                        if p is large or getattr(p, "buffer", None) is large)
    content = "scratch" if region is large else f"{region.spec}"
    got = f"an arena whose largest part is {content} of {step.name}, {large.nbytes:,} bytes; in all"
    return out_of_memory(plan.graph.name, got, plan.arena,
                         at=step.node.line if step.node is not None else None,
                         fix="feed smaller batches, or make that value smaller")
