"""Launch cache: the launches of one Entry, recorded once for all calls whose arrays have the same layout.

Only addresses differ between such calls, so a repeated call needs one `pack` for each kernel. To find the
positions of the addresses, the launch function of the table runs twice with two sets of invented addresses.
Where 8 bytes of a kernel's arguments differ, they are an address, and its value identifies the array. Nothing
is queued during these two runs.
"""
from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from typing import Any

from flowedu.cuda import launch
from flowedu.cuda.launch import Launch, Queued
from flowedu.cuda.view import View

ROOM = 1 << 40                                   # between invented addresses: no array is larger
BASES = (1 << 61, 3 << 60)
MOST = 1 << 12                                   # numbers that differ from call to call

_one_at_a_time = threading.Lock()
epoch = 0                                        # what was worked out in another one holds no longer


def forget() -> None:
    """A call may queue something else from here on: another library was chosen."""
    global epoch
    epoch += 1


class Again:
    """steps: (start, its arguments before, their Struct, numbers, places, its arguments behind): numbers[place] is what was
    given for `which` plus an offset. work: bytes of scratch, whose address is given last. held: what the steps read beside
    that, kept as long as they are."""

    __slots__ = ("held", "steps", "work")

    def __init__(self, steps: list[tuple], work: int, held: list):
        self.steps, self.work, self.held = steps, work, held

    def __call__(self, given: list[int], stream: Any) -> None:
        """Queue it. given: addresses of inputs and outputs, then seed and draw if there are; the list is used up."""
        given.append(launch.scratch(stream, self.work) if self.work else 0)
        for start, before, form, numbers, places, behind in self.steps:
            numbers = numbers.copy()
            for at, which, more in places:
                numbers[at] = given[which] + more
            if form is None:                             # no kernel: the numbers themselves are its arguments
                start(*numbers, stream)
            else:
                start(*before, form.pack(*numbers), *behind, stream)


def rehearsed(row: Launch, args: Sequence[View], ints: Sequence[int], reals: Sequence[float], formula: Any,
              drawn: bool) -> Again | None:
    """What the row queues for arrays that lie like these. drawn: the first two ints are a seed and a draw, which differ
    from call to call. None: there are too many arrays, or it reckons with addresses in another way."""
    count = len(args) + 2 * drawn
    if count >= MOST:
        return None
    low = [v.pointer % 16 for v in args] + [0] * (count + 1 - len(args))     # at no multiple of 16 bytes: it stays so
    takes, work = ([], []), row.work(args, ints, reals)
    with _one_at_a_time:
        launch.asked = held = []
        try:
            for base, take in zip(BASES, takes):
                tags = [base + i * ROOM + ROOM // 2 + more for i, more in enumerate(low)]
                own = [View(t, v.dtype, v.shape, v.strides) for t, v in zip(tags, args)]
                row(own, [*tags[len(args):count], *ints[2:]] if drawn else ints, reals, None, formula, tags[count], take)
        finally:
            launch.asked = None
    if len(takes[0]) != len(takes[1]):
        return None
    steps = [_step(a, b, low) for a, b in zip(*takes)]
    return None if None in steps else Again(steps, work, held)


def _step(a: Queued, b: Queued, low: list[int]) -> tuple | None:
    """One of Again.steps, from two takes of it. low: what the invented addresses lie above a multiple of 16."""
    if a.start != b.start:
        return None
    if a.function is None:                               # memset, cuBLAS: addresses and numbers
        different = [i for i, (one, other) in enumerate(zip(a.arguments, b.arguments, strict=True)) if one != other]
        found = [(i, _which(a.arguments[i], b.arguments[i], low)) for i in different]
        if any(which is None for _, which in found):
            return None
        return a.start, (), None, list(a.arguments), [(i, *which) for i, which in found], ()
    (grid, block, one, shared), other = a.arguments, b.arguments[2]
    if (grid, block, shared) != (*b.arguments[:2], b.arguments[3]) or len(one) != len(other) or len(one) % 8:
        return None
    form, numbers, places, plain = "=", [], [], 0        # plain: where bytes begin that are always the same
    for at in range(0, len(one) + 8, 8):
        word = one[at:at + 8]
        if word and word == other[at:at + 8]:
            continue
        if plain < at:
            form += f"{min(at, len(one)) - plain}s"
            numbers.append(one[plain:at])
        if word:
            which = _which(int.from_bytes(word, "little"), int.from_bytes(other[at:at + 8], "little"), low)
            if which is None:
                return None
            places.append((len(numbers), *which))
            form += "q"
            numbers.append(0)
        plain = at + 8
    return a.start, (grid, block), struct.Struct(form), numbers, places, (shared,)


def _which(one: int, other: int, low: list[int]) -> tuple[int, int] | None:
    """(of which array it is an address, how far behind its beginning), from the two takes' numbers; None: it is none."""
    which, more = divmod(one - BASES[0], ROOM)
    if not 0 <= which < len(low) or other - BASES[1] != which * ROOM + more:
        return None
    return which, more - ROOM // 2 - low[which]
