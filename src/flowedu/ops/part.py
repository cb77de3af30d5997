"""Local calls of gather, dim_gather, slice, and their gradients along an axis split over devices.

Each device reads the elements inside its part and writes zeros for the others; the results are partial sums.
A table of words whose rows are split over devices (a "vocabulary split") is read without moving a row. The
local calls of such signatures are separate ops, `gather_part` and so on, named in `spread` of the original
op's record. `first` is the index of the part's first element, and `size` is the size of the complete axis. A
part may be split again.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from flowedu.core.ops.define import Op
from flowedu.core.values.spec import Spec
from flowedu.errors import OutOfRangeError, ShapeError
from flowedu.ops.types import Spread


def locate_rows(name: str, indices: np.ndarray, first: int, rows: int,
                size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each index, its row in the part (0 if it is outside) and True if it is inside."""
    wrong = indices[(indices < 0) | (indices >= size)]
    if wrong.size:
        raise OutOfRangeError(f"{name}: index {wrong.flat[0]} is out of range",
                              expected=f"0 <= index < {size}",
                              got=str(wrong.flat[0]), fix="check the indices")
    at = indices - first
    here = (at >= 0) & (at < rows)
    return np.where(here, at, 0), here


def check_part(name: str, x: Spec, axis: int, first: int, size: int) -> None:
    if not 0 <= first <= first + x.shape[axis] <= size:
        raise ShapeError(f"{name}: this is no part of the axis", expected=f"elements within 0 to {size}",
                         got=f"{first} to {first + x.shape[axis]}")


def split(out: bool, op: Op, axis: int, base: dict, rows: bool = False) -> Spread:
    """Return the entry of `spread` with params (or, if `out`, the output) split along `axis`."""
    s = f"S{axis}"

    def attributes(start: int, stop: int) -> dict[str, Any]:
        return {"axis": axis, **base, "first": base.get("first", 0) + start,
                **({"rows": stop - start} if rows else {})}
    return {("B", "B", s) if out else (s, "B", "P"): (op, attributes)}
