"""Pinned main memory, which a GPU reads and writes asynchronously.

The blocks form a pool by size classes, as in memory.py. A block is reused after the copies queued from it
have finished.
"""
from __future__ import annotations

import threading
from collections import deque
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from flowedu.core.eager.arrays import make_contiguous
from flowedu.core.eager.dispatch import new_on_device, unrecorded
from flowedu.core.eager.tensor import Tensor
from flowedu.core.values.dtype import dtype as Dtype
from flowedu.core.values.storage import from_numpy as over
from flowedu.cuda.engine import carry
from flowedu.cuda.faults import check
from flowedu.cuda.machine import machine
from flowedu.cuda.memory import size_class
from flowedu.cuda.streams import Event, Stream, current_stream
from flowedu.errors import OutOfMemoryError
from flowedu.tensor.interop.protocols import memory_of

_lock = threading.Lock()
_free: dict[int, list] = {}                              # {size: free blocks}
_returned: deque = deque()  # freed blocks; garbage collection may add some at any time
_busy: list[tuple[Any, int, list[Event]]] = []           # freed blocks with copies that may be unfinished
_blocks: WeakValueDictionary[int, Pinned] = WeakValueDictionary()


class Pinned:
    """Block of pinned memory, held by an array. It returns to the pool when deleted.

    Attributes: address; users, streams that copy from it or into it.
    """

    def __init__(self, allocation: np.ndarray, size: int):
        self.allocation, self.size, self.address = allocation, size, allocation.ctypes.data
        self.users: set[Stream] = set()
        self.__array_interface__ = {**allocation.__array_interface__, "version": 3}
        _blocks[self.address] = self

    def __del__(self):
        _returned.append((self.allocation, self.size, self.users))


def _sort_in() -> None:
    """Move the freed blocks to the free lists, or to _busy while their copies are unfinished."""
    while _returned:
        allocation, size, users = _returned.popleft()
        _busy.append((allocation, size, [s.record_event(Event()) for s in users]))
    waiting = [(a, size, [e for e in events if not e.query()]) for a, size, events in _busy]
    _busy[:] = [block for block in waiting if block[2]]
    for allocation, size, events in waiting:
        if not events:
            _free.setdefault(size, []).append(allocation)


def pinned(nbytes: int) -> Pinned:
    """Return a block of at least so many bytes, with undefined contents. Raises OutOfMemoryError."""
    size, m = size_class(nbytes), machine()
    block = _take(size, nbytes, m.driver)
    if m.give is not None:
        m.give(block.address, nbytes, None)
    return block


def _take(size: int, nbytes: int, driver: Any) -> Pinned:
    with _lock:
        _sort_in()
        if _free.get(size):
            return Pinned(_free[size].pop(), size)
        for _ in range(2):
            try:
                return Pinned(driver.pagelocked_empty((size,), np.uint8,
                                                      mem_flags=driver.host_alloc_flags.PORTABLE), size)
            except driver.Error as e:
                _free.clear()                            # frees the cached blocks before a second attempt
                error = e
    raise OutOfMemoryError("pin_memory: out of memory that can be pinned", expected=f"{nbytes:,} bytes",
                           got=str(error), fix="pin less at a time, or leave pin_memory out")


def empty(shape: tuple[int, ...], dtype: Dtype) -> Tensor:
    """Return a tensor in pinned memory, with undefined contents."""
    kind = dtype.numpy or np.dtype(np.uint16)            # bfloat16: its bits
    n = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    return over(np.asarray(pinned(n))[:n].view(kind).reshape(shape), dtype, Tensor)


def copied(x: Tensor) -> Tensor:
    """Return a contiguous copy of x in pinned memory."""
    y = empty(x._sizes(), x.dtype)
    with unrecorded():
        memory_of(y)[:] = memory_of(make_contiguous(x.detach()))[:]
    return y


def fetched(x: Tensor) -> Tensor:
    """Return a contiguous copy of a GPU tensor in pinned memory."""
    y = empty(x._sizes(), x.dtype)
    carry(x.detach(), y)
    return y


def block_of(x: Tensor) -> Pinned | None:
    """Return the pinned block of a tensor in main memory, or None."""
    return _blocks.get(x._block_address[0])


def queued(x: Tensor, place: int) -> Tensor:
    """Return a contiguous copy of a CPU tensor on a GPU. The copy is asynchronous if the tensor is pinned."""
    y, block = new_on_device(x._sizes(), x.dtype, place), block_of(x)
    if block is None or not x._numel:
        carry(x, y)
        return y
    m = machine()
    with m.on(place - 1), check("copy"):
        stream = current_stream(place - 1)
        m.driver.memcpy_htod_async(y.address, memory_of(x), stream.handle)
        block.users.add(stream)
    return y
