"""Laws of chapter 6: the part of a tensor that each device holds."""
from __future__ import annotations

import itertools

from flowedu_course.laws import half, holds, less, pair, same, simpler


# ---- balanced cuts
def _cuts(rng, size):
    return rng.randint(0, 4 * size), rng.randint(1, 1 + size)


def _describe_cut(case):
    n, k = case
    return f"{n} element{'s' * (n != 1)} on {k} device{'s' * (k != 1)}"


@holds("no gaps; sizes differ by at most 1", _cuts, simpler((0, less(0)), (1, less(1)), (0, half(0))),
       cases=120, told=_describe_cut, edges=[(0, 1), (0, 3), (1, 1), (1, 2), (3, 3), (4, 3), (6, 3)])
def bounds(case, yours):
    n, k = case
    got = [tuple(b) for b in yours(n, k)]
    said = f"  yours           {got}"
    if len(got) != k:
        return [said, f"  {len(got)} parts, not {k}"]
    at = 0
    for i, (a, b) in enumerate(got):
        if a != at or b < a:
            return [said, f"  device {i} begins at {a}, but the previous one ends at {at}"]
        at = b
    if at != n:
        return [said, f"  the devices have {at} elements, not {n}"]
    sizes = [b - a for a, b in got]
    if max(sizes) - min(sizes) > 1 or sizes != sorted(sizes, reverse=True):
        return [said, f"  sizes {sizes}: they may differ by one, the larger first"]
    return None


# ---- parts of the devices of a grid
def _grids(rng, size):
    grid = tuple(rng.randint(1, 3) for _ in range(rng.randint(1, min(2, size))))
    shape = tuple(rng.randint(1, 3) * 6 for _ in range(rng.randint(1, min(3, size))))
    sbp = tuple(rng.choice(["B", "P", *(f"S{d}" for d in range(len(shape)))]) for _ in grid)
    return sbp, grid, shape


def _smaller_grids(case):
    sbp, grid, shape = case
    if len(grid) > 1:
        yield from ((sbp[:i] + sbp[i + 1:], grid[:i] + grid[i + 1:], shape) for i in range(len(grid)))
    for i, k in enumerate(grid):
        if k > 2:
            yield sbp, (*grid[:i], k - 1, *grid[i + 1:]), shape
    for d in range(len(shape)):
        if (len(shape) > 1 and f"S{d}" not in sbp and not any(s[1:] and int(s[1:]) > d for s in sbp
                                                              if s[0] == "S")):
            yield sbp, grid, shape[:d] + shape[d + 1:]


def _describe_grid(case):
    sbp, grid, shape = case
    return f"{', '.join(sbp)} on a grid {grid}, shape {shape}"


@holds("each device has the part of its position", _grids, _smaller_grids, cases=150, told=_describe_grid,
       edges=[(("B",), (1,), ()), (("S0",), (3,), (2,)), (("S0", "S0"), (2, 3), (7,)),
              (("S1", "B"), (2, 2), (0, 3)),
              (("P", "S0"), (2, 2), (5,))])
def boxes(case, yours):
    sbp, grid, shape = case
    got = yours(sbp, grid, shape)
    if len(got) != len(list(itertools.product(*map(range, grid)))):
        return [f"  yours           boxes of {len(got)} devices"]
    try:
        hash(got)
    except TypeError:
        return [f"  yours           {got!r}"[:90], "  use tuples at every level: the library stores boxes "
                "in sets"]
    for i, coords in enumerate(itertools.product(*map(range, grid))):
        want = [(0, n) for n in shape]
        for s, k, c in zip(sbp, grid, coords):
            if s[0] == "S":
                a, b = want[int(s[1:])]
                each, more = divmod(b - a, k)
                start = a + c * each + min(c, more)
                want[int(s[1:])] = start, start + each + (c < more)
        if not same([tuple(b) for b in got[i]], want):
            return [f"  device {i}, at {coords} of the grid", *pair("should be", got[i], tuple(want))]
    return None
