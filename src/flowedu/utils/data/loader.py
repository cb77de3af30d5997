"""DataLoader: batches of a data set, created in this process or ahead of time in worker processes."""
from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from types import GenericAlias
from typing import TYPE_CHECKING, Any

from flowedu.errors import ArgumentError, CallError
from flowedu.errors.once import inert
from flowedu.tensor.construction.generator import Generator
from flowedu.tensor.devices import device as gpus
from flowedu.utils.data.collate import default_collate, default_convert, pinned
from flowedu.utils.data.dataset import Dataset, IterableDataset
from flowedu.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed
from flowedu.utils.data.worker import BATCH, END, ENDS, ERROR, Ended, Fetch, no_end, raised

if TYPE_CHECKING:
    from flowedu.utils.data.pool import Pool


class DataLoader:
    """Iterable over the batches of a data set. Iterate over it once per epoch.

    An exception in a worker is raised instead of its batch, with the worker's traceback as a note. The
    following batches remain available. In every worker, random, numpy.random, and flow's default generator
    have their own seeds, which are drawn from `generator` and change with every epoch. A worker uses one
    thread.

    Args:
        dataset: Dataset or IterableDataset.
        batch_size: number of items per batch; None: single items, with arrays converted to tensors.
        shuffle: use a new random order in every epoch, reproducible with flow.manual_seed; default: False.
        sampler: iterable of indices; default: all items in order.
        batch_sampler: iterable of lists of indices, one per batch; default: from sampler and batch_size.
        num_workers: number of processes that create batches; default: 0, this process. It does not affect the
            order of the batches.
        collate_fn: function that converts a list of items to a batch; default: default_collate.
        pin_memory: copy batches to pinned memory, for `.to("cuda", non_blocking=True)`. Objects with a method
            pin_memory() are converted by that method. Without a GPU, the option only warns once.
        drop_last: drop an incomplete last batch; default: False.
        timeout: seconds to wait for a batch of the workers; default: 0, no limit.
        worker_init_fn: function that every new worker calls with its index; default: none.
        multiprocessing_context: "fork", "spawn", "forkserver", or a context; default: fork if available.
        generator: generator of random orders and of the workers' seeds; default: flow's default generator.
        prefetch_factor: number of batches that every worker creates ahead of time; default: 2.
        persistent_workers: keep the processes for the next epoch; default: False.
        pin_memory_device, in_order: accepted without effect, because pinned memory works with all GPUs and
            batches are always in order.

    Raises:
        ArgumentError (a ValueError): an argument is out of range, or two arguments exclude each other.
    """

    __class_getitem__: Any = classmethod(GenericAlias)    # DataLoader[int] in annotations

    def __init__(self, dataset: Dataset, batch_size: int | None = 1, shuffle: bool | None = None,
                 sampler: Iterable | None = None, batch_sampler: Iterable | None = None, num_workers: int = 0,
                 collate_fn: Callable | None = None, pin_memory: bool = False, drop_last: bool = False,
                 timeout: float = 0,
                 worker_init_fn: Callable | None = None, multiprocessing_context: Any = None,
                 generator: Generator | None = None, *, prefetch_factor: int | None = None,
                 persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True):
        iterable = isinstance(dataset, IterableDataset)
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        _check_order(dataset, batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.dataset, self.num_workers, self.timeout = dataset, num_workers, timeout
        in_vain = bool(pin_memory) and not gpus.gpus()
        for option, value, neutral, why in (("pin_memory", in_vain, False, "memory is pinned for a GPU only"),
                                            ("pin_memory_device", pin_memory_device, "",
                                             "memory is pinned for all GPUs"),
                                            ("in_order", in_order, True, "batches always come in order")):
            inert(f"DataLoader({option})", value, neutral, why)
        self.pin_memory, self.generator, self.worker_init_fn = pin_memory, generator, worker_init_fn
        self.multiprocessing_context, self.persistent_workers = multiprocessing_context, persistent_workers
        self.prefetch_factor: Any = 2 if prefetch_factor is None and num_workers else prefetch_factor
        if sampler is None:
            if iterable:
                sampler = _EndlessSampler()
            else:
                sampler = (RandomSampler(dataset, generator=generator) if shuffle
                           else SequentialSampler(dataset))
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        elif batch_sampler is not None:
            batch_size, drop_last = None, False
        self.sampler: Any = sampler
        self.batch_sampler: Any = batch_sampler
        self.batch_size, self.drop_last = batch_size, drop_last
        batched = batch_sampler is not None
        self.collate_fn = collate_fn or (default_collate if batched else default_convert)
        self._iterable = iterable
        self._pool: Pool | None = None

    def __iter__(self) -> Iterator:
        if not self.num_workers:
            draw_seed(self.generator)               # one draw, as with workers, so that later orders match
            return self._iterate_in_process()
        from flowedu.utils.data.pool import Pool  # multiprocessing is slow to import
        pool = self._pool
        if pool is None or not pool.processes:
            pool = Pool(self.num_workers, self._fetch(), self.worker_init_fn, self.multiprocessing_context,
                        self.timeout)
            self._pool = pool if self.persistent_workers else None
        return _Batches(self, pool)

    def _fetch(self) -> Fetch:
        return Fetch(self.dataset, self._iterable, self.batch_sampler is not None, self.collate_fn,
                     self.drop_last, self.collate_fn is default_collate)

    def _orders(self) -> Iterator:
        """Yield indices, or lists of indices; for an iterable data set, numbers of items."""
        if self._iterable:
            return itertools.repeat(self.batch_size)
        return iter(self.sampler if self.batch_sampler is None else self.batch_sampler)

    def _iterate_in_process(self) -> Iterator:
        fetch = self._fetch()
        try:
            items, orders = fetch.start(), self._orders()
        except ENDS as e:
            raise no_end(e) from e
        while True:
            try:
                indices = next(orders, Ended)
                if indices is Ended:
                    return
                batch = self._pin(fetch.batch(items, indices))
            except Ended:
                return
            except ENDS as e:
                raise no_end(e) from e
            yield batch

    def _pin(self, batch: Any) -> Any:
        """Return the batch, in pinned memory if the loader has pin_memory."""
        return pinned(batch) if self.pin_memory else batch

    def __len__(self) -> int:
        """Return the number of batches; for an iterable data set, an estimate from its __len__."""
        if not self._iterable:
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
        n = len(self.dataset)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


class _EndlessSampler(Sampler):
    """Sampler of an iterable data set, which has no indices."""

    def __iter__(self) -> Iterator:
        return itertools.repeat(None)


class _Batches:
    """Iterator of one epoch with workers. It returns batches in the order of the tasks."""

    def __init__(self, loader: DataLoader, pool: Pool):
        self.loader, self.pool, self.owns = loader, pool, not loader.persistent_workers
        self.epoch = pool.begin(draw_seed(loader.generator))
        self.asked = self.given = self.turn = 0
        self.results: dict[int, tuple[str, Any]] = {}
        self.ended: set[int] = set()
        self.done = False
        try:
            self.orders = loader._orders()
            for _ in range(loader.prefetch_factor * pool.count):
                self._send_task()
        except BaseException as e:
            self._abort(e)
            raise

    def __iter__(self) -> _Batches:
        return self

    def _send_task(self) -> None:
        if len(self.ended) == self.pool.count:
            return
        try:
            indices = next(self.orders)
        except StopIteration:
            return
        while self.turn % self.pool.count in self.ended:
            self.turn += 1
        self.pool.ask(self.turn % self.pool.count, self.asked, indices)
        self.asked, self.turn = self.asked + 1, self.turn + 1

    def __next__(self) -> Any:
        if self.done:
            raise StopIteration
        if self.epoch != self.pool.epoch:
            self.done = True
            raise ArgumentError("DataLoader: another iteration has begun since",
                                expected="one iteration at a time with persistent_workers=True",
                                got="next() on the older one", fix="persistent_workers=False")
        try:
            kind, content = self._next_result()
            if kind == BATCH:
                return self.loader._pin(content)
        except BaseException as e:                   # includes Ctrl-C, so that no process remains
            self._abort(e)
            raise
        if kind == ERROR:
            raise raised(*content)
        self._finish()
        raise StopIteration

    def _next_result(self) -> tuple[str, Any]:
        """Return (kind, content) of the next batch or error in order, or END after the last one."""
        while self.given < self.asked:
            while self.given not in self.results:
                number, task, kind, content = self.pool.receive()
                self.results[task] = kind, content
                if kind == END:
                    self.ended.add(number)
            kind, content = self.results.pop(self.given)
            self.given += 1
            self._send_task()
            if kind != END:
                return kind, content
        return END, None

    next = __next__

    def __len__(self) -> int:
        return len(self.loader)

    def _finish(self, broken: bool = False) -> None:
        self.done = True
        if self.owns or broken:
            self.pool.close()

    def _abort(self, error: BaseException) -> None:
        self._finish(broken=True)
        if isinstance(error, ENDS):
            raise no_end(error) from error

    def __del__(self):
        if getattr(self, "owns", False):
            self.pool.close()


MOST_WORKERS = 1024                                # an arbitrary bound on the number of processes


def _no(problem: str, expected: str, got: str, fix: str):
    raise ArgumentError(f"DataLoader: {problem}", expected=expected, got=got, fix=fix)


def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers) -> None:
    if isinstance(num_workers, bool) or not isinstance(num_workers, int):
        raise CallError("DataLoader: num_workers is not a number of processes",
                        expected="an int of 0 or more", got=repr(num_workers), fix="num_workers=2")
    if num_workers > MOST_WORKERS:
        _no("too many workers", f"at most {MOST_WORKERS}, since each is a process", str(num_workers),
            "num_workers=2")
    if num_workers < 0:
        _no("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing",
            "0 or more", str(num_workers), "num_workers=0")
    if not 0 <= timeout <= threading.TIMEOUT_MAX:          # also NaN
        _no("timeout option should be non-negative", f"0 to {threading.TIMEOUT_MAX:.0f} seconds",
            str(timeout), "timeout=0: no end of waiting")
    if num_workers == 0 and (prefetch_factor is not None or persistent_workers):
        option = "persistent_workers" if prefetch_factor is None else "prefetch_factor"
        _no(f"{option} option could only be specified in multiprocessing", "num_workers of 1 or more",
            "num_workers=0", "num_workers=2")
    if prefetch_factor is not None and prefetch_factor < 1:
        _no("prefetch_factor option should be positive", "1 or more", str(prefetch_factor),
            "prefetch_factor=2")


