"""How a kernel of the table is launched: the contract of _kernels/core/abi.h, on the device.

    TABLE["softmax", 0](views of inputs then outputs, ints, reals, stream)

`ints` and `reals` are what the record's `pack` gives, as for the CPU's kernel of this name; for "elementwise" `formula` is
the record's program. The call returns at once: kernels are queued on the stream.

A file of launches/ says for each kernel name how: `@kernel("softmax", file="softmax.cu", types=REALS)` before a function
that gets a Call and says how many blocks and threads run which function of the file.
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
MOST_BLOCKS = 1 << 16                                                # kernels go round again for what is left
TABLE: dict[tuple[str, int], Launch] = {}


def kernel(*names: str, file: str = "", types: Sequence[int] = REALS, moved: bool = False, work: Callable | None = None,
           pack: Callable | None = None):
    """Enters a function of a Call in TABLE. moved: the file is compiled for the size of elements, not for their type.
    work: a function of (Call) that says how many bytes of scratch it needs. pack: of a record whose kernel on the CPU is a
    Python function, its ints and reals: a function of {name: input, output or attribute}."""
    def enter(launch: Callable[[Call], None]) -> Callable[[Call], None]:
        for name in names:
            for code in types:
                t = BY_SIZE[BY_CODE[code].bytes] if moved else TYPES[code]
                TABLE[name, code] = Launch(name, code, launch, file, t, "" if moved else WIDE[code], work, pack)
        return launch
    return enter


class Launch:
    """A row of the table."""

    def __init__(self, name: str, code: int, launch: Callable, file: str, t: str, wide: str, work: Callable | None,
                 pack: Callable | None = None):
        self.name, self.code, self.launch, self.needs, self.pack = name, code, launch, work, pack
        self.file, self.t, self.wide = file, t, wide

    def work(self, args: Sequence[View], ints: Sequence[int], reals: Sequence[float]) -> int:
        """Bytes of scratch that this call needs."""
        own = self.needs(Call(self, args, ints, reals, None, None, 0)) if self.needs else 0
        return own + sum([_room(v) for v in args if not v.contiguous]) if self.pack else own

    def __call__(self, args: Sequence[View], ints: Sequence[int] = (), reals: Sequence[float] = (), stream: Any = None,
                 formula: Any = None, work: int = 0, record: list[Queued] | None = None) -> None:
        """Queues the call on a stream (a PyCUDA Stream; None: the default one).

        Args:
            work: the address of `self.work(...)` bytes of scratch; 0: the stream's own are used.
            record: gets what would have been queued, which then is not.
        Raises KernelError: a kernel does not compile, or cannot be launched. An index out of range: see `fault`.
        """
        call = Call(self, args, ints, reals, stream, formula, work, record)
        if not work and (self.needs or self.pack):
            call.work = scratch(stream, self.work(args, ints, reals))
        if self.pack:                            # such records take arrays of any strides, these kernels do not
            call.args = [call.side_by_side(v) for v in args]
        self.launch(call)

    def __repr__(self) -> str:
        return f"<cuda kernel {self.name} of {BY_CODE[self.code].name}>"


class Queued(NamedTuple):
    """A launch, all but the stream: `start(*arguments, stream)`. function: PyCUDA's, of a kernel."""

    function: Any
    start: Callable
    arguments: tuple


