"""Processing of a batch of images in several threads.

Pillow's decoders and the pixel loops release the GIL.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from flowedu.core.eager.dispatch import get_num_threads

MUCH = 1 << 20               # values in a batch, for which the loops take longer than the start of threads


def much(numbers: int) -> bool:
    """Return True if several threads are faster than one for this number of values."""
    return numbers >= MUCH


def each(f: Callable, items: Sequence, worth: bool) -> Iterable:
    """Return f(x) for each of `items`, in order. With `worth`, use up to flow.get_num_threads() threads.

    If `f` raises an exception, all items are processed again in the calling thread, which raises it. So `f`
    must return the same result in a second call. The threads end with this call, so that no thread exists at
    a fork or at exit.
    """
    count = min(get_num_threads(), len(items)) if worth else 1
    if count < 2:
        return (f(x) for x in items)     # a StopIteration of f would end map silently
    try:
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(count, "flowedu-pictures") as pool:
            return list(pool.map(f, items))
    except Exception:
        return [f(x) for x in items]     # again in this thread, so that an error can name the user's line
