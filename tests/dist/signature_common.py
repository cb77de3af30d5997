"""Helpers for the signature tests: calls of the registry, and an independent scatter and gather on a grid."""
import random

import numpy as np

import flowedu as flow
from flowedu.core.sbp.choose import choose
from flowedu.core.sbp.sbp import layout
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec
from laws.calls import attributes, cases, draw_arrays, resized

CALLS = cases(lambda op: op.ref is not None and not op.mutates and not op.random)
JOIN = {"P": np.add.reduce, "Pmax": np.maximum.reduce, "Pmin": np.minimum.reduce}


def sizes(op, example):
    """Return the example, and with splittable axes of 5 instead of 6, which split unevenly."""
    other = resized(op, example, lambda c, n: n - 1 if n > 3 else n)
    return [example] if other == example else [example, other]


def arrays_of(op, example, seed=0):
    """Return (arrays, attributes) of a call in float64."""
    rng = np.random.default_rng(seed)
    arrays = draw_arrays(op, example, np.float64, rng)
    return arrays, tuple(flow.float64 if a is flow.float32 else a for a in attributes(op, example))


def specs_of(arrays):
    return tuple(Spec(a.shape, as_dtype(a.dtype)) for a in arrays)


def scatter(x, sbps, hierarchy, rng) -> list:
    """Return the part of x on each device of the grid, row-major."""
    if not hierarchy:
        return [x]
    s, k = sbps[0], hierarchy[0]
    if s == "B":
        parts = [x] * k
    elif s[0] == "S":
        parts = np.array_split(x, k, axis=int(s[1:]))
    elif s == "P":
        parts = [4 * rng.standard_normal(x.shape).astype(x.dtype) for _ in range(k - 1)]
        parts.append(x - sum(parts))
    else:  # one device has the value, the others are far beyond it
        owner, sign = rng.integers(0, k, x.shape), -1 if s == "Pmax" else 1
        parts = [np.where(owner == i, x, x + sign * rng.random(x.shape)).astype(x.dtype) for i in range(k)]
    return [p for part in parts for p in scatter(part, sbps[1:], hierarchy[1:], rng)]


def gather(parts, sbps, hierarchy) -> np.ndarray:
    """Assemble the value from its parts. Copies must be equal."""
    if not hierarchy:
        return parts[0]
    s, k = sbps[0], hierarchy[0]
    each = len(parts) // k
    mine = [gather(parts[i * each:(i + 1) * each], sbps[1:], hierarchy[1:]) for i in range(k)]
    if s == "B":
        for other in mine[1:]:
            np.testing.assert_allclose(other, mine[0], atol=1e-9)
        return mine[0]
    return np.concatenate(mine, axis=int(s[1:])) if s[0] == "S" else JOIN[s](mine)


def drawable(arrays, signature) -> bool:
    """Return False for partial indices and masks, whose sums and maxima have no meaning."""
    return all(a.dtype.kind == "f" or not any(s[0] == "P" for s in sbps)
               for a, sbps in zip(arrays, signature))


def layouts_of(signature, hierarchy):
    n = int(np.prod(hierarchy))
    return [layout(s, range(n), hierarchy) for s in signature]


def sample_items(items, most, seed):
    """Return at most this many of them."""
    items = list(items)
    return items if len(items) <= most else random.Random(seed).sample(items, most)


def refuse(op, specs, attrs, layouts, name="", line=""):
    """Return the Choice for the given input layouts without boxing. Raise JobBuildAndInferError, with the
    legal partners, if it does not exist.
    """
    at = layouts[0]
    return choose(op, specs, attrs, [(x,) for x in layouts], at.devices, at.hierarchy, name=name, line=line,
                  strict=True)
