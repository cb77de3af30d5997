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
from flowedu.tensor.generator import manual_seed
from flowedu.utils.data.transfer import Outbox

BATCH, END, ERROR = "batch", "end", "error"
# They mean something to the loops and generators they pass, and would end an epoch as if it were whole.
ENDS = StopIteration, StopAsyncIteration, GeneratorExit
_info: WorkerInfo | None = None


@dataclass(frozen=True)
class WorkerInfo:
    """Attributes: id, 0 to num_workers - 1; num_workers; seed, of this worker in this epoch; dataset, its own copy."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


def get_worker_info() -> WorkerInfo | None:
    """Which worker process this is; None in the main process. For an IterableDataset that splits its items."""
    return _info


class Ended(Exception):
    """An iterable data set has no more items."""


@dataclass(frozen=True)
class Fetch:
    """How a batch is made of what a sampler gives.

    Attributes: dataset; iterable: it gives one item after the other; batched: False: single items; collate; drop_last;
    plain: collate is default_collate.
    """

    dataset: Any
    iterable: bool
    batched: bool
    collate: Callable
    drop_last: bool
    plain: bool

    def start(self) -> Iterator | None:
        """What `batch` needs for one epoch."""
        return iter(self.dataset) if self.iterable else None

    def batch(self, items: Iterator | None, indices: Any) -> Any:
        """The batch of these indices. Raises Ended when an iterable data set has no more."""
        if not self.iterable:
            return self._by_number(indices)
        found = list(islice(items, indices if self.batched else 1))
        if not found or self.batched and len(found) < indices and self.drop_last:
            raise Ended
        return self.collate(found if self.batched else found[0])

    def _by_number(self, indices: Any) -> Any:
        if not self.batched:
            return self.collate(self.dataset[indices])
        if self.plain and hasattr(self.dataset, "__getbatch__"):
            return self.dataset.__getbatch__(indices)
        if hasattr(self.dataset, "__getitems__"):
            return self.collate(self.dataset.__getitems__(indices))
        return self.collate([self.dataset[i] for i in indices])


def run(pipe, others: Sequence, place: str, number: int, count: int, fetch: Fetch, init: Callable | None) -> None:
    """The main function of worker `number` of `count`.

    In come (epoch, seed), which begins an epoch; (epoch, task, indices, freed slots); None, the end. Out go (epoch, task,
    BATCH, message), (epoch, task, END, None) and (epoch, task, ERROR, what `described` gives).
    """
    global _info
    signal.signal(signal.SIGINT, signal.SIG_IGN)     # Ctrl-C: the main process ends us
    for other in others:                             # of the main process; fork gave us copies
        other.close()
    set_num_threads(1)
    tasks: queue.SimpleQueue = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, tasks, os.getppid(), place), daemon=True).start()
    outbox, items, error, epoch, begun = Outbox(place, number), None, None, -1, False
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
        except OSError:                              # the main process is gone
            return
    pipe.close()


def _end_copy(owner: int) -> None:
    """End a copy of the worker that a data set made by os.fork and let return: two processes cannot share the pipe."""
    if os.getpid() != owner:
        os._exit(0)


def _listen(pipe, tasks: queue.SimpleQueue, parent: int, place: str) -> None:
    """Take messages out of the pipe as they come, so that the main process never waits; end when it is gone."""
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
    """Every worker its own random numbers, the same for the same base seed."""
    random.seed(seed)
    manual_seed(seed)
    np.random.seed(np.random.SeedSequence([base, number]).generate_state(8))       # noqa: NPY002


def described(error: BaseException, number: int) -> tuple[bytes | None, str]:
    """(the exception as a pickle that can be read, or None; where it came from, as text)"""
    text = "".join(traceback.format_exception(error)).rstrip()
    text = f"Caught {type(error).__name__} in DataLoader worker process {number}.\nOriginal {text}"
    error.__traceback__ = error.__cause__ = error.__context__ = None
    try:
        data = pickle.dumps(error)
        return (data if type(pickle.loads(data)) is type(error) else None), text
    except Exception:
        return None, text


def raised(data: bytes | None, text: str) -> Exception:
    """The exception of `described`, with that text as a note; DataError (a RuntimeError) where it could not travel, or
    would end the loop over the batches."""
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
    """What a loop must not take for its end, as an error, with `error` as its cause."""
    name = type(error).__name__
    wrong = DataError(f"DataLoader: {name} came out of the data set, collate_fn, sampler, pin_memory or worker_init_fn"
                      + "".join("\n" + note for note in getattr(error, "__notes__", ())), expected="batches to the end: "
                      "only the iterator of an IterableDataset or sampler says where that is", got=repr(error),
                      fix="next(it, None) does not raise at the end of `it`; or catch it where it is raised")
    wrong.__cause__ = error
    return wrong
