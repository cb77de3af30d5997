"""Laws of chapter 6: lookups in an embedding table that is split across devices."""
from __future__ import annotations

import numpy as np

from flowedu.errors import OutOfRangeError
from flowedu_course.laws import SMALLEST, Words, holds, pair


def _tables(rng, size):
    """Draw (shape of the table, split axis, split positions, indices)."""
    shape = tuple(rng.randint(1, 1 + size) for _ in range(rng.randint(1, min(3, size))))
    axis = rng.randrange(len(shape))
    cuts = tuple(sorted(rng.randint(0, shape[axis]) for _ in range(rng.randint(1, 2))))
    indices = np.array([rng.randrange(shape[axis]) for _ in range(rng.randint(0, 2 * size))], np.int64)
    if rng.random() < 0.3:
        indices = indices.reshape(1, -1)
    return shape, axis, cuts, indices


def _smaller_tables(case):
    shape, axis, cuts, indices = case
    if indices.ndim > 1:
        yield shape, axis, cuts, indices.ravel()
    elif indices.size > 1:
        yield from ((shape, axis, cuts, indices[i:i + 1]) for i in range(indices.size))
    if len(cuts) > 1:
        yield from ((shape, axis, cuts[:i] + cuts[i + 1:], indices) for i in range(len(cuts)))
    if len(shape) > 1:
        yield (shape[axis],), 0, cuts, indices


def _parts(case):
    """Return (table, [(first index, part)])."""
    shape, axis, cuts, _ = case
    kind = np.float32 if shape[axis] % 2 else np.int64
    table = np.arange(1, 1 + np.prod(shape)).astype(kind).reshape(shape)
    if kind is np.float32:                         # also in rows that a device must not contribute
        table.flat[0], table.flat[-1] = np.inf, np.nan
    return table, list(zip((0, *cuts), np.split(table, cuts, axis)))


def _case_line(case, first, part):
    shape, axis, _, indices = case
    return (f"{SMALLEST}axis {axis} of {shape}; this device has {first} to {first + part.shape[axis] - 1}, "
            f"indices {indices.tolist()}" if part.shape[axis] else
            f"{SMALLEST}axis {axis} of {shape}; this device has nothing, indices {indices.tolist()}")


def _describe(case):
    shape, axis, cuts, indices = case
    return (f"axis {axis} of {shape}; devices split it before {' and '.join(map(str, cuts))}, indices "
            f"{indices.tolist()}")


EDGES = [((1,), 0, (0,), np.array([0])), ((3,), 0, (1,), np.array([0, 2])),
         ((3, 2), 0, (3,), np.array([[2, 0]])),
         ((2, 3), 1, (1, 1), np.array([], np.int64))]


@holds("own rows have values, others are zero", _tables, _smaller_tables, cases=150, told=_describe,
       edges=EDGES)
def own_rows(case, yours):
    shape, axis, _, indices = case
    table, parts = _parts(case)
    for first, part in parts:
        mine = (indices >= first) & (indices < first + part.shape[axis])
        mine = mine.reshape((1,) * axis + indices.shape + (1,) * (len(shape) - axis - 1))
        want = np.where(mine, np.take(table, indices, axis), table.dtype.type(0))
        got = yours(part, indices, axis, first, shape[axis])
        if getattr(got, "shape", None) != want.shape or not np.array_equal(
                got, want, equal_nan=want.dtype.kind == "f"):
            return [_case_line(case, first, part), *pair("should be", np.asarray(got).tolist(),
                                                         want.tolist())]
        if got.dtype != want.dtype:
            return [_case_line(case, first, part), *pair("should be", *(Words(a.dtype) for a in (got, want)))]
    return None


@holds("an index out of range raises an error", _tables, cases=30, edges=EDGES,
       told=lambda case: f"{_describe(case).partition(';')[0]}; an index outside of it")
def refused(case, yours):
    shape, axis, _, _ = case
    _, parts = _parts(case)
    for bad in (shape[axis], -1):
        for first, part in parts:
            try:
                got = yours(part, np.array([bad]), axis, first, shape[axis])
            except OutOfRangeError:
                continue
            said = f"{SMALLEST}axis {axis} of {shape}, index {bad}"
            return [said, *pair("should be", got.tolist(), Words("an OutOfRangeError: no device has it"))]
    return None
