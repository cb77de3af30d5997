"""Again: what a call queues, worked out once for all calls with one Entry whose arrays lie alike. Only addresses differ from
call to call, so that the next time it takes one `pack` for each kernel.

To find out where the addresses go, the row of the table is rehearsed twice, with two sets of invented ones: 8 bytes of a
kernel's arguments that differ are an address, and its number says of which array. Nothing is queued meanwhile.
"""
from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from flowedu.cuda import launch
from flowedu.cuda.launch import Call, Launch
from flowedu.cuda.machine import machine
from flowedu.cuda.modules import Module
from flowedu.cuda.view import View

ROOM = 1 << 40                                   # between invented addresses: no array is larger
BASES = (1 << 61, 3 << 60)
MOST = 1 << 12                                   # numbers that differ from call to call


class Again:
    """steps: (function, grid, threads, shared, Struct, its numbers, their places): numbers[place] is what was given for
    `which` (None: the scratch) plus an offset. work: bytes of scratch."""

    __slots__ = ("steps", "work")

    def __init__(self, steps: list[tuple], work: int):
        self.steps, self.work = steps, work

    def __call__(self, given: list[int], stream: Any) -> None:
        """Queue it. given: addresses of inputs and outputs, then seed and draw if there are; the list is used up."""
        given.append(launch.scratch(stream, self.work) if self.work else 0)
        for queue, grid, threads, shared, form, numbers, places in self.steps:
            numbers = numbers.copy()
            for at, which, more in places:
                numbers[at] = given[which] + more
            queue(grid, threads, form.pack(*numbers), shared, stream)


class _Rehearsed(Call):
    """A Call that notes what it would queue: (function, grid, threads, shared, bytes of the arguments)."""

    __slots__ = ("noted",)

    def run_of(self, where: Module, function: str, *arguments: Any, blocks: int | tuple, threads: int | tuple = 256,
               shared: int = 0) -> None:
        f = where.function(function, arguments)
        self.noted.append((f._launch_kernel, (*blocks, 1) if isinstance(blocks, tuple) else (blocks, 1, 1),
                           threads if isinstance(threads, tuple) else (threads, 1, 1), shared,
                           struct.pack("=" + f.arg_format, *arguments)))

    def clear(self, pointer: int, size: int) -> None:
        if size:
            self.noted.append((_clear, (size,), None, 0, struct.pack("=q", pointer)))

    def side_by_side(self, v: View) -> View:
        if v.contiguous:
            return v
        copy = self.copy_of(v)
        inner = _Rehearsed(launch.TABLE["copy", v.dtype.code], [v, copy], (), (), None, None, 0)
        inner.noted = self.noted
        inner.row.launch(inner)
        return copy


def _clear(size: tuple, _: Any, pointer: bytes, __: int, stream: Any) -> None:
    machine().driver.memset_d8_async(struct.unpack("=q", pointer)[0], 0, size[0], stream)


def rehearsed(row: Launch, args: Sequence[View], ints: Sequence[int], reals: Sequence[float], formula: Any,
              drawn: bool) -> Again | None:
    """What the row queues for arrays that lie like these. drawn: the first two ints are a seed and a draw, which differ from
    call to call. None: it asks for something that may not be there the next time, or it reckons with addresses."""
    count = len(args) + 2 * drawn
    if count >= MOST:
        return None
    asked, work = launch.asked, row.work(args, ints, reals)
    takes = []
    for base in BASES:
        tags = [base + i * ROOM + ROOM // 2 for i in range(count + 1)]
        # What lies at no multiple of 16 bytes stays so.
        own = [View(t + v.pointer % 16, v.dtype, v.shape, v.strides) for t, v in zip(tags, args)]
        call = _Rehearsed(row, own, [*tags[len(args):count], *ints[2:]] if drawn else ints, reals, None, formula, tags[count])
        call.noted = []
        row.play(call)
        takes.append(call.noted)
    if launch.asked != asked or len(takes[0]) != len(takes[1]):
        return None
    steps = [_step(a, b, [v.pointer % 16 for v in args] + [0] * (count + 1 - len(args))) for a, b in zip(*takes)]
    return None if None in steps else Again(steps, work)


def _step(a: tuple, b: tuple, low: list[int]) -> tuple | None:
    """One of Again.steps, from two takes of it. low: what was added to the invented addresses."""
    if a[:4] != b[:4] or len(a[4]) % 8:
        return None
    form, numbers, places, plain = "", [], [], b""
    for at in range(0, len(a[4]), 8):
        one, other = a[4][at:at + 8], b[4][at:at + 8]
        if one == other:
            plain += one
            continue
        which, more = divmod(int.from_bytes(one, "little") - BASES[0], ROOM)
        if not 0 <= which < len(low) or int.from_bytes(other, "little") - BASES[1] != which * ROOM + more:
            return None
        if plain:
            form, plain = form + f"{len(plain)}s", numbers.append(plain) or b""
        places.append((len(numbers), which, more - ROOM // 2 - low[which]))
        form += "q"
        numbers.append(0)
    if plain:
        form += f"{len(plain)}s"
        numbers.append(plain)
    return *a[:4], struct.Struct("=" + form), numbers, places
