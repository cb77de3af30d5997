"""Transfer of batches from a worker to the main process: large arrays by shared memory, others by pipe.

    outbox.pack(batch)      worker: copies the arrays to a slot (a file in /dev/shm); returns a message
    inbox.unpack(message)   main process: returns the batch, whose arrays are views of the slot (no copy)

When the last view of a slot is deleted, the slot can be reused. The main process sends the list of free slots
(`inbox.freed`) to the worker with the next task. The number of slots is thus the number of batches alive at
once, and their memory pages are reused. The main process unlinks a slot's file when it first opens the slot,
so that no file remains if a process is killed.
"""
from __future__ import annotations

import io
import mmap
import os
import pickle
import tempfile
import weakref
from typing import Any

import numpy as np

from flowedu.tensor import Tensor, from_numpy

SMALL = 1 << 16                                    # bytes; a pipe is as fast for smaller arrays
ALIGN = 64


def folder() -> str:
    """Create and return a folder for slots, in /dev/shm if the system has it."""
    memory = "/dev/shm"
    return tempfile.mkdtemp(prefix=f"flowedu-{os.getpid()}-", dir=memory if os.access(memory, os.W_OK)
                            else None)


class _Pickler(pickle.Pickler):
    """Pickler that converts tensors to arrays. The bytes of arrays are sent separately."""

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is Tensor and obj.is_eager and not obj.requires_grad and obj.dtype.numpy is not None:
            return from_numpy, (np.asarray(obj.numpy(), order="C"),)
        return NotImplemented


class Outbox:
    """Worker's end of the transfer."""

    def __init__(self, place: str, number: int):
        self.place, self.number = place, number
        self.slots: dict[int, mmap.mmap] = {}
        self.free: set[int] = set()

    def pack(self, obj: Any) -> tuple:
        """Return a message for the pipe; raise pickle's errors for objects that cannot be pickled."""
        parts: list[pickle.PickleBuffer] = []
        stream = io.BytesIO()
        _Pickler(stream, protocol=5, buffer_callback=parts.append).dump(obj)
        data, raws = stream.getvalue(), [p.raw() for p in parts]
        ends = np.cumsum([-(-r.nbytes // ALIGN) * ALIGN for r in raws], dtype=np.int64).tolist()
        slot = self._slot(ends[-1]) if raws and ends[-1] >= SMALL else None
        if slot is None:
            return data, None, None, [bytearray(r) for r in raws]
        number, path = slot
        places = [(end - -(-r.nbytes // ALIGN) * ALIGN, r.nbytes) for r, end in zip(raws, ends)]
        memory = self.slots[number]
        for raw, (start, size) in zip(raws, places):
            memory[start:start + size] = raw
        self.free.discard(number)
        return data, number, path, places

    def _slot(self, size: int) -> tuple[int, str | None] | None:
        """Return (a free slot of `size` bytes, its path if it is new), or None if no memory is available."""
        fits = [n for n in self.free if len(self.slots[n]) >= size]
        if fits:
            return min(fits, key=lambda n: len(self.slots[n])), None
        number = len(self.slots)
        path = os.path.join(self.place, f"{self.number}-{number}")
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                if hasattr(os, "posix_fallocate"):      # allocates now; a later write could crash (SIGBUS)
                    os.posix_fallocate(fd, 0, size)
                else:
                    os.ftruncate(fd, size)
                self.slots[number] = mmap.mmap(fd, size)
            finally:
                os.close(fd)
        except OSError:
            if os.path.exists(path):
                os.unlink(path)
            return None
        return number, path


class _Leased(np.ndarray):
    """Array of all bytes of a slot, which its views keep alive.

    NumPy collapses the bases of a view only for the same class, so views have this subclass as base.
    """


class Inbox:
    """Main process's end of the transfer, for one worker."""

    def __init__(self):
        self.slots: dict[int, mmap.mmap] = {}
        self.leases: dict[int, weakref.ref] = {}
        self.freed: list[int] = []

    def unpack(self, message: tuple) -> Any:
        """Return the batch of a message of Outbox.pack."""
        data, number, path, places = message
        if number is None:
            return pickle.loads(data, buffers=places)
        if path is not None:
            fd = os.open(path, os.O_RDWR)
            try:
                self.slots[number] = mmap.mmap(fd, os.fstat(fd).st_size)
            finally:
                os.close(fd)
                os.unlink(path)
        memory = self.slots[number]
        leased = np.ndarray.__new__(_Leased, (len(memory),), np.uint8, buffer=memory)
        freed = self.freed
        self.leases[number] = weakref.ref(leased, lambda _: freed.append(number))
        return pickle.loads(data, buffers=[leased[start:start + size] for start, size in places])

    def take_freed(self) -> list[int]:
        """Return the slots that were freed since the last call."""
        return [self.freed.pop() for _ in range(len(self.freed))]
