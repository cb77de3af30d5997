"""Ranks: all of them, those that this thread works for, and the messages between them.

A world has `size` ranks. An engine *owns* those whose work this thread does: all of them (virtual devices, below), or one
(a thread of flow.distributed.spawn, a process of MPI: distributed/ranks, distributed/mpi).

The engine below is the simplest that runs: a thread for each rank, and one place where they meet. The one of
distributed/ranks, which takes its place, sends messages, and notices at once when ranks wait for each other in vain.
"""
from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np

from flowedu.core.eager.arrays import from_numpy
from flowedu.core.extensions import extension
from flowedu.core.values.place import Place
from flowedu.core.values.thread_state import during, register_fields, thread_state
from flowedu.errors import ArgumentError, CommError

register_fields(engine=None)                     # the ranks a thread computes with; None: those of the process


class Comm(ABC):
    """One rank's end of a world. Every rank of a group must make the same calls in the same order."""

    rank: int
    size: int

    @abstractmethod
    def box(self, route, part: np.ndarray | None, what: str = "", identity: int = 0) -> np.ndarray | None:
        """This rank's part at the end of a route, from the one it has at the start: see Route.perform (boxing/algebra.py),
        which calls it. It is collective: every rank of both ends must call it, for a value of one identity."""


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

    def identify(self, maker, attrs: tuple, inputs: tuple = ()) -> int:
        """The identity of a new global value: equal on all ranks that make the same calls. 0: it is not compared."""
        return 0

    def run(self, programs: Mapping[int, Callable[[Comm], object]]) -> dict[int, object]:
        """Run `programs[rank](comm)` of owned ranks, at the same time, and return what each returned. What one raises ends
        the others and is raised here."""
        return {rank: program(self.comm(rank)) for rank, program in programs.items()}


# ---- the simplest engine
class World:
    """Where ranks that share memory meet: the last to come does the work of all. A meeting has what the ranks of one route
    have given, and what has been made of it."""

    def __init__(self):
        self.bell, self.meetings, self.ended = threading.Condition(), {}, set()

    def meet(self, rank: int, route, part: np.ndarray | None) -> np.ndarray | None:
        """This rank's part at the end of the route."""
        ranks = {*route.dst.devices, *(sender for sender, _, _ in route.messages())}
        if rank not in ranks:                                # its part is not asked for
            return None
        with self.bell:
            m = self.meetings.setdefault(route, SimpleNamespace(given={}, made=None))
            m.given[rank] = part
            if m.given.keys() == ranks:
                del self.meetings[route]
                m.made = _boxed(route, m.given)
                self.bell.notify_all()
            self.bell.wait_for(lambda: m.made is not None or ranks & self.ended)
        if m.made is None:
            raise CommError(f"rank {rank} waits in {route.what} for a rank that has ended", at="", expected="all of them",
                            got=f"ranks {sorted(m.given)}", fix="every rank must make the same calls, in the same order")
        return m.made.get(rank)

    def end(self, rank: int) -> None:
        """Wake the ranks that wait for this one: it will not come."""
        with self.bell:
            self.ended.add(rank)
            self.bell.notify_all()


def _boxed(route, given: dict[int, np.ndarray | None]) -> dict[int, np.ndarray]:
    """All ranks' parts at the end of a route. Zeros stand for parts that no rank asks for."""
    src, spec = route.src, route.spec
    nothing = lambda i: np.zeros(src.local_shape(spec.shape, i), spec.dtype.numpy)
    parts = [from_numpy(np.asarray(given[d] if d in given else nothing(i))) for i, d in enumerate(src.devices)]
    return {d: np.array(y) for d, y in zip(route.dst.devices, route.run(parts))}


class VirtualComm(Comm):
    """An end of a world whose ranks share memory."""

    def __init__(self, world: World, rank: int, size: int):
        self.world, self.rank, self.size = world, rank, size

    def box(self, route, part, what="", identity=0):
        return self.world.meet(self.rank, route, part)


class VirtualEngine(Engine):
    """All ranks are this thread's: virtual devices. Their programs run on threads."""

    name = "virtual"

    def __init__(self, k: int):
        self.size, self.owned, self.world = k, tuple(range(k)), World()

    def comm(self, rank: int) -> Comm:
        return VirtualComm(self.world, rank, self.size)

    def run(self, programs):
        results, errors, self.world = {}, {}, World()

        def work(rank: int) -> None:
            try:
                results[rank] = programs[rank](self.comm(rank))
            except BaseException as error:
                errors[rank] = error
            self.world.end(rank)

        threads = [threading.Thread(target=work, args=(rank,), name=f"rank {rank}") for rank in programs]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if errors:
            raise next((e for e in errors.values() if not isinstance(e, CommError)), next(iter(errors.values())))
        return results


# ---- which engine a thread works with
_process: Engine | None = None
_lock = threading.RLock()


def current() -> Engine:
    """The engine of this thread: the one it was started with (flow.distributed.spawn), else that of the process, which is
    MPI's in a process that mpiexec started, and otherwise virtual devices."""
    found = thread_state.engine or _process
    return found if found is not None else _start()


def _start() -> Engine:
    global _process
    with _lock:
        if _process is None:
            _process = _made(_devices)
        return _process


def _made(devices: Callable[[], int]) -> Engine:
    """The engine of this process; of so many virtual devices, if it is no rank of a launcher's."""
    return extension("ranks of this process", otherwise=lambda devices: VirtualEngine(devices()))(devices)


def _devices() -> int:
    text = os.environ.get("FLOWEDU_DEVICES") or "1"
    if not (text.isascii() and text.isdigit() and len(text) < 5 and 1 <= int(text) <= 4096):
        raise ArgumentError("FLOWEDU_DEVICES: not a number of devices", expected="1 to 4096", got=text, at="",
                            fix="FLOWEDU_DEVICES=2")
    return int(text)


def set_virtual_devices(k: int) -> None:
    """Let this process have `k` virtual devices, ranks 0 to k-1 (default: FLOWEDU_DEVICES, else 1).

    Under the launcher the world is the launcher's: another `k` than its size is an ArgumentError.
    """
    global _process
    if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= 4096:
        raise ArgumentError("set_virtual_devices: not a number of devices", expected="1 to 4096", got=repr(k), fix="2")
    engine = thread_state.engine or _process
    if engine is None or engine.name == "virtual":
        with _lock:
            engine = _process = _made(lambda: k)
    if k != engine.size:
        raise ArgumentError(f"set_virtual_devices: this is rank {engine.rank} of a world of {engine.size}", got=str(k),
                            expected=str(engine.size), fix=f"start it with --nproc_per_node {k}, or without the launcher")


def world() -> Place:
    """All ranks, in a row."""
    size = current().size
    return Place(tuple(range(size)), (size,))


def use(engine: Engine) -> during:
    """`with use(engine):` this thread works with it."""
    return during(engine=engine)
