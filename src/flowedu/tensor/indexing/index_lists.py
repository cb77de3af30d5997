"""Index lists for the triangles of a matrix, and combinations of the elements of a vector.

The size of a result is computed first, so that a result that is too large raises an error immediately.
"""
from __future__ import annotations

import itertools
import math

import numpy as np

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.promote import cast
from flowedu.core.values.dtype import as_dtype, dtype, int64
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError, ShapeError
from flowedu.ops import index
from flowedu.tensor.arguments.memory_check import room_for
from flowedu.tensor.arguments.types import Device, Placement, Sbp
from flowedu.tensor.construction.destination import finished
from flowedu.tensor.interop.protocols import alike


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: dtype = int64, device: Device | None = None,
                 placement: Placement | None = None, sbp: Sbp | None = None) -> Tensor:
    """Return the row and column indices of the n elements of a lower triangle, as a tensor (2, n).

    Args:
        row: number of rows.
        col: number of columns.
        offset: number of columns by which the diagonal is shifted to the right.
        dtype: integer dtype.
        device: device of the tensor; default: the CPU.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
    """
    made = _triangle("tril_indices", row, col, offset, False, dtype)
    return finished(made, device, False, placement, sbp)


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: dtype = int64, device: Device | None = None,
                 placement: Placement | None = None, sbp: Sbp | None = None) -> Tensor:
    """Return the row and column indices of the n elements of an upper triangle, as a tensor (2, n).

    Args:
        row: number of rows.
        col: number of columns.
        offset: number of columns by which the diagonal is shifted to the right.
        dtype: integer dtype.
        device: device of the tensor; default: the CPU.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
    """
    made = _triangle("triu_indices", row, col, offset, True, dtype)
    return finished(made, device, False, placement, sbp)


def _triangle(what: str, row: int, col: int, offset: int, upper: bool, dtype: dtype) -> Tensor:
    if row < 0 or col < 0:
        raise ArgumentError(f"{what}: row and col must be non-negative", expected="0 or more",
                            got=f"{row}, {col}", fix=f"flow.{what}(3, 3)")
    offset = min(max(offset, -row - 1), col + 1)
    n = row * col - _count_below(row, col, offset - 1) if upper else _count_below(row, col, offset)
    with room_for(what, Spec((2, n), int64)):
        low, high = (0, min(row, col - offset)) if upper else (max(-offset, 0), row)
        i = np.arange(low, high if n else low)                             # rows with selected elements
        first = np.maximum(i + offset, 0) if upper else np.zeros_like(i)
        lengths = col - first if upper else np.minimum(i + offset + 1, min(col, n))
        j = np.arange(n) + np.repeat(first - np.cumsum(lengths) + lengths, lengths)
        return cast(alike(np.stack([np.repeat(i, lengths), j])), as_dtype(dtype))


def _count_below(row: int, col: int, offset: int) -> int:
    """Return the number of elements of a (row, col) matrix on and below the diagonal `offset`."""
    first = min(max(-offset, 0), row)                                      # earlier rows have no elements
    # Rows with one more element than the row above.
    growing = min(max(col - first - offset - 1, 0), row - first)
    return growing * (first + offset) + growing * (growing + 1) // 2 + (row - first - growing) * col


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return all combinations of r elements of a vector, one row each.

    Args:
        input: vector.
        r: number of elements.
        with_replacement: elements may repeat.
    """
    if r < 0:
        raise ArgumentError("combinations: expect a non-negative number", expected="r of 0 or more",
                            got=str(r), fix="r=2")
    if input.ndim != 1:
        raise ShapeError("combinations: Expect a 1D vector", expected="one axis", got=str(tuple(input.shape)),
                         fix="x.flatten()")
    size = input.shape[0]
    n = size + r - 1 if with_replacement and size and r else size
    few = min(r, n - r)
    count = 0
    if few >= 0:
        count = math.comb(n, few) if few < 64 else 2 ** 63                 # larger than any memory
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    with room_for("combinations", Spec((count, r), int64)):
        places = np.empty((count, r), np.int64)
        chosen = choose(range(size), r) if count else iter(())
        # In parts, so that Ctrl-C works between them.
        for at in range(0, count, 4096):
            part = places[at:at + 4096]
            numbers = itertools.chain.from_iterable(itertools.islice(chosen, len(part)))
            part[...] = np.fromiter(numbers, np.int64, part.size).reshape(part.shape)
    return index.gather.call((input, alike(places, input)), (0,))
