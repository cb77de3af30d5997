"""Pinned main memory: a GPU copies from and to it by itself, while the program goes on. A pool by size classes, as that of
the devices (memory.py); a block is given to others when the copies queued from it are done.
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
from flowedu.tensor.interop import memory_of

_lock = threading.Lock()
_free: dict[int, list] = {}                              # {size: blocks that can be had}
_returned: deque = deque()                               # those that went; a garbage collection may add some at any moment
_busy: list[tuple[Any, int, list[Event]]] = []           # those whose copies may not be done
_blocks: WeakValueDictionary[int, Pinned] = WeakValueDictionary()


class Pinned:
    """A block of pinned memory, as an array holds it: it goes back to the pool by itself.

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
    """What went back since this was last called waits for its copies, or lies in the free lists."""
    while _returned:
        allocation, size, users = _returned.popleft()
        _busy.append((allocation, size, [s.record_event(Event()) for s in users]))
    waiting = [(a, size, [e for e in events if not e.query()]) for a, size, events in _busy]
    _busy[:] = [one for one in waiting if one[2]]
    for allocation, size, events in waiting:
        if not events:
            _free.setdefault(size, []).append(allocation)


def pinned(nbytes: int) -> Pinned:
    """A block of at least so many bytes, contents undefined. Raises OutOfMemoryError."""
    size, m = size_class(nbytes), machine()
    found = _taken(size, nbytes, m.driver)
    if m.give is not None:
        m.give(found.address, nbytes, None)
    return found


def _taken(size: int, nbytes: int, driver: Any) -> Pinned:
    with _lock:
        _sort_in()
        if _free.get(size):
            return Pinned(_free[size].pop(), size)
        for _ in range(2):
            try:
                return Pinned(driver.pagelocked_empty((size,), np.uint8, mem_flags=driver.host_alloc_flags.PORTABLE), size)
            except driver.Error as e:
                _free.clear()                            # back to the driver, which is then asked once more
                said = e
    raise OutOfMemoryError("pin_memory: out of memory that can be pinned", expected=f"{nbytes:,} bytes", got=str(said),
                           fix="pin less at a time, or leave pin_memory out")


def empty(shape: tuple[int, ...], dtype: Dtype) -> Tensor:
    """A tensor in pinned memory, contents undefined."""
    kind = dtype.numpy or np.dtype(np.uint16)            # bfloat16: its bits
    n = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    return over(np.asarray(pinned(n))[:n].view(kind).reshape(shape), dtype, Tensor)


def copied(x: Tensor) -> Tensor:
    """x in pinned memory, row by row."""
    y = empty(x._sizes(), x.dtype)
    with unrecorded():
        memory_of(y)[:] = memory_of(make_contiguous(x.detach()))[:]
    return y


def fetched(x: Tensor) -> Tensor:
    """The values of a tensor on a GPU, row by row in pinned memory."""
    y = empty(x._sizes(), x.dtype)
    carry(x.detach(), y)
    return y


def block_of(x: Tensor) -> Pinned | None:
    """The pinned block that a tensor in main memory lies in."""
    return _blocks.get(x._block_address[0])


def queued(x: Tensor, place: int) -> Tensor:
    """A copy of a tensor of main memory, row by row, on a GPU. Where it is pinned nobody waits for it."""
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
