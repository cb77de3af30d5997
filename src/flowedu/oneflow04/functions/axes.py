"""Conversion of axes that may be counted from the end."""
from __future__ import annotations

from flowedu.errors import ShapeError


def normal_axis(axis: int, rank: int, what: str) -> int:
    """Return `axis` counted from the front, or raise ShapeError if it is not in [-rank, rank)."""
    if not -rank <= axis < rank:
        raise ShapeError(f"{what}: axis is out of range", expected=f"an axis in [{-rank}, {rank - 1}]",
                         got=str(axis), fix="count axes from 0, or from the end with -1")
    return axis % rank