class Call:
    """One call of a kernel, while it is being launched."""

    __slots__ = ("args", "formula", "ints", "reals", "record", "row", "stream", "work")

    def __init__(self, row: Launch, args, ints, reals, stream, formula, work: int, record: list[Queued] | None = None):
        self.row, self.args, self.ints, self.reals = row, args, ints, reals
        self.stream, self.formula, self.work, self.record = stream, formula, work, record

    @property
    def name(self) -> str:
        return self.row.name

    def run(self, function: str, *arguments: Any, blocks: int | tuple, threads: int | tuple = 256, shared: int = 0,
            file: str = "", t: str = "") -> None:
        """Queue a kernel of the file. Arguments: an int is an index_t or a pointer, a float a double, bytes a struct."""
        self.run_of(module(file or self.row.file, t or self.row.t, self.row.wide), function, *arguments, blocks=blocks,
                    threads=threads, shared=shared)

    def run_of(self, where: Module, function: str, *arguments: Any, blocks: int | tuple, threads: int | tuple = 256,
               shared: int = 0) -> None:
        grid = blocks if isinstance(blocks, tuple) else (blocks, 1)
        block = threads if isinstance(threads, tuple) else (threads, 1, 1)
        found = where.function(function, arguments)
        if self.record is None:
            found.prepared_async_call(grid, block, self.stream, *arguments, shared_size=shared)
        else:
            from pycuda._pvt_struct import pack  # as prepared_async_call does
            packed = pack(found.arg_format, *arguments)
            self.record.append(Queued(found, found._launch_kernel, (grid, block, packed, shared)))

    def each(self, function: str, *arguments: Any, n: int, threads: int = 256, **where) -> None:
        """Queue a kernel with a thread for each of n elements."""
        if n:
            self.run(function, *arguments, blocks=blocks(n, threads), threads=threads, **where)

    def side_by_side(self, v: View) -> View:
        """The view, or a copy of it in scratch whose elements lie side by side."""
        if v.contiguous:
            return v
        copy = View(self.work, v.dtype, v.shape)
        TABLE["copy", v.dtype.code]([v, copy], stream=self.stream, record=self.record)
        self.work += _room(v)
        return copy

    def clear(self, pointer: int, size: int) -> None:
        """Queue zeros for so many bytes."""
        if size:
            self.other(machine().driver.memset_d8_async, pointer, 0, size)

    def other(self, start: Callable, *arguments: int) -> None:
        """Queue what is no kernel of ours: `start(*arguments, stream)` does. Arguments: numbers and pointers."""
        if self.record is None:
            start(*arguments, self.stream)
        else:
            self.record.append(Queued(None, start, arguments))


def _room(v: View) -> int:
    return -(-v.size * v.dtype.bytes // 16) * 16


def blocks(n: int, threads: int = 256) -> int:
    return max(1, min(-(-n // threads), MOST_BLOCKS))


# ---- scratch: what is queued on a stream runs in order, so one piece of memory serves all its kernels
_scratch: dict[tuple[int, int], Any] = {}
CAPTURED: set[int] = set()                                           # streams whose work becomes a graph (graphs.py)


def scratch(stream: Any, size: int) -> int:
    """The address of scratch of this size for the next kernel of the stream."""
    if not size:
        return 0
    m = machine()
    key = m.use(), 0 if stream is None else int(stream.handle)
    if key[1] in CAPTURED:
        return pool(key[0]).take(size).address       # memory of the graph; the next launch may have it, too
    held = _scratch.get(key)
    if held is None or held[1] < size:
        room = -(-size // 65536) * 65536
        _scratch[key] = held = m.driver.mem_alloc(room), room        # frees the old: waits for it
    address = int(held[0])
    if m.give is not None:
        m.give(address, size, key[1])
    return address


# ---- what does not change from call to call (the rows that resize reads) is kept on the device
KEPT: dict[tuple, Any] = {}
asked: list | None = None                                            # gets what `kept` gives: somebody keeps it longer


def kept(numbers: Sequence[int] | Sequence[float], letter: str) -> int:
    """The address of these numbers on the device; letter: q for int64, d for double."""
    m = machine()
    key = m.use(), letter, tuple(numbers)
    if key not in KEPT:
        if len(KEPT) >= 256:
            m.driver.Context.synchronize()                           # a kernel may still read it
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
    """The address of the device's Fault (view.h)."""
    m = machine()
    index = m.use()
    if index not in _flags:
        _flags[index] = m.driver.mem_alloc(16)
        m.driver.memset_d8(_flags[index], 0, 16)
    return int(_flags[index])


SINGULAR, CHECK = 3, 16                                              # of view.h


def fault() -> tuple[int, int] | None:
    """(status, detail) of the first kernel that met an index out of range (1, the index), a singular matrix (SINGULAR, its
    number), or a value that a check refuses (CHECK + its number, the bits of the value) since this was last asked, or
    None. Waits for the device."""
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
