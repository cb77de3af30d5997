"""Ranks: who there is, which of them this thread works for, and the messages between them.

A world has `size` ranks. An engine *owns* those whose work this thread does: all of them (virtual devices, below), or one
(a thread of flow.distributed.spawn, a process of MPI: distributed/ranks, distributed/mpi).

The engine below is the simplest that runs: a thread for each rank, and a queue from each to each. The one in
distributed/ranks that takes its place also notices at once when ranks wait for each other in vain, and moves large arrays
without copies.
"""
from __future__ import annotations

import itertools
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from queue import SimpleQueue

import numpy as np

from flowedu.core.shelves import shelf
from flowedu.core.values.place import Place
from flowedu.errors import ArgumentError, CommError

REDUCTIONS = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}


class Comm(ABC):
    """One rank's end of a world. Arrays are NumPy's; groups are sorted tuples of ranks that contain this one.

    Every rank of a group must make the same calls in the same order.
    """

    rank: int
    size: int

    @abstractmethod
    def exchange(self, sends: Sequence[tuple[int, np.ndarray]], recvs: Sequence[tuple[int, tuple, np.dtype]],
                 what: str = "") -> list[np.ndarray]:
        """Send each (to, array), then wait for each (from, shape, dtype). Messages of a pair keep their order; sending
        never waits, and the arrays may change as soon as this returns."""

    @abstractmethod
    def all_reduce(self, a: np.ndarray, group: Sequence[int] | None = None, op: str = "sum", what: str = "",
                   out: np.ndarray | None = None) -> np.ndarray:
        """The sum ("max", "min", "prod") of the group's arrays, the same to the last bit on each rank. out: where to put
        it, contiguous; may be `a`."""


class Engine(ABC):
    """A world, and the part of it that this thread does the work of.

    Attributes: name ("virtual", "threads" or "mpi"), size (ranks), owned (ranks whose shards this thread has), local_rank,
    local_size (ranks on this machine), node_rank, node_size (machines).
    """

    name: str
    size: int
    owned: tuple[int, ...]
    local_rank = 0
    local_size = 1
    node_rank = 0
    node_size = 1

    @property
    def rank(self) -> int:
        return self.owned[0]

    @abstractmethod
    def comm(self, rank: int) -> Comm:
        """The end of an owned rank. With several owned, each is for a thread of its own (see `run`)."""

    def run(self, programs: Mapping[int, Callable[[Comm], object]]) -> dict[int, object]:
        """Run `programs[rank](comm)` of owned ranks, at the same time, and return what each returned. What one raises ends
        the others and is raised here."""
        return {rank: program(self.comm(rank)) for rank, program in programs.items()}


# ---- the simplest engine
class QueueComm(Comm):
    """Rank `rank` of a world with these queues, {(from, to): arrays}. None in a queue: its sender has ended."""

    def __init__(self, rank: int, size: int, queues: Mapping[tuple[int, int], SimpleQueue]):
        self.rank, self.size, self.queues = rank, size, queues

    def exchange(self, sends, recvs, what=""):
        for to, a in sends:
            self.queues[self.rank, to].put(np.array(a))
        found = [self.queues[source, self.rank].get() for source, _, _ in recvs]
        for a, (source, _, _) in zip(found, recvs):
            if a is None:
                raise CommError(f"rank {self.rank} waits for rank {source}, which has ended", expected="an array",
                                got=what, at="", fix="every rank of a group must make the same calls, in the same order")
        return found

    def all_reduce(self, a, group=None, op="sum", what="", out=None):
        group = range(self.size) if group is None else group
        others = [r for r in group if r != self.rank]
        got = dict(zip(others, self.exchange([(r, a) for r in others], [(r, a.shape, a.dtype) for r in others], what)))
        total = np.array(a if group[0] == self.rank else got[group[0]])
        for r in group[1:]:                                  # in the same order on every rank
            REDUCTIONS[op](total, a if r == self.rank else got[r], out=total)
        if out is None:
            return total
        np.copyto(out, total)
        return out


class VirtualEngine(Engine):
    """All ranks are this thread's: virtual devices. Their programs run on threads."""

    name = "virtual"

    def __init__(self, k: int):
        self.size, self.owned = k, tuple(range(k))
        self.queues: dict[tuple[int, int], SimpleQueue] = {}

    def comm(self, rank: int) -> Comm:
        return QueueComm(rank, self.size, self.queues)

    def run(self, programs):
        results, errors = {}, {}
        self.queues = {pair: SimpleQueue() for pair in itertools.product(self.owned, self.owned)}

        def work(rank: int) -> None:
            try:
                results[rank] = programs[rank](self.comm(rank))
            except BaseException as error:
                errors[rank] = error
                for to in self.owned:
                    self.queues[rank, to].put(None)

        threads = [threading.Thread(target=work, args=(rank,), name=f"rank {rank}") for rank in programs]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if errors:
            raise next((e for e in errors.values() if not isinstance(e, CommError)), next(iter(errors.values())))
        return results


# ---- which engine a thread works with
_here = threading.local()
_process: Engine | None = None
_lock = threading.RLock()


def current() -> Engine:
    """The engine of this thread: the one it was started with (flow.distributed.spawn), else that of the process, which is
    MPI's in a process that mpiexec started, and otherwise virtual devices."""
    found = getattr(_here, "engine", None) or _process
    return found if found is not None else _start()


def _start() -> Engine:
    global _process
    with _lock:
        if _process is None:
            _process = _made(_devices)
        return _process


def _made(devices: Callable[[], int]) -> Engine:
    """The engine of this process; of so many virtual devices, if it is no rank of a launcher's."""
    return shelf("ranks of this process", otherwise=lambda devices: VirtualEngine(devices()))(devices)


def _devices() -> int:
    text = os.environ.get("FLOWEDU_DEVICES") or "1"
    if not text.isdigit() or int(text) < 1:
        raise ArgumentError("FLOWEDU_DEVICES: not a number of devices", expected="1 or more", got=text, at="",
                            fix="FLOWEDU_DEVICES=2")
    return int(text)


def set_virtual_devices(k: int) -> None:
    """Let this process have `k` virtual devices, ranks 0 to k-1 (default: FLOWEDU_DEVICES, else 1).

    Under the launcher the world is the launcher's: another `k` than its size is an ArgumentError.
    """
    global _process
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise ArgumentError("set_virtual_devices: not a number of devices", expected="1 or more", got=repr(k), fix="2")
    here = getattr(_here, "engine", None) or _process
    if here is None or here.name == "virtual":
        with _lock:
            here = _process = _made(lambda: k)
    if k != here.size:
        raise ArgumentError(f"set_virtual_devices: this is rank {here.rank} of a world of {here.size}", got=str(k),
                            expected=str(here.size), fix=f"start it with --nproc_per_node {k}, or without the launcher")


def world() -> Place:
    """All ranks, in a row."""
    size = current().size
    return Place(tuple(range(size)), (size,))


@contextmanager
def use(engine: Engine) -> Iterator[Engine]:
    """Let this thread work with `engine` inside the block."""
    before = getattr(_here, "engine", None)
    _here.engine = engine
    try:
        yield engine
    finally:
        _here.engine = before
