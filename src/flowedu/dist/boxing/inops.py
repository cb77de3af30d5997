"""A hop in ops, on all parts at once: it works on whatever the interpreter in charge works on, values of a graph or
tensors, and is differentiable where they are. Devices share memory here, so parts that are equal on several devices are one
value; the bytes a route tells are those a network would carry.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from flowedu.blob.dtype import bool_, dtype
from flowedu.blob.spec import Spec
from flowedu.dist.boxing.geometry import Box, Need, inside, shape_of, transfer
from flowedu.dist.sbp import Layout
from flowedu.ops.define import REGISTRY

COMBINE = {"sum": "add", "max": "maximum", "min": "minimum"}


def identity(reducer: str, of: dtype) -> int | float | bool:
    """What changes nothing: 0 for a sum, the least number for a maximum."""
    if reducer == "sum":
        return 0
    low = reducer == "max"
    if of is bool_:
        return not low
    if of.is_floating_point:
        return -math.inf if low else math.inf
    info = np.iinfo(of.numpy)
    return int(info.min if low else info.max)


def transferred(parts: tuple, src: Layout, dst: Layout, spec: Spec) -> Sequence:
    """What each device of `dst` needs, cut out of the parts, combined and put together."""
    held = {d: (x, src.box(spec.shape, i)) for i, (d, x) in enumerate(zip(src.devices, parts))}
    reducer = src.reducer or dst.reducer or "sum"
    made, out = {}, []
    for i, (device, need) in enumerate(zip(dst.devices, transfer(src, dst, spec.shape))):
        whole = dst.box(spec.shape, i)
        pieces = [p for cell in need.cells for p in cell.pieces]
        if len(need.cells) == len(pieces) == 1 and device in held and pieces[0].sender == device and \
                held[device][1] == pieces[0].box:
            out.append(held[device][0])                    # it has exactly that
            continue
        key = (dst.slot(i), whole)
        if key not in made:
            made[key] = _assembled(need, whole, held, reducer, spec)
        out.append(made[key])
    return out


def _assembled(need: Need, whole: Box, held: dict, reducer: str, spec: Spec):
    """One device's part."""
    full = [c for c in need.cells if c.pieces]
    if not full:
        return _constant(whole, reducer, spec)
    if len(full) == 1 and len(need.cells) > 1 and reducer == "sum":
        at = inside(full[0].box, whole)
        return REGISTRY["slice_grad"](_combined(full[0].pieces, held, reducer), shape=shape_of(whole),
                                      start=tuple(s.start for s in at), stop=tuple(s.stop for s in at), step=(1,) * len(at))
    arrays = [_combined(c.pieces, held, reducer) if c.pieces else _constant(c.box, reducer, spec) for c in need.cells]
    return _joined(arrays, need.counts, 0)


def _combined(pieces, held: dict, reducer: str):
    return functools.reduce(REGISTRY[COMBINE[reducer]], [_cut(*held[p.sender], p.box) for p in pieces])


def _cut(x, whole: Box, box: Box):
    """The part of `x`, which holds `whole`, in `box`."""
    if box == whole:
        return x
    at = inside(box, whole)
    return REGISTRY["slice"](x, start=tuple(s.start for s in at), stop=tuple(s.stop for s in at), step=(1,) * len(at))


def _constant(box: Box, reducer: str, spec: Spec):
    return REGISTRY["constant"](shape=shape_of(box), value=identity(reducer, spec.dtype), dtype=spec.dtype)


def _joined(arrays: list, counts: tuple[int, ...], axis: int):
    """A grid of arrays, row-major, as one."""
    if axis == len(counts):
        return arrays[0]
    step = len(arrays) // counts[axis]
    rows = [_joined(arrays[i:i + step], counts, axis + 1) for i in range(0, len(arrays), step)]
    return REGISTRY["concat"](*rows, axis=axis) if len(rows) > 1 else rows[0]


def all_reduced(parts: tuple, src: Layout, groups: Sequence[Sequence[int]]) -> Sequence:
    """Every device of a group gets what makes one value of all their parts."""
    held, made = dict(zip(src.devices, parts)), {}
    for group in groups:
        total = functools.reduce(REGISTRY[COMBINE[src.reducer]], [held[d] for d in group])
        made.update(dict.fromkeys(group, total))
    return [made[d] for d in src.devices]
