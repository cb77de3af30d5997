"""Pool of worker processes of a DataLoader. It sends tasks from the main process and receives batches."""
from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import time
import warnings
import weakref
from collections.abc import Callable
from multiprocessing import connection
from typing import Any

from flowedu.errors import DataError
from flowedu.utils.data.transfer import Inbox, folder
from flowedu.utils.data.worker import Fetch, run


class WorkerError(DataError):
    """Failure of a worker process of a DataLoader that ended or took too long."""


class Pool:
    """Pool of `count` worker processes, numbered from 0.

    The workers end when `close()` is called, when the last reference is deleted, or when this process ends.

    Args:
        fetch: function that creates batches.
        init: worker_init_fn.
        context: multiprocessing context, "fork", "spawn", or "forkserver"; default: fork if available, so
            that the data set need not be copied.
        timeout: seconds to wait for a batch; 0: no limit.
    """

    def __init__(self, count: int, fetch: Fetch, init: Callable | None, context: Any, timeout: float):
        if context is None:
            context = ("fork" if "fork" in multiprocessing.get_all_start_methods() and os.name == "posix"
                       else None)
        context = (multiprocessing.get_context(context) if context is None or isinstance(context, str)
                   else context)
        self.count, self.timeout, self.epoch = count, timeout, -1
        self.inboxes = [Inbox() for _ in range(count)]
        self.pipes: list = []
        self.processes: list = []
        place = folder()
        self._close = weakref.finalize(self, _end, self.processes, self.pipes, place, os.getpid())
        forked = context.get_start_method() == "fork"
        try:
            for number in range(count):
                mine, theirs = context.Pipe()
                self.pipes.append(mine)
                others = list(self.pipes) if forked else []
                process = context.Process(target=run, args=(theirs, others, place, number, count, fetch,
                                                            init), daemon=True,
                                          name=f"flowedu-data-{number}")
                with warnings.catch_warnings():      # Python 3.12 warns, but our idle threads hold no locks
                    warnings.simplefilter("ignore", DeprecationWarning)
                    process.start()
                theirs.close()
                self.processes.append(process)
        except BaseException:
            self.close()
            raise

    def begin(self, seed: int) -> int:
        """Start an epoch, drop earlier tasks, and return the number of the epoch."""
        self.epoch += 1
        for number in range(self.count):
            self._send(number, (self.epoch, seed))
        return self.epoch

    def ask(self, number: int, task: int, indices: Any) -> None:
        """Send a task to worker `number`."""
        self._send(number, (self.epoch, task, indices, self.inboxes[number].take_freed()))

    def _send(self, number: int, message: tuple) -> None:
        try:
            self.pipes[number].send(message)
        except OSError:
            raise self._make_lost_error(number) from None

    def receive(self) -> tuple[int, int, str, Any]:
        """Return (worker index, task, kind, batch or error) of the next result of this epoch to arrive.

        Raises:
            WorkerError (a RuntimeError): a worker has ended, or nothing arrives within the timeout.
        """
        limit = time.monotonic() + self.timeout if self.timeout else None
        while True:
            left = None if limit is None else max(limit - time.monotonic(), 0)
            ready = connection.wait([*self.pipes, *(p.sentinel for p in self.processes)], left)
            if not ready:
                raise WorkerError(f"DataLoader timed out after {self.timeout} seconds",
                                  expected="a batch in that time",
                                  got=f"none from {self.count} workers",
                                  fix="a larger timeout, or 0; or a faster data set")
            for number, pipe in enumerate(self.pipes):
                if pipe not in ready:
                    continue
                try:
                    epoch, task, kind, content = pipe.recv()
                except (EOFError, OSError):
                    raise self._make_lost_error(number) from None
                if kind == "batch":                  # unpack older epochs as well, to free their slots
                    content = self.inboxes[number].unpack(content)
                if epoch == self.epoch:
                    return number, task, kind, content
            for number, process in enumerate(self.processes):
                if process.sentinel in ready and not self.pipes[number].poll():
                    raise self._make_lost_error(number)

    def _make_lost_error(self, number: int) -> WorkerError:
        process = self.processes[number]
        process.join(1)
        code, pid = process.exitcode, process.pid
        name = signal.Signals(-code).name if code is not None and code < 0 else None
        how = f"was killed by signal: {name}" if name else f"exited unexpectedly, with code {code}"
        self.close()
        return WorkerError(f"DataLoader worker (pid {pid}) {how}",
                           expected="a worker that lives as long as the loader",
                           got=f"worker {number} ended",
                           fix="num_workers=0 shows what happens, in this process"
                           if name != "SIGKILL" else "it is often the system that sends SIGKILL when no "
                           "memory is left: fewer workers or smaller batches")

    def close(self) -> None:
        """End the processes immediately."""
        self._close()


def _end(processes: list, pipes: list, place: str, owner: int) -> None:
    if os.getpid() != owner:                         # a forked child has this object but not the processes
        return
    for pipe in pipes:
        with contextlib.suppress(OSError, ValueError):
            pipe.send(None)
    _wait(processes, 0.3)
    for step in ("terminate", "kill"):
        for process in processes:
            if process.is_alive():
                getattr(process, step)()
        _wait(processes, 2.0)
    for pipe in pipes:
        pipe.close()
    for process in processes:
        if not process.is_alive():
            process.close()
    processes.clear()
    shutil.rmtree(place, ignore_errors=True)


def _wait(processes: list, seconds: float) -> None:
    limit = time.monotonic() + seconds
    for process in processes:
        process.join(max(limit - time.monotonic(), 0))
