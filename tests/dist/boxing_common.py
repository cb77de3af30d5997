"""Helpers for the boxing tests: layouts to try, and an independent scatter and gather."""
import itertools
import math

import numpy as np
from hypothesis import strategies as st

from flowedu.core.sbp.sbp import layout

PLACES = [((0,), (1,)), ((3,), (1,)), ((0, 1), (2,)), ((2, 0), (2,)), ((1, 2, 3), (3,)), ((0, 1, 2, 3), (4,)),
          ((0, 1, 2, 3), (2, 2)), ((1, 2, 4, 5), (2, 2)), ((4, 5), (1, 2)), ((0, 1, 2, 3, 4, 5), (2, 3))]
REDUCE = {"P": np.add.reduce, "Pmax": np.maximum.reduce, "Pmin": np.minimum.reduce}


def layouts(shape, devices, hierarchy, partial=("P", "Pmax", "Pmin")):
    """Return every legal layout of a value of this shape on the devices."""
    found = []
    for kind in partial or ("B",):
        texts = ["B", *(f"S{i}" for i in range(len(shape))), *([kind] if partial else [])]
        found += [layout(s, devices, hierarchy) for s in itertools.product(texts, repeat=len(hierarchy))]
    return [x for x in dict.fromkeys(found) if x.fits(shape)]


@st.composite
def layout_pairs(draw, places=PLACES):
    """Draw (shape, source, target): 0 to 3 axes, uneven sizes, and device sets that are equal, disjoint, or
    overlapping.
    """
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4, 5, 6, 7, 9]), min_size=0, max_size=3)))
    src, dst = (draw(st.sampled_from(layouts(shape, *draw(st.sampled_from(places))))) for _ in range(2))
    return shape, src, dst


def scatter(x, at, rng):
    """Split x into the parts of a layout with NumPy, one grid axis after another."""
    def cut(x, sbp, hierarchy):
        if not sbp:
            return [x]
        s, k = sbp[0], hierarchy[0]
        if s == "B" or k == 1:
            pieces = [x] * k
        elif s == "P":
            some = [rng.integers(-9, 9, x.shape).astype(x.dtype) for _ in range(k - 1)]
            pieces = [*some, x - sum(some)]
        elif s[0] == "P":
            sign, first = (-1 if s == "Pmax" else 1), rng.integers(0, k, x.shape)
            pieces = [np.where(first == i, x, x + (sign * rng.integers(0, 9, x.shape)).astype(x.dtype))
                      for i in range(k)]
        else:
            pieces = np.array_split(x, k, axis=int(s[1:]))
        return [q for p in pieces for q in cut(p, sbp[1:], hierarchy[1:])]

    def addends(x, sbp, hierarchy):
        """Partial axes come first: along the other axes, all devices must get parts of the same addend."""
        order = sorted(range(len(sbp)), key=lambda a: sbp[a][0] != "P")
        flat = cut(x, [sbp[a] for a in order], [hierarchy[a] for a in order])
        grid = np.empty([hierarchy[a] for a in order], object)
        for at, p in zip(np.ndindex(grid.shape), flat):
            grid[at] = p
        return list(grid.transpose(np.argsort(order)).ravel())

    return addends(x, at.sbp, at.hierarchy)


def gather(parts, at):
    """Assemble the value from its parts; copies must be equal."""
    if not at.sbp:
        return parts[0]
    k, s = at.hierarchy[-1], at.sbp[-1]
    joined = []
    for i in range(0, len(parts), k):
        line = parts[i:i + k]
        if s == "B" or k == 1:
            for p in line:
                np.testing.assert_array_equal(p, line[0])
            joined.append(line[0])
        elif s[0] == "P":
            joined.append(REDUCE[s](line))
        else:
            joined.append(np.concatenate(line, axis=int(s[1:])))
    return gather(joined, at._replace(sbp=at.sbp[:-1], hierarchy=at.hierarchy[:-1]))


def draw_integers(shape, dtype, seed=0):
    """Draw integers, whose sums are exact in any order."""
    return np.random.default_rng(seed).integers(-50, 50, shape).astype(dtype)


def bound(shape, src, dst, itemsize):
    """Return the most bytes that a route may move: by the specification's table on one row of devices,
    otherwise by a simple route through a whole value on every device.
    """
    n, src, dst = math.prod(shape) * itemsize, src.plain, dst.plain
    if src == dst:
        return 0
    if src.devices == dst.devices and len(src.sbp) == len(dst.sbp) == 1:
        a, b, k = src.sbp[0], dst.sbp[0], src.k
        if a == "B" or (a[0] == "S" and b[0] == "P"):
            return 0
        if a[0] == "P" and b[0] == "P":
            return (k - 1) * n
        if a[0] == "S" and b[0] == "S":
            return sum(math.prod(min(q, y) - max(p, x) if min(q, y) > max(p, x) else 0
                                 for (p, q), (x, y) in zip(f, g))
                       * itemsize for i in range(k) for j in range(k) if i != j
                       for f, g in [(src.box(shape, i), dst.box(shape, j))])
        return 2 * (k - 1) * n if (a[0], b) == ("P", "B") else (k - 1) * n
    gathered = n * src.slots                                 # every addend to one device
    return gathered + (dst.k - (dst.devices[0] in src.devices)) * n + n
