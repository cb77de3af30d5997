"""Launches of kernels on the device: the contract of _kernels/core/abi.h, through TABLE.

    TABLE["softmax", 0](views of inputs then outputs, ints, reals, stream)

`ints` and `reals` are the results of the record's `pack`, as for the CPU's kernel of this name. For
"elementwise", `formula` is the record's program. The call returns at once, as kernels are queued on the
stream.

A file of launches/ registers functions for kernel names: `@kernel("softmax", file="softmax.cu", types=REALS)`
decorates a function that receives a Call. It queues functions of the file and sets their numbers of blocks
and threads.
"""
from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from flowedu.core.values.dtype import BY_CODE
from flowedu.cuda.machine import machine
from flowedu.cuda.memory import pool
from flowedu.cuda.modules import BY_SIZE, TYPES, WIDE, Module, module
from flowedu.cuda.view import View

REALS, NUMBERS, ALL = (0, 1), (0, 1, 2, 3), tuple(range(10))         # dtype codes
MOST_BLOCKS = 1 << 16  # kernels loop over the remaining elements
TABLE: dict[tuple[str, int], Launch] = {}


def kernel(*names: str, file: str = "", types: Sequence[int] = REALS, moved: bool = False,
           work: Callable | None = None, pack: Callable | None = None):
    """Register a function of a Call in TABLE, for each name and dtype code.

    moved: compile the file for the size of the elements, not for their type. work: function of a Call that
    returns the bytes of scratch it needs. pack: function of {name: input, output or attribute} that returns
    the ints and reals of a record whose CPU kernel is a Python function.
    """
    def enter(launch: Callable[[Call], None]) -> Callable[[Call], None]:
        for name in names:
            for code in types:
                t = BY_SIZE[BY_CODE[code].bytes] if moved else TYPES[code]
                TABLE[name, code] = Launch(name, code, launch, file, t, "" if moved else WIDE[code],
                                           work, pack)
        return launch
    return enter


class Launch:
    """Row of the table: the launch of one kernel for one dtype."""

    def __init__(self, name: str, code: int, launch: Callable, file: str, t: str, wide: str,
                 work: Callable | None, pack: Callable | None = None):
        self.name, self.code, self.launch = name, code, launch
        self.needs, self.pack = work, pack
        self.file, self.t, self.wide = file, t, wide

    def work(self, args: Sequence[View], ints: Sequence[int], reals: Sequence[float]) -> int:
        """Return the bytes of scratch that a call needs."""
        size = self.needs(Call(self, args, ints, reals, None, None, 0)) if self.needs else 0
        return size + sum([_padded_bytes(v) for v in args if not v.contiguous]) if self.pack else size

    def __call__(self, args: Sequence[View], ints: Sequence[int] = (), reals: Sequence[float] = (),
                 stream: Any = None,
                 formula: Any = None, work: int = 0, record: list[Queued] | None = None) -> None:
        """Queue the call on a stream (a PyCUDA Stream; None: the default one).

        Args:
            work: address of `self.work(...)` bytes of scratch; 0: use the scratch of the stream.
            record: list that receives the launches, which are then not queued.

        Raises KernelError: a kernel does not compile, or cannot be launched. `fault` reports indices out of
        range.
        """
        call = Call(self, args, ints, reals, stream, formula, work, record)
        if not work and (self.needs or self.pack):
            call.work = scratch(stream, self.work(args, ints, reals))
        if self.pack:                            # these records accept any strides, but the kernels do not
            call.args = [call.side_by_side(v) for v in args]
        self.launch(call)

    def __repr__(self) -> str:
        return f"<cuda kernel {self.name} of {BY_CODE[self.code].name}>"


class Queued(NamedTuple):
    """Launch without its stream: `start(*arguments, stream)`. function: PyCUDA's, or None if not a kernel."""

    function: Any
    start: Callable
    arguments: tuple


