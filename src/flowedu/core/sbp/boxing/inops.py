"""Hops as differentiable ops on all parts at once, for tensors and for the values of a graph.

The devices share memory, so equal parts are one value (for GPUs see cuda/ranks.py). Route.bytes
counts the bytes that a network would carry. A transfer is planned once per route.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from operator import itemgetter

import numpy as np

from flowedu.core.ops.define import REGISTRY
from flowedu.core.sbp.boxing.geometry import Box, Need, inside, transfer
from flowedu.core.sbp.sbp import Layout, shape_of
from flowedu.core.values.dtype import bool_, dtype
from flowedu.core.values.spec import Spec

COMBINE = {"sum": "add", "max": "maximum", "min": "minimum"}
Run = Callable[[Sequence], Sequence]                 # all parts before the hop -> all after it
Recipe = Callable[[Sequence], object]                # all parts -> one device's part, or a piece


def identity(reducer: str, of: dtype) -> int | float | bool:
    """Return the neutral element, such as 0 for a sum or the least value for a maximum."""
    if reducer == "sum":
        return 0
    low = reducer == "max"
    if of is bool_:
        return not low
    if of.is_floating_point:
        return -math.inf if low else math.inf
    info = np.iinfo(of.numpy)
    return int(info.min if low else info.max)


def make_transfer(src: Layout, dst: Layout, spec: Spec) -> Run:
    """Return a function that slices, reduces, and joins the parts for each device of `dst`."""
    held = {d: (n, src.box(spec.shape, n)) for n, d in enumerate(src.devices)}
    reducer = src.reducer or dst.reducer or "sum"
    recipes: dict[object, Recipe] = {}                    # devices that need the same part share it
    keys = []
    for i, (device, need) in enumerate(zip(dst.devices, transfer(src, dst, spec.shape))):
        whole = dst.box(spec.shape, i)
        pieces = [p for cell in need.cells for p in cell.pieces]
        own = len(need.cells) == len(pieces) == 1 and pieces[0].sender == device
        has = own and device in held and held[device][1] == pieces[0].box
        keys.append(held[device][0] if has else (dst.slot(i), whole))
        if keys[-1] not in recipes:
            make = itemgetter(keys[-1]) if has else make_recipe(need, whole, held, reducer, spec)
            recipes[keys[-1]] = make

    def run(parts: Sequence) -> Sequence:
        results = {key: recipe(parts) for key, recipe in recipes.items()}
        return [results[key] for key in keys]
    return run


def make_recipe(need: Need, whole: Box, held: dict, reducer: str, spec: Spec) -> Recipe:
    """Return the function that computes one device's part."""
    full = [c for c in need.cells if c.pieces]
    if not full:
        return _constant(whole, reducer, spec)
    if len(full) == 1 and len(need.cells) > 1 and reducer == "sum":
        combine = _make_combine(full[0].pieces, held, reducer)
        attrs = {"shape": shape_of(whole), **_range(full[0].box, whole)}
        return lambda parts: REGISTRY["slice_grad"](combine(parts), **attrs)
    cells = [_make_combine(c.pieces, held, reducer) if c.pieces else _constant(c.box, reducer, spec)
             for c in need.cells]
    if len(cells) == 1:
        return cells[0]
    return lambda parts: _join_grid([cell(parts) for cell in cells], need.counts, 0)


def _make_combine(pieces: tuple, held: dict, reducer: str) -> Recipe:
    cuts = [make_cut(held[p.sender][0], held[p.sender][1], p.box) for p in pieces]
    if len(cuts) == 1:
        return cuts[0]
    return lambda parts: functools.reduce(REGISTRY[COMBINE[reducer]], [c(parts) for c in cuts])


def make_cut(n: int, whole: Box, box: Box) -> Recipe:
    """Return a function that takes the elements in `box` from part n, whose box is `whole`."""
    if box == whole:
        return itemgetter(n)
    attrs = _range(box, whole)
    return lambda parts: REGISTRY["slice"](parts[n], **attrs)


def _range(box: Box, whole: Box) -> dict[str, tuple[int, ...]]:
    """Return the attributes of the op slice that takes `box` from `whole`."""
    at = inside(box, whole)
    return {"start": tuple(s.start for s in at), "stop": tuple(s.stop for s in at),
            "step": (1,) * len(at)}


def _constant(box: Box, reducer: str, spec: Spec) -> Recipe:
    attrs = {"shape": shape_of(box), "value": identity(reducer, spec.dtype), "dtype": spec.dtype}
    return lambda parts: REGISTRY["constant"](**attrs)


def _join_grid(arrays: list, counts: tuple[int, ...], axis: int) -> object:
    """Return the concatenation of a row-major grid of arrays."""
    if len(arrays) == 1:
        return arrays[0]
    step = len(arrays) // counts[axis]
    rows = [_join_grid(arrays[i:i + step], counts, axis + 1) for i in range(0, len(arrays), step)]
    return REGISTRY["concat"](*rows, axis=axis) if len(rows) > 1 else rows[0]


def make_all_reduce(src: Layout, groups: Sequence[Sequence[int]]) -> Run:
    """Return a function that reduces the parts of each group; every member gets the result."""
    number = {d: n for n, d in enumerate(src.devices)}
    members = [[number[d] for d in group] for group in groups]
    group_of = [next(g for g, group in enumerate(groups) if d in group) for d in src.devices]

    def run(parts: Sequence) -> Sequence:
        totals = [functools.reduce(REGISTRY[COMBINE[src.reducer]], [parts[n] for n in group])
                  for group in members]
        return [totals[g] for g in group_of]
    return run
