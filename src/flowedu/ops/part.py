"""Local calls of gather, dim_gather, slice, and their gradients along an axis split over devices.

Each device reads the elements inside its part and writes zeros for the others; the results are partial sums.
A table of words split over its rows (a "vocabulary split") is read this way without moving a row. The local
calls of such signatures are separate ops, `gather_part` and so on, named in `spread` of the original op's
record. `first` is the index of the part's first element, and `size` is the size of the complete axis. A part
may be split again.
"""
from __future__ import annotations

import numpy as np

from flowedu.errors import OutOfRangeError, ShapeError


def mine(name, indices, first, rows, size):
    """(where in the part each index points, whether it points there at all)"""
    wrong = indices[(indices < 0) | (indices >= size)]
    if wrong.size:
        raise OutOfRangeError(f"{name}: index {wrong.flat[0]} is out of range", expected=f"0 <= index < {size}",
                              got=str(wrong.flat[0]), fix="check the indices")
    at = indices - first
    here = (at >= 0) & (at < rows)
    return np.where(here, at, 0), here


def check_part(name, x, axis, first, size):
    if not 0 <= first <= first + x.shape[axis] <= size:
        raise ShapeError(f"{name}: this is no part of the axis", expected=f"elements within 0 to {size}",
                         got=f"{first} to {first + x.shape[axis]}")


def split(out, op, axis, base, rows=False):
    """The entry of `spread`: params (or, where `out`, the output) split along `axis`."""
    s = f"S{axis}"

    def attributes(start, stop):
        return {"axis": axis, **base, "first": base.get("first", 0) + start, **({"rows": stop - start} if rows else {})}
    return {("B", "B", s) if out else (s, "B", "P"): (op, attributes)}