class Call:
    """One call of a kernel, during its launch."""

    __slots__ = ("args", "formula", "ints", "reals", "record", "row", "stream", "work")

    def __init__(self, row: Launch, args, ints, reals, stream, formula, work: int,
                 record: list[Queued] | None = None):
        self.row, self.args = row, args
        self.ints, self.reals = ints, reals
        self.stream, self.formula = stream, formula
        self.work, self.record = work, record

    @property
    def name(self) -> str:
        return self.row.name

    def run(self, function: str, *arguments: Any, blocks: int | tuple, threads: int | tuple = 256,
            shared: int = 0, file: str = "", t: str = "") -> None:
        """Queue a kernel of the file. An int is passed as an index_t or a pointer, a float as a double."""
        self.run_of(module(file or self.row.file, t or self.row.t, self.row.wide), function, *arguments,
                    blocks=blocks, threads=threads, shared=shared)

    def run_of(self, where: Module, function: str, *arguments: Any, blocks: int | tuple,
               threads: int | tuple = 256, shared: int = 0) -> None:
        grid = blocks if isinstance(blocks, tuple) else (blocks, 1)
        block = threads if isinstance(threads, tuple) else (threads, 1, 1)
        compiled = where.function(function, arguments)
        if self.record is None:
            compiled.prepared_async_call(grid, block, self.stream, *arguments, shared_size=shared)
        else:
            from pycuda._pvt_struct import pack  # as prepared_async_call does
            packed = pack(compiled.arg_format, *arguments)
            self.record.append(Queued(compiled, compiled._launch_kernel, (grid, block, packed, shared)))

    def each(self, function: str, *arguments: Any, n: int, threads: int = 256, **where) -> None:
        """Queue a kernel with a thread for each of n elements."""
        if n:
            self.run(function, *arguments, blocks=blocks(n, threads), threads=threads, **where)

    def side_by_side(self, v: View) -> View:
        """Return the view, or a contiguous copy of it in scratch."""
        if v.contiguous:
            return v
        copy = View(self.work, v.dtype, v.shape)
        TABLE["copy", v.dtype.code]([v, copy], stream=self.stream, record=self.record)
        self.work += _padded_bytes(v)
        return copy

    def clear(self, pointer: int, size: int) -> None:
        """Queue a fill of `size` bytes with zeros."""
        if size:
            self.other(machine().driver.memset_d8_async, pointer, 0, size)

    def other(self, start: Callable, *arguments: int) -> None:
        """Queue a function that is not a kernel: `start(*arguments, stream)`, with numbers and pointers."""
        if self.record is None:
            start(*arguments, self.stream)
        else:
            self.record.append(Queued(None, start, arguments))


def _padded_bytes(v: View) -> int:
    return -(-v.size * v.dtype.bytes // 16) * 16


def blocks(n: int, threads: int = 256) -> int:
    return max(1, min(-(-n // threads), MOST_BLOCKS))


# ---- scratch: kernels of a stream run in order, so they share one buffer
_scratch: dict[tuple[int, int], Any] = {}
CAPTURED: set[int] = set()  # streams that are recorded into a graph (graphs.py)


def scratch(stream: Any, size: int) -> int:
    """Return the address of `size` bytes of scratch for the next kernel of the stream."""
    if not size:
        return 0
    m = machine()
    key = m.use(), 0 if stream is None else int(stream.handle)
    if key[1] in CAPTURED:
        return pool(key[0]).take(size).address       # memory of the graph, which later launches may reuse
    held = _scratch.get(key)
    if held is None or held[1] < size:
        padded = -(-size // 65536) * 65536
        # Freeing the old buffer waits for its kernels.
        _scratch[key] = held = m.driver.mem_alloc(padded), padded
    address = int(held[0])
    if m.give is not None:
        m.give(address, size, key[1])
    return address


# ---- constants, such as the rows that resize reads, are kept on the device
KEPT: dict[tuple, Any] = {}
asked: list | None = None  # if a list, it receives the allocations of `address_of_constants`


def address_of_constants(numbers: Sequence[int] | Sequence[float], letter: str) -> int:
    """Return the address of constant numbers on the device; letter: q for int64, d for double."""
    m = machine()
    key = m.use(), letter, tuple(numbers)
    if key not in KEPT:
        if len(KEPT) >= 256:
            m.driver.Context.synchronize()                           # a kernel may still read the oldest one
            del KEPT[next(iter(KEPT))]
        raw = struct.pack(f"={len(numbers)}{letter}", *numbers) or bytes(8)
        KEPT[key] = m.driver.mem_alloc(len(raw))
        m.driver.memcpy_htod(KEPT[key], raw)
    if asked is not None:
        asked.append(KEPT[key])
    return int(KEPT[key])


# ---- the report of an index out of range
_flags: dict[int, Any] = {}


def flag() -> int:
    """Return the address of the device's Fault (view.h), allocated on first use."""
    m = machine()
    index = m.use()
    if index not in _flags:
        _flags[index] = m.driver.mem_alloc(16)
        m.driver.memset_d8(_flags[index], 0, 16)
    return int(_flags[index])


SINGULAR, CHECK = 3, 16                                              # status values of view.h


def fault() -> tuple[int, int] | None:
    """Return (status, detail) of the first kernel fault since the last call, or None. Waits for the device.

    The values are (1, the index) for an index out of range, (SINGULAR, its number) for a singular matrix,
    and (CHECK + number of the check, bits of the value) for a value that failed a check.
    """
    m = machine()
    index = m.use()
    if index not in _flags:
        return None
    m.driver.Context.synchronize()
    raw = bytearray(16)
    m.driver.memcpy_dtoh(raw, _flags[index])
    status, value = struct.unpack("=qq", raw)
    if not status:
        return None
    m.driver.memset_d8(_flags[index], 0, 16)
    return status, value
