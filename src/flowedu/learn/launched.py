"""Judges a reader's CUDA C: what it computes, what the simulator says of it under many orders of threads, what it reads.

    counts = launched(source, "add", grid, block, x, y, out, n, seeds=range(1, 6))
"""
from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from flowedu.errors import FlowError
from flowedu.learn.exercises import Unjudged, Wrong


def launched(source: str, name: str, grid, block, *arguments: Any, seeds: Iterable[int] = (0,)) -> dict[str, int]:
    """Launches a kernel once for each seed, an order of its threads, with every check. Gives the counts of the last launch
    as in flow.cuda.profile; empty on a GPU, which counts nothing.

    Raises Wrong: it is no source, has no such kernel, or does what it must not; Unjudged: CUDA is off."""
    from flowedu import cuda
    from flowedu.cuda.machine import machine

    if not isinstance(source, str):
        raise Wrong(f"this gives {source!r}\n  should be a str: CUDA C with the kernel {name}")
    if not cuda.is_available():
        raise Unjudged("it is CUDA C: `make test-cuda` sets up a simulator, and FLOWEDU_CUDA=sim in front of this command "
                       "uses it")
    library = machine().library
    try:
        kernel = cuda.kernel(source)(name, grid, block)
        if library is None:
            kernel(*arguments)
            return {}
        for seed in seeds:
            library.cudasim_seed(seed)
            with cuda.profile(io.StringIO()) as profile:
                kernel(*arguments)
    except FlowError as error:
        raise Wrong(str(error)) from None
    finally:
        if library is not None:
            library.cudasim_seed(0)
    return profile[name]


def at_most(counts: dict[str, int], what: str, most: float, words: str, hint: str) -> None:
    """Raise Wrong if a kernel did something more often. (Nothing was counted on a GPU.)"""
    if counts and counts[what] > most:
        raise Wrong(f"right, but it took {counts[what]:,} {words}\n  should be at most {most:,.0f}\n  hint: {hint}")
