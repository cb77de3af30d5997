"""Ranks, engines, and communicators.

A world has `size` ranks. An engine *owns* the ranks whose work this thread does. VirtualEngine owns
all ranks. ThreadEngine (distributed/ranks) and MpiEngine (distributed/mpi) own one rank each.

VirtualEngine runs programs on one thread per rank, and its ranks share memory. The VirtualEngine of
distributed/ranks replaces it. That engine sends messages and detects deadlocks.
"""
from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np

from flowedu.core import extensions
from flowedu.core.eager.arrays import from_numpy
from flowedu.core.sbp.boxing.algebra import Route
from flowedu.core.values.place import Place
from flowedu.core.values.thread_state import during, register_fields, thread_state
from flowedu.errors import CommError
from flowedu.errors import layouts as errors

Programs = Mapping[int, Callable[["Comm"], object]]     # by rank
register_fields(engine=None)                  # the thread's engine (None: that of the process)


class Comm(ABC):
    """The communicator of one rank. All ranks of a group must make the same calls in order."""

    rank: int
    size: int

    @abstractmethod
    def box(self, route: Route, part: np.ndarray | None, what: str = "",
            identity: int = 0) -> np.ndarray | None:
        """Run a route on this rank's part and return the result; see Route.perform (algebra.py)."""


class Engine(ABC):
    """A world of ranks, and the ranks that this thread owns.

    Attributes: name ("virtual", "threads" or "mpi"), size (ranks), owned (ranks of this thread),
    local_rank, local_size (ranks on this machine), node_rank, node_size (machines).
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
        """Return the Comm of an owned rank. Each Comm is for one thread (see `run`)."""

    def identify(self, maker: object, attrs: tuple, inputs: tuple = ()) -> int:
        """Return the identity of a new value, which ranks compare when they box it (0: never)."""
        return 0

    def run(self, programs: Programs) -> dict[int, object]:
        """Run `programs[rank](comm)` concurrently; return the results by rank or raise an error."""
        return {rank: program(self.comm(rank)) for rank, program in programs.items()}


# ---- the simplest engine
class World:
    """A rendezvous of ranks that share memory. The last rank to arrive runs the route for all."""

    def __init__(self) -> None:
        self.bell, self.ended = threading.Condition(), set[int]()
        self.meetings: dict[Route, SimpleNamespace] = {}

    def meet(self, rank: int, route: Route, part: np.ndarray | None) -> np.ndarray | None:
        """Run a route with its other ranks and return this rank's part of the result."""
        ranks = {*route.dst.devices, *(sender for sender, _, _ in route.messages())}
        if rank not in ranks:                                # it sends and receives nothing
            return None
        with self.bell:
            m = self.meetings.setdefault(route, SimpleNamespace(parts={}, results=None))
            m.parts[rank] = part
            if m.parts.keys() == ranks:
                del self.meetings[route]
                m.results = _run_route(route, m.parts)
                self.bell.notify_all()
            self.bell.wait_for(lambda: m.results is not None or ranks & self.ended)
        if m.results is None:
            raise errors.rank_ended(rank, route.title, m.parts)
        return m.results.get(rank)

    def end(self, rank: int) -> None:
        """Wake the ranks that wait for this rank, which has ended."""
        with self.bell:
            self.ended.add(rank)
            self.bell.notify_all()


def _run_route(route: Route, arrays: dict[int, np.ndarray | None]) -> dict[int, np.ndarray]:
    """Return the part of each rank after a route. Source parts that no rank sends are zeros."""
    src, spec = route.src, route.spec
    parts = [from_numpy(np.asarray(arrays[d] if d in arrays else np.zeros(
        src.local_shape(spec.shape, i), spec.dtype.numpy))) for i, d in enumerate(src.devices)]
    return {d: np.array(y) for d, y in zip(route.dst.devices, route.run(parts))}


class VirtualComm(Comm):
    """The Comm of a world whose ranks share memory."""

    def __init__(self, world: World, rank: int, size: int):
        self.world, self.rank, self.size = world, rank, size

    def box(self, route: Route, part: np.ndarray | None, what: str = "",
            identity: int = 0) -> np.ndarray | None:
        return self.world.meet(self.rank, route, part)


class VirtualEngine(Engine):
    """The engine of virtual devices: this thread owns all ranks, and programs run on threads."""

    name = "virtual"

    def __init__(self, k: int):
        self.size, self.owned, self.world = k, tuple(range(k)), World()

    def comm(self, rank: int) -> Comm:
        return VirtualComm(self.world, rank, self.size)

    def run(self, programs: Programs) -> dict[int, object]:
        results, failures, self.world = dict[int, object](), dict[int, BaseException](), World()

        def work(rank: int) -> None:
            try:
                results[rank] = programs[rank](self.comm(rank))
            except BaseException as error:
                failures[rank] = error
            self.world.end(rank)

        threads = [threading.Thread(target=work, args=(rank,), name=f"rank {rank}")
                   for rank in programs]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if failures:
            causes = [e for e in failures.values() if not isinstance(e, CommError)]
            raise (causes or [*failures.values()])[0]
        return results


# ---- the engine of a thread
_process: Engine | None = None
_lock = threading.RLock()


def current() -> Engine:
    """Return the engine of this thread (set by flow.distributed.spawn) or that of the process."""
    engine = thread_state.engine or _process
    return engine if engine is not None else _start()


def _start() -> Engine:
    global _process
    with _lock:
        if _process is None:
            _process = _make_engine(_devices)
        return _process


def _make_engine(devices: Callable[[], int]) -> Engine:
    """Return MPI's engine under mpiexec, else an engine with devices() virtual devices."""
    start = extensions.start_ranks
    return start(devices) if start else VirtualEngine(devices())


def _devices() -> int:
    text = os.environ.get("FLOWEDU_DEVICES") or "1"
    if not (text.isascii() and text.isdigit() and len(text) < 5 and 1 <= int(text) <= 4096):
        raise errors.devices_variable(text)
    return int(text)


def set_virtual_devices(k: int) -> None:
    """Set the number of virtual devices, ranks 0 to k-1 (default: FLOWEDU_DEVICES or 1).

    Under the launcher, an ArgumentError is raised unless `k` is the size of its world.
    """
    global _process
    if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= 4096:
        raise errors.not_a_device_count(k)
    engine = thread_state.engine or _process
    if engine is None or engine.name == "virtual":
        with _lock:
            engine = _process = _make_engine(lambda: k)
    if k != engine.size:
        raise errors.fixed_world(engine, k)


def world() -> Place:
    """Return the Place of all ranks, in a row."""
    size = current().size
    return Place(tuple(range(size)), (size,))


def use(engine: Engine) -> during:
    """Return a context manager that makes `engine` the engine of this thread."""
    return during(engine=engine)
