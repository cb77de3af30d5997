"""Lists of places: the triangles of a matrix, and all ways to choose from a vector. Their length is known before they are
made, so what is too long says so at once."""
from __future__ import annotations

import itertools
import math

import numpy as np

from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import cast
from flowedu.core.values.dtype import as_dtype, int64
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError, ShapeError
from flowedu.tensor.destination import finished
from flowedu.tensor.interop import alike
from flowedu.tensor.room import room_for


def tril_indices(row: int, col: int, offset: int = 0, *, dtype=int64, device=None, placement=None, sbp=None):
    """(2, n): rows and columns of the lower triangle."""
    made = _triangle("tril_indices", row, col, offset, False, dtype)
    return finished(made, device, False, placement, sbp)


def triu_indices(row: int, col: int, offset: int = 0, *, dtype=int64, device=None, placement=None, sbp=None):
    """(2, n): rows and columns of the upper triangle."""
    made = _triangle("triu_indices", row, col, offset, True, dtype)
    return finished(made, device, False, placement, sbp)


def _triangle(what, row, col, offset, upper, dtype):
    if row < 0 or col < 0:
        raise ArgumentError(f"{what}: row and col must be non-negative", expected="0 or more", got=f"{row}, {col}",
                            fix=f"flow.{what}(3, 3)")
    offset = min(max(offset, -row - 1), col + 1)
    n = row * col - _count_below(row, col, offset - 1) if upper else _count_below(row, col, offset)
    with room_for(what, Spec((2, n), int64)):
        low, high = (0, min(row, col - offset)) if upper else (max(-offset, 0), row)
        i = np.arange(low, high if n else low)                             # the rows that have a part
        first = np.maximum(i + offset, 0) if upper else np.zeros_like(i)
        lengths = col - first if upper else np.minimum(i + offset + 1, min(col, n))
        j = np.arange(n) + np.repeat(first - np.cumsum(lengths) + lengths, lengths)
        return cast(alike(np.stack([np.repeat(i, lengths), j])), as_dtype(dtype))


def _count_below(row: int, col: int, offset: int) -> int:
    """Return the number of elements of a (row, col) matrix on and below the diagonal `offset`."""
    first = min(max(-offset, 0), row)                                      # the rows before it have none
    growing = min(max(col - first - offset - 1, 0), row - first)           # so many have one more than the row above
    return growing * (first + offset) + growing * (growing + 1) // 2 + (row - first - growing) * col


def combinations(input, r: int = 2, with_replacement: bool = False):
    """All ways to choose r elements of a vector, one row each."""
    if r < 0:
        raise ArgumentError("combinations: expect a non-negative number", expected="r of 0 or more", got=str(r), fix="r=2")
    if input.ndim != 1:
        raise ShapeError("combinations: Expect a 1D vector", expected="one axis", got=str(tuple(input.shape)),
                         fix="x.flatten()")
    size = input.shape[0]
    n = size + r - 1 if with_replacement and size and r else size
    few = min(r, n - r)
    count = 0 if few < 0 else math.comb(n, few) if few < 64 else 2 ** 63   # comb(128, 64) is more than that
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    with room_for("combinations", Spec((count, r), int64)):
        places = np.empty((count, r), np.int64)
        chosen = choose(range(size), r) if count else iter(())
        for at in range(0, count, 4096):                                   # in parts: Ctrl-C comes between them
            part = places[at:at + 4096]
            numbers = itertools.chain.from_iterable(itertools.islice(chosen, len(part)))
            part[...] = np.fromiter(numbers, np.int64, part.size).reshape(part.shape)
    return REGISTRY["gather"].call((input, alike(places, input)), (0,))
