"""Prefetcher: a thread that makes the next items while the consumer still works on this one."""
from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from flowedu.errors import ArgumentError, CheckError, DataError


class Prefetcher:
    """Calls `produce` in a thread, up to `depth` results ahead; `get` gives them in the order they were made.

    The consumer sees just what it would see if it called `produce` itself: an exception takes its place in the row and is
    raised by the `get` whose turn it is, with the traceback of the thread; the thread goes on after it. StopIteration
    ends the row, and so does what is not an Exception, such as SystemExit.

    `close()` (or the end of a with block, or losing the last reference) stops the thread. `produce` must not hold a
    reference to the Prefetcher, or to what owns it, if losing the last reference is to do that.
    """

    def __init__(self, produce: Callable[[], Any], depth: int = 2):
        if not callable(produce):
            raise ArgumentError("Prefetcher: produce is not callable", expected="a function without arguments",
                                got=type(produce).__name__, fix="for an iterator: Prefetcher(lambda: next(it))")
        if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
            raise ArgumentError("Prefetcher: depth is not a number of items", expected="an int of 1 or more",
                                got=repr(depth), fix="depth=2")
        self._row = _Row(produce, depth)
        self._row.thread.start()
        # Also runs when the interpreter ends; by then the thread must not run into modules that are torn down.
        self._finalizer = weakref.finalize(self, self._row.close, 0.5)

    def get(self) -> Any:
        """The next item; waits for it. Raises what `produce` raised in its place; StopIteration at the end."""
        return self._row.get()

    def close(self, timeout: float = 1.0) -> bool:
        """Stop the thread and drop what it made. True when the thread has ended; it is waited for `timeout` seconds,
        and if `produce` takes longer it ends after that call of it."""
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
    """What thread and consumer share. The thread refers to this and not to the Prefetcher, which can so be let go."""

    def __init__(self, produce: Callable[[], Any], depth: int):
        self.produce, self.depth = produce, depth
        self.items: deque[tuple[Any, BaseException | None]] = deque()
        self.changed = threading.Condition()
        self.closed = False
        self.end: BaseException | None = None           # the last thing in the row, and raised again ever after
        self.thread = threading.Thread(target=self.run, name="flowedu-prefetch", daemon=True)

    def run(self) -> None:
        while True:
            item = error = None
            try:
                item = self.produce()
            except BaseException as e:
                error = e
            last = isinstance(error, StopIteration) or (error is not None and not isinstance(error, Exception))
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
                if not self.thread.is_alive():          # a child after os.fork has this object but not the thread
                    raise DataError("Prefetcher: its thread is gone", expected="a Prefetcher of this process",
                                    got="one from before a fork", fix="make it in the process that uses it")
                self.changed.wait()
            if self.closed:
                raise CheckError("Prefetcher: get after close", expected="an open Prefetcher", got="a closed one",
                                 fix="make a new one")
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
