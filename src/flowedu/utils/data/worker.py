"""Main loop of a worker process of a DataLoader."""
from __future__ import annotations

import os
import pickle
import queue
import random
import shutil
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from flowedu.core.eager.dispatch import set_num_threads
from flowedu.errors import DataError
from flowedu.tensor.construction.generator import manual_seed
from flowedu.utils.data.transfer import Outbox

BATCH, END, ERROR = "batch", "end", "error"
# Loops and generators treat these exceptions as a normal end, so an error would end the epoch silently.
ENDS = StopIteration, StopAsyncIteration, GeneratorExit
_info: WorkerInfo | None = None


@dataclass(frozen=True)
class WorkerInfo:
    """Data of a worker process.

    Args:
        id: index of the worker, 0 to num_workers - 1.
        num_workers: number of workers.
        seed: seed of this worker in this epoch.
        dataset: the worker's own copy of the dataset.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


def get_worker_info() -> WorkerInfo | None:
    """Return the data of this worker process, or None in the main process."""
    return _info


class Ended(Exception):
    """Signal that an iterable data set has no more items."""


@dataclass(frozen=True)
class Fetch:
    """Object that creates batches from the indices of a sampler.

    Attributes: dataset; iterable, True for a stream of items; batched, False for single items; collate;
    drop_last; plain, True if collate is default_collate.
    """

    dataset: Any
    iterable: bool
    batched: bool
    collate: Callable
    drop_last: bool
    plain: bool

    def start(self) -> Iterator | None:
        """Return the iterator of an iterable data set for one epoch, or None for another data set."""
        return iter(self.dataset) if self.iterable else None

    def batch(self, items: Any, indices: Any) -> Any:
        """Return the batch of these indices; raise Ended at the end of an iterable data set."""
        if not self.iterable:
            return self._by_number(indices)
        chunk = list(islice(items, indices if self.batched else 1))
        if not chunk or self.batched and len(chunk) < indices and self.drop_last:
            raise Ended
        return self.collate(chunk if self.batched else chunk[0])

    def _by_number(self, indices: Any) -> Any:
        if not self.batched:
            return self.collate(self.dataset[indices])
        if self.plain and hasattr(self.dataset, "__getbatch__"):
            return self.dataset.__getbatch__(indices)
        if hasattr(self.dataset, "__getitems__"):
            return self.collate(self.dataset.__getitems__(indices))
        return self.collate([self.dataset[i] for i in indices])


def run(pipe, others: Sequence, place: str, number: int, count: int, fetch: Fetch,
        init: Callable | None) -> None:
    """Run the main loop of worker `number` of `count`.

    The worker receives (epoch, seed) to start an epoch, (epoch, task, indices, freed slots) for a batch, and
    None to stop. It sends (epoch, task, BATCH, message), (epoch, task, END, None), or (epoch, task, ERROR,
    result of `described`).
    """
    global _info
    signal.signal(signal.SIGINT, signal.SIG_IGN)     # on Ctrl-C, the main process ends the workers
    for other in others:                             # the main process's pipe ends, inherited by fork
        other.close()
    set_num_threads(1)
    tasks: queue.SimpleQueue = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, tasks, os.getppid(), place), daemon=True).start()
    outbox, items, error = Outbox(place, number), None, None
    epoch, begun = -1, False
    owner = os.getpid()
    while (task := tasks.get()) is not None:
        if len(task) == 2:
            epoch, seed = task
            _seed(seed + number, seed, number)
            _info = WorkerInfo(number, count, seed + number, fetch.dataset)
            items, error = None, None
            try:
                if init is not None and not begun:
                    init(number)
                begun = True
                items = fetch.start()
            except (Exception, GeneratorExit) as e:
                error = described(e, number)
            _end_copy(owner)
            continue
        _, which, indices, freed = task
        outbox.free.update(freed)
        kind, content = ERROR, error
        if error is None:
            try:
                batch = fetch.batch(items, indices)
                _end_copy(owner)
                kind, content = BATCH, outbox.pack(batch)
            except Ended:
                kind, content = END, None
            except (Exception, GeneratorExit) as e:
                kind, content = ERROR, described(e, number)
        _end_copy(owner)
        try:
            pipe.send((epoch, which, kind, content))
        except OSError:                              # the main process has ended
            return
    pipe.close()


def _end_copy(owner: int) -> None:
    """Exit if this process is a child that the data set forked: two processes cannot share the pipe."""
    if os.getpid() != owner:
        os._exit(0)


def _listen(pipe, tasks: queue.SimpleQueue, parent: int, place: str) -> None:
    """Receive messages immediately, so that the main process never blocks. Exit when the pipe is closed."""
    try:
        while True:
            while not pipe.poll(1.0):
                if os.getppid() != parent:
                    raise EOFError
            task = pipe.recv()
            tasks.put(task)
            if task is None:
                return
    except (EOFError, OSError):
        shutil.rmtree(place, ignore_errors=True)
        os._exit(1)


def _seed(seed: int, base: int, number: int) -> None:
    """Seed all random generators of a worker from the base seed."""
    random.seed(seed)
    manual_seed(seed)
    np.random.seed(np.random.SeedSequence([base, number]).generate_state(8))       # noqa: NPY002


def described(error: BaseException, number: int) -> tuple[bytes | None, str]:
    """Return (pickled exception or None if it cannot be pickled, its traceback as text)."""
    text = "".join(traceback.format_exception(error)).rstrip()
    text = f"Caught {type(error).__name__} in DataLoader worker process {number}.\nOriginal {text}"
    error.__traceback__ = error.__cause__ = error.__context__ = None
    try:
        data = pickle.dumps(error)
        return (data if type(pickle.loads(data)) is type(error) else None), text
    except Exception:
        return None, text


def raised(data: bytes | None, text: str) -> Exception:
    """Return the exception that `described` pickled, with the text as a note.

    A DataError (a RuntimeError) replaces exceptions that cannot be pickled or that would end the loop over
    the batches.
    """
    try:
        error = None if data is None else pickle.loads(data)
    except Exception:
        error = None
    if error is None:
        return DataError(text, expected="a data set that gives items", got="an exception in a worker process",
                         fix="num_workers=0 raises it in this process")
    error.add_note(text)
    return no_end(error) if isinstance(error, ENDS) else error


def no_end(error: BaseException) -> DataError:
    """Return a DataError in place of an exception in ENDS, which a loop treats as its normal end."""
    name = type(error).__name__
    wrong = DataError(f"DataLoader: {name} came out of the data set, collate_fn, sampler, pin_memory or "
                      f"worker_init_fn"
                      + "".join("\n" + note for note in getattr(error, "__notes__", ())),
                      expected="batches to the end: only the iterator of an IterableDataset or sampler says "
                      "where that is", got=repr(error),
                      fix="next(it, None) does not raise at the end of `it`; or catch it where it is raised")
    wrong.__cause__ = error
    return wrong
