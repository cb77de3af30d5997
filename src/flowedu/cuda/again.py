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

ROOM = 1 << 40                                   # distance between invented addresses; no array is larger
BASES = (1 << 61, 3 << 60)
MOST = 1 << 12                                   # limit for the values that differ from call to call

_one_at_a_time = threading.Lock()
epoch = 0                                        # launches that were recorded in an earlier epoch are stale


def forget() -> None:
    """Discard all recorded launches after a change of the library, because later calls may queue others."""
    global epoch
    epoch += 1


class Again:
    """Recorded launches of a call, repeated with the addresses of another call.

    Attributes:
        steps: tuples (start, leading arguments, Struct, values, places, trailing arguments). For each place
            (i, array, offset), `values[i]` is set to `addresses[array] + offset`.
        work: bytes of scratch; its address is appended to the addresses.
        held: other memory that the launches read, kept alive with them.
    """

    __slots__ = ("held", "steps", "work")

    def __init__(self, steps: list[tuple], work: int, held: list):
        self.steps, self.work, self.held = steps, work, held

    def __call__(self, addresses: list[int], stream: Any) -> None:
        """Queue the launches. addresses (of inputs and outputs, then seed and draw) is modified."""
        addresses.append(launch.scratch(stream, self.work) if self.work else 0)
        for start, before, form, values, places, behind in self.steps:
            values = values.copy()
            for at, array, offset in places:
                values[at] = addresses[array] + offset
            if form is None:                             # memset or cuBLAS: the values are the arguments
                start(*values, stream)
            else:
                start(*before, form.pack(*values), *behind, stream)


def rehearsed(row: Launch, args: Sequence[View], ints: Sequence[int], reals: Sequence[float], formula: Any,
              drawn: bool) -> Again | None:
    """Record the launches of a row for arrays with this layout. drawn: ints starts with seed and draw.

    The result is None if there are too many arrays, or if an argument is not an address plus a fixed
    offset.
    """
    count = len(args) + 2 * drawn
    if count >= MOST:
        return None
    # Addresses keep their remainders modulo 16, as kernels may depend on the alignment.
    remainders = [v.pointer % 16 for v in args] + [0] * (count + 1 - len(args))
    takes: tuple[list[Queued], list[Queued]] = [], []
    work = row.work(args, ints, reals)
    held: list = []
    with _one_at_a_time:
        launch.asked = held
        try:
            for base, take in zip(BASES, takes):
                tags = [base + i * ROOM + ROOM // 2 + remainder for i, remainder in enumerate(remainders)]
                views = [View(t, v.dtype, v.shape, v.strides) for t, v in zip(tags, args)]
                values = [*tags[len(args):count], *ints[2:]] if drawn else ints
                row(views, values, reals, None, formula, tags[count], take)
        finally:
            launch.asked = None
    if len(takes[0]) != len(takes[1]):
        return None
    steps = [_make_step(a, b, remainders) for a, b in zip(*takes)]
    complete = [step for step in steps if step is not None]
    return Again(complete, work, held) if len(complete) == len(steps) else None


def _make_step(a: Queued, b: Queued, remainders: list[int]) -> tuple | None:
    """Return one of Again.steps from two recordings of a launch, or None if they differ otherwise."""
    if a.start != b.start:
        return None
    if a.function is None:                               # memset and cuBLAS: the arguments are integers
        different = [i for i, (one, other) in enumerate(zip(a.arguments, b.arguments, strict=True))
                     if one != other]
        matches = []
        for i in different:
            place = _find_array(a.arguments[i], b.arguments[i], remainders)
            if place is None:
                return None
            matches.append((i, *place))
        return a.start, (), None, list(a.arguments), matches, ()
    grid, block, one, shared = a.arguments
    other = b.arguments[2]
    if (grid, block, shared) != (*b.arguments[:2], b.arguments[3]) or len(one) != len(other) or len(one) % 8:
        return None
    form, numbers = "=", []
    places, plain = [], 0        # plain: start of bytes that are equal in both recordings
    for at in range(0, len(one) + 8, 8):
        word = one[at:at + 8]
        if word and word == other[at:at + 8]:
            continue
        if plain < at:
            form += f"{min(at, len(one)) - plain}s"
            numbers.append(one[plain:at])
        if word:
            place = _find_array(int.from_bytes(word, "little"), int.from_bytes(other[at:at + 8], "little"),
                                remainders)
            if place is None:
                return None
            places.append((len(numbers), *place))
            form += "q"
            numbers.append(0)
        plain = at + 8
    return a.start, (grid, block), struct.Struct(form), numbers, places, (shared,)


def _find_array(one: int, other: int, remainders: list[int]) -> tuple[int, int] | None:
    """Return (array, offset from its start) of an address in both recordings, or None for other values."""
    array, offset = divmod(one - BASES[0], ROOM)
    if not 0 <= array < len(remainders) or other - BASES[1] != array * ROOM + offset:
        return None
    return array, offset - ROOM // 2 - remainders[array]
