"""Local call of a slice of an array that is split over devices.

Each device reads the elements inside its part and writes zeros for the others; the results are partial sums.
part.py does the same for gather and similar ops.
"""
from __future__ import annotations

import numpy as np

from flowedu.core.ops.concat import band_equation, full_axes, localize_slice, slice_shape
from flowedu.core.ops.define import define
from flowedu.core.ops.record import Laws, Meaning, Split
from flowedu.core.values.spec import Spec
from flowedu.errors import ShapeError
from flowedu.ops.types import Ints, LocalCall, Spread


def _ref(x: np.ndarray, start: Ints, stop: Ints, step: Ints, first: Ints) -> np.ndarray:
    y = np.zeros(slice_shape(start, stop, step), x.dtype)
    here, there = [], []
    for n, a, b, s, f in zip(x.shape, start, stop, step, first):
        low = max(-(-(f - a) // s), 0)                            # the first j with a + j * s in this part
        high = max(min(-(-(f + n - a) // s), -(-(b - a) // s)), low)
        there.append(slice(low, high))
        here.append(slice(a + low * s - f, a + (high - 1) * s - f + 1, s) if high > low else slice(0, 0))
    y[tuple(there)] = x[tuple(here)]
    return y


def _uncut_axes(x: Spec, start: Ints, stop: Ints, step: Ints, first: Ints) -> list[int]:
    """Return the axes that are complete in the part and in the slice."""
    return [i for i in full_axes(x.shape, start, stop, step) if first[i] == 0]


def _check(x: Spec, start: Ints, stop: Ints, step: Ints, first: Ints) -> None:
    if not len(start) == len(stop) == len(step) == len(first) == x.ndim:
        raise ShapeError("slice_part: start, stop, step and first need an entry for every axis",
                         expected=f"{x.ndim} entries for x {x.shape}",
                         got=f"{len(start)}, {len(stop)}, {len(step)} and {len(first)}")


def spread(x: Spec, start: Ints, stop: Ints, step: Ints, first: Ints | None = None) -> Spread:
    """Return the signatures of slice and slice_part, which split an axis that the slice cuts.

    The results on the devices are partial sums.
    """
    first = (0,) * x.ndim if first is None else first

    def entry(axis: int) -> tuple[tuple[str, ...], LocalCall]:
        def localize(at: int, _: int) -> dict[str, Ints]:
            moved = tuple(f + at * (i == axis) for i, f in enumerate(first))
            return {"start": start, "stop": stop, "step": step, "first": moved}

        return (f"S{axis}", "P"), (slice_part, localize)
    keep = _uncut_axes(x, start, stop, step, first)
    return dict(entry(i) for i in range(x.ndim) if i not in keep)


slice_part = define(
    "slice_part(x, *, start, stop, step, first) -> y",
    Meaning(lambda x, start, stop, step, first: band_equation(x.ndim,
                                                              _uncut_axes(x, start, stop, step, first)), _ref,
            shape=slice_shape, check=_check),
    Split(linear=["x"], localize=localize_slice,
          spread=lambda x, start, stop, step, first: spread(x, start, stop, step, first)),
    Laws([dict(shapes=[(6, 6)], start=(0, 2), stop=(6, 9), step=(1, 3), first=(0, 4)),
          dict(shapes=[(6,)], start=(3,), stop=(11,), step=(1,), first=(6,))], float_only=False),
    doc="slice of an array of which x is the part from `first` on: zeros where the slice reads outside it.")
