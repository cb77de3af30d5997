"""Spec: what is known about a value before it exists. Shape arithmetic lives here too."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from flowedu.blob.dtype import dtype
from flowedu.errors import ShapeError


class Spec(NamedTuple):
    """Shape and element type of a value. Placement and SBP join it in chapter 6."""

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


def broadcast(*shapes: Sequence[int], what: str = "broadcast") -> tuple[int, ...]:
    """The common shape of NumPy-style broadcasting: right-aligned, axes equal or 1. Raises ShapeError."""
    rank = max((len(s) for s in shapes), default=0)
    out = []
    for axis in range(rank):
        sizes = {s[axis - rank + len(s)] for s in shapes if axis - rank + len(s) >= 0} - {1}
        if len(sizes) > 1:
            raise ShapeError(f"{what}: the shapes do not broadcast", expected="axes that are equal or 1, from the right",
                             got=" and ".join(str(tuple(s)) for s in shapes), fix="reshape or expand one of them")
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)


def normal_axis(axis: int, rank: int, what: str) -> int:
    """`axis` counted from the front. Raises ShapeError when it is out of [-rank, rank)."""
    if not -rank <= axis < rank:
        raise ShapeError(f"{what}: axis is out of range", expected=f"an axis in [{-rank}, {rank - 1}]", got=str(axis),
                         fix="count axes from 0, or from the end with -1")
    return axis % rank


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of a contiguous array."""
    out, step = [], 1
    for n in reversed(shape):
        out.append(step)
        step *= max(n, 1)
    return tuple(reversed(out))
