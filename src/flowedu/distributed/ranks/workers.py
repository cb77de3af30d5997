"""One thread per rank: the engine of virtual devices, and the engine of a thread of flow.distributed.spawn.
"""
from __future__ import annotations

import ctypes
import threading
import time
from _queue import SimpleQueue
from collections.abc import Callable, Mapping

from flowedu.core.sbp.ranks import Comm, Engine
from flowedu.distributed.ranks.identity import IdentifyingEngine
from flowedu.distributed.ranks.meet import World
from flowedu.distributed.ranks.threads import ThreadComm
from flowedu.errors import CommError

GRACE = 1.0             # seconds after a failure in which other ranks reach their next rendezvous


class Ended(SystemExit):
    """The exception that ends a running rank after another one failed."""


def _serve(queue: SimpleQueue) -> None:
    while (job := queue.get()) is not None:
        job()
        job = None


class Workers:
    """n threads that wait for work."""

    def __init__(self, n: int):
        self.queues: list[SimpleQueue] = [SimpleQueue() for _ in range(n)]
        self.threads = [threading.Thread(target=_serve, args=(q,), daemon=True, name=f"rank {i}")
                        for i, q in enumerate(self.queues)]
        for t in self.threads:
            t.start()

    def __del__(self):
        for q in self.queues:
            q.put(None)

    def run(self, world: World, programs: Mapping[int, Callable[[], object]]) -> dict[int, object]:
        """Run `programs[rank]()`, each on its thread.

        If one program raises an error, the others end, and this method raises the error.
        """
        world.reset()
        for rank in set(range(world.size)) - set(programs):
            world.state[rank] = "has nothing to do"
        results: dict[int, object] = {}
        errors: dict[int, BaseException] = {}
        ended: SimpleQueue[int] = SimpleQueue()

        def job(rank: int, program: Callable[[], object]) -> Callable[[], None]:
            def work():
                error = None
                try:
                    world.begin(rank)
                    results[rank] = program()
                except BaseException as e:
                    error = errors[rank] = e
                try:
                    world.end(rank, error)
                finally:                                     # without memory, `end` may fail, too
                    ended.put(rank)
            return work

        for rank, program in programs.items():
            self.queues[rank].put(job(rank, program))
        left = set(programs)
        try:
            while left and world.failure is None:
                left.discard(ended.get())
        except BaseException as error:                       # Ctrl-C
            self._stop(world, left, ended, error)
            raise
        if left:
            self._stop(world, left, ended)
        if errors:
            raise _first(errors, world.size)
        return results

    def _stop(self, world: World, left: set[int], ended: SimpleQueue,
              error: BaseException | None = None) -> None:
        """End the remaining ranks: waiting ones at once, computing ones after a moment."""
        if error is not None:
            world.stop(f"{type(error).__name__} in the thread that started the ranks")
        limit, asked = time.monotonic() + GRACE, False
        while left:
            try:
                left.discard(ended.get(timeout=max(0.01, limit - time.monotonic())))
            except Exception:                                # _queue.Empty
                if asked:
                    return                                   # in C code that does not return: abandoned
                asked, limit = True, time.monotonic() + 2 * GRACE
                for rank in left:
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.threads[rank].ident or 0),
                                                               ctypes.py_object(Ended))


def _first(errors: dict[int, BaseException], size: int) -> BaseException:
    """Return the error to raise: a rank's own error rather than a report of it."""
    for rank, e in errors.items():
        if not isinstance(e, (CommError, Ended)):
            e.add_note(f"(raised on rank {rank} of {size})")
            return e
    return next((e for e in errors.values() if isinstance(e, CommError)), next(iter(errors.values())))


class VirtualEngine(Engine):
    """The engine of virtual devices: all ranks belong to this thread."""

    name = "virtual"

    def __init__(self, k: int):
        self.size, self.owned, self.local_size = k, tuple(range(k)), 1
        self._forget_threads()

    def _forget_threads(self) -> None:
        """Replace the world and its locks, which a lost thread may hold, and let `run` start new threads."""
        self.world = World(self.size)
        self.comms = [ThreadComm(self.world, r) for r in range(self.size)]
        self.workers: Workers | None = None

    def comm(self, rank: int) -> Comm:
        return self.comms[rank]

    def run(self, programs):
        if len(programs) == 1 and self.size == 1:
            return super().run(programs)
        # a child process after os.fork
        if self.workers is not None and not self.workers.threads[0].is_alive():
            self._forget_threads()
        if self.workers is None:
            self.workers = Workers(self.size)
        try:
            return self.workers.run(self.world, {r: _bind(p, self.comms[r]) for r, p in programs.items()})
        except BaseException:
            self._forget_threads()
            raise


def _bind(program: Callable, comm: Comm) -> Callable[[], object]:
    return lambda: program(comm)


class ThreadEngine(IdentifyingEngine):
    """The engine of a thread that is one rank."""

    name = "threads"

    def __init__(self, world: World, rank: int):
        super().__init__()
        self.size, self.owned = world.size, (rank,)
        self.local_rank, self.local_size = rank, world.size
        self._comm = ThreadComm(world, rank)

    def comm(self, rank: int) -> Comm:
        assert rank in self.owned, rank
        return self._comm
