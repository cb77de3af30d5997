"""Prefetcher: a thread that produces the next items while the consumer processes the current one."""
from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from flowedu.errors import ArgumentError, CheckError, DataError


class Prefetcher:
    """A thread that calls `produce` up to `depth` results ahead; `get` returns them in order.

    The consumer gets the same results as from direct calls of `produce`. An exception is stored in its
    position and raised by the corresponding `get`, with the traceback of the thread. The thread then
    continues. StopIteration ends the sequence, and so does a BaseException that is not an Exception, such as
    SystemExit.

    The thread stops at `close()`, at the end of a with block, or when the Prefetcher has no more references.
    The last case requires that `produce` holds no reference to the Prefetcher or its owner.

    Args:
        produce: a function without arguments.
        depth: the number of results ahead, 1 or more.
    """

    def __init__(self, produce: Callable[[], Any], depth: int = 2):
        if not callable(produce):
            raise ArgumentError("Prefetcher: produce is not callable",
                                expected="a function without arguments",
                                got=type(produce).__name__,
                                fix="for an iterator: Prefetcher(lambda: next(it))")
        if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
            raise ArgumentError("Prefetcher: depth is not a number of items", expected="an int of 1 or more",
                                got=repr(depth), fix="depth=2")
        self._row = _Row(produce, depth)
        self._row.thread.start()
        # Also runs when the interpreter ends; by then the thread must not run into modules that are torn
        # down.
        self._finalizer = weakref.finalize(self, self._row.close, 0.5)

    def get(self) -> Any:
        """Return the next item, waiting if necessary.

        Raise the exception of `produce` in its position, and StopIteration at the end.
        """
        return self._row.get()

    def close(self, timeout: float = 1.0) -> bool:
        """Stop the thread and drop its results. Return True if the thread has ended.

        Args:
            timeout: the seconds to wait for the thread. If `produce` takes longer, the thread ends after that
                call.
        """
        self._finalizer.detach()
        return self._row.close(timeout)

    def __iter__(self) -> Prefetcher:
        return self

    __next__ = get

    def __enter__(self) -> Prefetcher:
        return self

    def __exit__(self, *exc) -> None:
        self.close()


class _Row:
    """The state shared by thread and consumer.

    The thread does not refer to the Prefetcher, which can so be deleted.
    """

    def __init__(self, produce: Callable[[], Any], depth: int):
        self.produce, self.depth = produce, depth
        self.items: deque[tuple[Any, BaseException | None]] = deque()
        self.changed = threading.Condition()
        self.closed = False
        # The exception that ends the sequence; each later get raises it.
        self.end: BaseException | None = None
        self.thread = threading.Thread(target=self.run, name="flowedu-prefetch", daemon=True)

    def run(self) -> None:
        while True:
            item = error = None
            try:
                item = self.produce()
            except BaseException as e:
                error = e
            last = (isinstance(error, StopIteration) or (error is not None
                                                         and not isinstance(error, Exception)))
            with self.changed:
                if last:
                    self.end = error
                while len(self.items) >= self.depth and not self.closed and not last:
                    self.changed.wait()
                if self.closed or last:
                    self.changed.notify_all()
                    return
                self.items.append((item, error))
                self.changed.notify_all()

    def get(self) -> Any:
        with self.changed:
            while not self.items and not self.closed and self.end is None:
                # a child process after os.fork does not have the thread
                if not self.thread.is_alive():
                    raise DataError("Prefetcher: its thread is gone", expected="a Prefetcher of this process",
                                    got="one from before a fork", fix="make it in the process that uses it")
                self.changed.wait()
            if self.closed:
                raise CheckError("Prefetcher: get after close", expected="an open Prefetcher",
                                 got="a closed one", fix="make a new one")
            item, error = self.items.popleft() if self.items else (None, self.end)
            self.changed.notify_all()
        if isinstance(error, StopIteration):
            raise StopIteration(*error.args)
        if error is not None:
            try:
                raise error
            finally:
                del error                               # its traceback refers to this frame
        return item

    def close(self, timeout: float) -> bool:
        with self.changed:
            self.closed = True
            self.items.clear()
            self.changed.notify_all()
        if self.thread is threading.current_thread():   # the last reference was lost inside produce
            return False
        self.thread.join(timeout)
        return not self.thread.is_alive()