def _check_order(dataset, batch_size, shuffle, sampler, batch_sampler, drop_last) -> None:
    iterable = isinstance(dataset, IterableDataset)
    if iterable and (shuffle or sampler is not None or batch_sampler is not None):
        option = "sampler" if sampler is not None else "batch_sampler"
        if shuffle:
            option = "shuffle"
        _no(f"DataLoader with IterableDataset: expected unspecified {option} option",
            "items in the order they come", f"{option}=...", "shuffle in __iter__ of the data set")
    if sampler is not None and shuffle:
        _no("sampler option is mutually exclusive with shuffle", "one of them", "both", "leave shuffle out")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        _no("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last",
            "batch_sampler alone", f"batch_size={batch_size}, shuffle={shuffle}, drop_last={drop_last}",
            "leave the others out")
    if batch_size is None and drop_last:
        _no("batch_size=None option disables auto-batching and is mutually exclusive with drop_last",
            "one of them", "both", "leave drop_last out")
    if not iterable and batch_sampler is None and sampler is None and not hasattr(dataset, "__len__"):
        raise CallError(f"DataLoader: object of type {type(dataset).__name__!r} has no len()",
                        expected="a data set with __len__ and __getitem__, or an IterableDataset",
                        got=type(dataset).__name__, fix="define __len__, or pass sampler")
