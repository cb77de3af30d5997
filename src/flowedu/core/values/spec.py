"""Spec, the shape and dtype of a value before it is computed, and shape arithmetic."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import NamedTuple, SupportsIndex

from flowedu.core.values.dtype import dtype
from flowedu.errors import ShapeError
from flowedu.errors import values as errors

MAX_RANK = 8               # FE_MAX_DIM of _kernels/core/abi.h
LARGEST = 1 << 45          # most bytes of one array (32 TiB), far below int64 overflow
Shape = tuple[int, ...]    # also used for strides and other values per axis


class Spec(NamedTuple):
    """Shape and element type of a value. Chapter 6 adds placement and SBP."""

    shape: tuple[int, ...]
    dtype: dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.bytes

    def __str__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)}"


def check_spec(what: str, spec: Spec) -> Spec:
    """Return `spec`. Raises ShapeError, or OutOfMemoryError for more than LARGEST bytes."""
    if len(spec.shape) > MAX_RANK:
        raise errors.too_many_axes(what, MAX_RANK, spec.shape)
    extent = 1
    for n in spec.shape:
        if type(n) is not int:
            n = _as_int(what, spec.shape, n)
        if n < 0:
            raise errors.negative_size(what, spec.shape)
        extent *= n or 1                     # a size of 0 counts as 1, as in row_major
    if extent * max(spec.dtype.bytes, 1) > LARGEST:
        raise errors.too_large(what, LARGEST, spec, extent)
    return spec


def _as_int(what: str, shape: tuple, n: SupportsIndex) -> int:
    try:
        return index(n)
    except TypeError:
        raise errors.size_not_an_int(what, shape) from None


def broadcast(*shapes: Sequence[int], what: str = "broadcast") -> tuple[int, ...]:
    """Return the common shape under NumPy broadcasting. Raises ShapeError if none exists."""
    rank = max((len(s) for s in shapes), default=0)
    out = []
    for axis in range(rank):
        sizes = {s[axis - rank + len(s)] for s in shapes if axis - rank + len(s) >= 0} - {1}
        if len(sizes) > 1:
            raise ShapeError(f"{what}: the shapes do not broadcast",
                             expected="axes that are equal or 1, from the right",
                             got=" and ".join(str(tuple(s)) for s in shapes),
                             fix="reshape or expand one of them")
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of a contiguous array."""
    out, step = [], 1
    for n in reversed(shape):
        out.append(step)
        step *= max(n, 1)
    return tuple(reversed(out))
