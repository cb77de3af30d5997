"""Chapter 6: reading a table whose rows are cut."""
from __future__ import annotations

import numpy as np

from flowedu.learn.laws import Law, Words, pair


def _tables(rng, size):
    """(shape of the table, axis that is cut, where it is cut, indices)"""
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
    """(table, [(first, part)])"""
    shape, axis, cuts, _ = case
    kind = np.float32 if shape[axis] % 2 else np.int64
    table = np.arange(1, 1 + np.prod(shape)).astype(kind).reshape(shape)
    return table, list(zip((0, *cuts), np.split(table, cuts, axis)))


def _said(case, first, part):
    shape, axis, _, indices = case
    return (f"  smallest case   axis {axis} of {shape}; this device has {first} to {first + part.shape[axis] - 1}, "
            f"indices {indices.tolist()}" if part.shape[axis] else
            f"  smallest case   axis {axis} of {shape}; this device has nothing, indices {indices.tolist()}")


def _rows_judged(case, yours):
    shape, axis, _, indices = case
    table, parts = _parts(case)
    for first, part in parts:
        mine = (indices >= first) & (indices < first + part.shape[axis])
        mine = mine.reshape((1,) * axis + indices.shape + (1,) * (len(shape) - axis - 1))
        want = np.where(mine, np.take(table, indices, axis), table.dtype.type(0))
        got = yours(part, indices, axis, first, shape[axis])
        if getattr(got, "shape", None) != want.shape or not np.array_equal(got, want):
            return [_said(case, first, part), *pair("should be", np.asarray(got).tolist(), want.tolist())]
        if got.dtype != want.dtype:
            return [_said(case, first, part), *pair("should be", *(Words(a.dtype) for a in (got, want)))]
    return None


def _refused_judged(case, yours):
    from flowedu.errors import OutOfRangeError
    shape, axis, _, _ = case
    _, parts = _parts(case)
    for bad in (shape[axis], -1):
        for first, part in parts:
            try:
                got = yours(part, np.array([bad]), axis, first, shape[axis])
            except OutOfRangeError:
                continue
            said = f"  smallest case   axis {axis} of {shape}, index {bad}"
            return [said, *pair("should be", got.tolist(), Words("an OutOfRangeError: no device has it"))]
    return None


def _words(case):
    shape, axis, cuts, indices = case
    return f"axis {axis} of {shape}; devices share it out before {' and '.join(map(str, cuts))}, indices {indices.tolist()}"


own_rows = Law("its own rows, zeros for those of others", _tables, _rows_judged, _smaller_tables, cases=150,
               told=_words)
refused = Law("an index that nobody has is refused", _tables, _refused_judged, cases=30,
              told=lambda case: f"{_words(case).partition(';')[0]}; an index outside of it")
