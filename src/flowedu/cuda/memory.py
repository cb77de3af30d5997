"""Caching allocator of GPU memory: size classes as in fast/memory.pyx, for each device and stream.

The driver's own allocation waits for the device; a block from a free list costs nothing. Memory that was
freed on a stream is reused only for later work of that stream, so the allocator needs no wait for a kernel
that may still read it.
"""
from __future__ import annotations

import functools
import threading
from collections import deque
from typing import Any

from flowedu.core.values.thread_state import thread_state
from flowedu.cuda.machine import machine
from flowedu.cuda.streams import Event, Stream, current_stream
from flowedu.errors import OutOfMemoryError

SMALLEST = 512


@functools.lru_cache(maxsize=4096)
def size_class(nbytes: int) -> int:
    """Return the smallest class for so many bytes: 512, 640, 768, 896, 1024, ... (four per doubling)."""
    base = max(SMALLEST, 1 << (max(nbytes, SMALLEST) - 1).bit_length() - 1)
    step = base // 4
    return base + -(-max(nbytes - base, 0) // step) * step


class Memory:
    """Block of device memory of a tensor: `address`, `size`. It returns to its pool when deleted."""

    __slots__ = ("address", "allocation", "pool", "size", "stream", "users")

    def __init__(self, pool: Pool, allocation: Any, size: int, stream: Stream):
        self.pool, self.allocation = pool, allocation
        self.size, self.stream = size, stream
        self.address = int(allocation)
        self.users: set[Stream] | None = None            # other streams that use it (Tensor.record_stream)

    def __del__(self):
        self.pool.returned.append((self.allocation, self.size, self.stream, self.users))


class Pool:
    """Allocator of one device."""

    def __init__(self, index: int):
        self.index, self.lock, self.give = index, threading.Lock(), machine().give
        # Streams with memory are kept, as the driver reuses the handles of destroyed streams.
        self.free: dict[tuple[Stream, int], list] = {}
        self.returned: deque = deque()  # freed blocks; garbage collection may add some at any time
        self.live = self.reserved = self.allocations = self.retries = self.failures = 0
        self.most_live = self.most_reserved = 0
        self.private: set[Stream] = set()  # streams of graphs, whose freed blocks are kept (graphs.py)

    def sort_in(self) -> None:
        """Move the blocks that were freed since the last call to the free lists."""
        while self.returned:
            allocation, size, stream, users = self.returned.popleft()
            for user in users or ():                     # later work of `stream` waits for this user
                stream.wait_event(user.record_event(Event()))
            self.live -= size
            self.free.setdefault((stream, size), []).append(allocation)

    def take(self, nbytes: int) -> Memory:
        """Return a block for the current stream. Raises OutOfMemoryError, and the pool remains usable."""
        size, stream = size_class(nbytes), current_stream(self.index)
        with self.lock:
            if self.returned:
                self.sort_in()
            held = self.free.get((stream, size))
            allocation = held.pop() if held else self._allocate(size, nbytes)
            self.live += size
            self.allocations += 1
            if self.live > self.most_live:
                self.most_live = self.live
        if self.give is not None:                        # the array may end before the block
            self.give(int(allocation), nbytes, stream.cuda_stream)
        return Memory(self, allocation, size, stream)

    def _allocate(self, size: int, nbytes: int) -> Any:
        """Return a block of the driver. If it has no memory, all cached blocks are freed first."""
        driver = machine().driver
        try:
            allocation = driver.mem_alloc(size)
        except driver.MemoryError:
            self.retries += 1
            if self.drop():
                return self._allocate(size, nbytes)
            self.failures += 1
            unused, total = driver.mem_get_info()
            raise OutOfMemoryError(
                "CUDA out of memory", expected=f"{nbytes:,} bytes more on cuda:{self.index}, which has "
                f"{total:,}",
                got=f"{self.live:,} bytes in tensors, {unused:,} free",
                fix="use smaller sizes or batches, del tensors that are no longer needed, compute without "
                "gradients under flow.no_grad()") from None
        self.reserved += size
        self.most_reserved = max(self.most_reserved, self.reserved)
        return allocation

    def drop(self) -> int:
        """Free all cached blocks, and return their number of bytes."""
        lists = [key for key in self.free if key[0] not in self.private]
        freed = sum(key[1] * len(self.free[key]) for key in lists)
        if freed:
            machine().driver.Context.synchronize()
            for key in lists:
                del self.free[key]
            self.reserved -= freed
        return freed


_pools: dict[int, Pool] = {}


def pool(index: int) -> Pool:
    """Return the pool of a device."""
    if index not in _pools:
        _pools.setdefault(index, Pool(index))
    return _pools[index]


def device_memory(nbytes: int, index: int) -> Memory:
    """Return a block of memory of a GPU, for core/eager/later/device.pxi."""
    held = thread_state.gpu
    if held is not None and held.index == index:
        return (_pools.get(index) or pool(index)).take(nbytes)
    with machine().on(index):
        return pool(index).take(nbytes)


def settled(index: int | None = None) -> Pool:
    """Return the pool of a device (None: the current one) after its freed blocks were sorted."""
    chosen = pool(machine().use() if index is None else index)
    with chosen.lock:
        chosen.sort_in()
    return chosen


def empty_cache() -> None:
    """Free all memory that no tensor uses, on all devices."""
    for index in list(_pools):
        with machine().on(index):
            chosen = settled(index)
            with chosen.lock:
                chosen.drop()
