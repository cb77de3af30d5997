"""Processing of a batch of images in several threads; Pillow's decoders and the pixel loops release the
GIL.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from flowedu.core.eager.dispatch import get_num_threads

MUCH = 1 << 20               # numbers in a batch: the loops over them take longer than starting threads


def much(numbers: int) -> bool:
    """Whether this many numbers are worth threads to our loops."""
    return numbers >= MUCH


def each(f: Callable, items: Sequence, worth: bool) -> Iterable:
    """f(x) for each of `items`, in their order, one by one or all at once; in up to flow.get_num_threads() threads if it
    is `worth` it. The first item whose f raises decides what is raised; f must give the same when it is asked again.

    The threads live for this call only: a fork or the end of the program never meets them waiting.
    """
    count = min(get_num_threads(), len(items)) if worth else 1
    if count < 2:
        return (f(x) for x in items)     # not map, which a StopIteration of f would end silently
    try:
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(count, "flowedu-pictures") as pool:
            return list(pool.map(f, items))
    except Exception:
        return [f(x) for x in items]     # again in this thread, from which an error can name the line it comes from
