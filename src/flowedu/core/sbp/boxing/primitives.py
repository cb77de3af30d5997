"""The four primitives, and BOXING, the expression that has a route between any two layouts."""
from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterable

from flowedu.core.sbp.boxing import inops
from flowedu.core.sbp.boxing.algebra import ANY, Boxing, Primitive, Route, via
from flowedu.core.sbp.boxing.geometry import Shape, align_grids, equivalent, lines, merge_axes, messages, moved, size
from flowedu.core.sbp.sbp import Layout, boxes, find_misfit
from flowedu.core.values.place import bounds
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError


def _moves(src: Layout, dst: Layout, shape: Shape) -> bool:
    """Return True if the number of addends stays the same."""
    return src.slots == dst.slots and src.reducer == dst.reducer


def _move_label(src: Layout, dst: Layout, shape: Shape) -> str:
    is_local = not messages(src, dst, shape)
    if src.devices == dst.devices:
        if is_local:
            return "slice"
        pair = align_grids(src, dst, shape)
        changed = [(a, b) for a, b in zip(pair[0].sbp, pair[1].sbp) if a != b] if pair else []
        return "all-gather" if changed and all(a[0] == "S" and b == "B" for a, b in changed) else "all-to-all"
    if is_local:
        return "keep" if src.whole and dst.whole else "slice"
    return "broadcast" if src.k == 1 and dst.whole and dst.k > 1 else "copy"


def _reduces(src: Layout, dst: Layout, shape: Shape) -> bool:
    return src.slots > dst.slots and dst.reducer in (None, src.reducer)


def _fills(src: Layout, dst: Layout, shape: Shape) -> bool:
    return src.slots < dst.slots and src.reducer in (None, dst.reducer)


def _fill_label(src: Layout, dst: Layout, shape: Shape) -> str:
    name = "keep-first" if src.whole or src.partial else "pad"
    if src.whole and dst.reducer != "sum" and src.devices == dst.devices:
        name = "keep-all"                                  # the maximum of equal values
    return f"copy and {name}" if messages(src, dst, shape) else name


@functools.lru_cache(maxsize=8192)
def groups(src: Layout, dst: Layout, shape: Shape) -> tuple[tuple[int, ...], ...] | None:
    """Return the groups of devices of an all-reduce, or None if more changes than P to B."""
    pair = align_grids(src, dst, shape)
    if pair is None:
        return None
    a, b = pair
    axes = tuple(i for i, (x, y) in enumerate(zip(a.sbp, b.sbp)) if x != y)
    if not axes or any(a.sbp[i][0] != "P" or b.sbp[i] != "B" for i in axes):
        return None
    if boxes(a.sbp, a.hierarchy, shape) != boxes(b.sbp, b.hierarchy, shape):
        return None
    return tuple(tuple(src.devices[i] for i in line) for line in lines(a, axes))


def _all_reduce_messages(src: Layout, dst: Layout, shape: Shape) -> dict[tuple[int, int], int]:
    """Return the messages of a reduce-scatter and an all-gather of the flattened elements."""
    elements: Counter = Counter()
    for group in groups(src, dst, shape):
        n = size(src.box(shape, src.devices.index(group[0])))
        for a, (b, (start, stop)) in itertools.product(group, zip(group, bounds(n, len(group)))):
            if a != b and stop > start:
                elements[a, b] += stop - start             # reduce-scatter: b sums its share
                elements[b, a] += stop - start             # all-gather: b sends the sum back
    return dict(sorted(elements.items()))


def _all_reduce_elements(src: Layout, dst: Layout, shape: Shape) -> int:
    """Return the elements of `_all_reduce_messages`: k devices send 2(k-1) values per element."""
    return sum(2 * (len(g) - 1) * size(src.box(shape, src.devices.index(g[0]))) for g in groups(src, dst, shape))


def _all_reduce_in_ops(src, dst, spec):
    return inops.make_all_reduce(src, groups(src, dst, spec.shape))


_TRANSFER = (messages, moved, inops.make_transfer)
MOVE = Primitive("move", _move_label, _moves, *_TRANSFER)
REDUCE = Primitive("reduce", lambda src, dst, shape:
                   "reduce-scatter" if src.devices == dst.devices else "reduce", _reduces, *_TRANSFER)
FILL = Primitive("fill", _fill_label, _fills, *_TRANSFER)
ALL_REDUCE = Primitive("all-reduce", lambda src, dst, shape: "all-reduce",
                       lambda src, dst, shape: groups(src, dst, shape) is not None,
                       _all_reduce_messages, _all_reduce_elements, _all_reduce_in_ops)
PRIMITIVES = (MOVE, REDUCE, FILL, ALL_REDUCE)

NOTHING = Boxing(lambda src, dst, spec, limit: Route(src, dst, (), spec) if equivalent(src, dst, spec.shape) else None)


def between(src: Layout, dst: Layout, spec: Spec, limit: float) -> Iterable[Layout]:
    """Return the intermediate layouts, or none if `src` is not partial or `limit` is too low."""
    return stops(src, dst, spec) if src.partial and limit > _least(src, dst, spec) else ()


def stops(src: Layout, dst: Layout, spec: Spec) -> Iterable[Layout]:
    """Yield all layouts without partial sums on the devices of src or dst, or on the first one."""
    seen = set()
    for at in (src, dst):
        for hierarchy in dict.fromkeys([(at.k,), at.hierarchy]):
            for sbp in itertools.product([f"S{i}" for i in range(spec.ndim)] + ["B"], repeat=len(hierarchy)):
                middle = Layout(sbp, at.devices, hierarchy).plain
                if middle.fits(spec.shape):
                    middle = merge_axes(middle, spec.shape)
                    where = (middle.devices, boxes(middle.sbp, middle.hierarchy, spec.shape))
                    if where not in seen:
                        seen.add(where)
                        yield middle
    for at in (src, dst):
        yield Layout(("B",), at.devices[:1], (1,))


def _least(src: Layout, dst: Layout, spec: Spec) -> int:
    """Return a lower bound in bytes: all addends but one and all copies but one are moved."""
    if dst.partial:
        return 0
    copies = sum(map(size, boxes(dst.sbp, dst.hierarchy, spec.shape)))
    return ((src.slots - 1) * spec.size + copies - spec.size) * spec.dtype.bytes


DIRECT = NOTHING | MOVE.boxing | ALL_REDUCE.boxing | REDUCE.boxing | FILL.boxing
BOXING = DIRECT | via(between, DIRECT, DIRECT)


@functools.lru_cache(maxsize=8192)
def route(src: Layout, dst: Layout, spec: Spec) -> Route:
    """Return the cheapest route for a value of this logical Spec (the first of equals).

    Raises:
        ArgumentError: the value lacks a split axis, or a split leaves a device without elements.
    """
    for at in (src, dst):
        if not at.fits(spec.shape):
            raise _misfit_error(at, spec.shape)
    shortest = BOXING.best(merge_axes(src.plain, spec.shape), merge_axes(dst.plain, spec.shape), spec, ANY)
    return Route(src.plain, dst.plain, shortest.hops, spec)


def _misfit_error(at: Layout, shape: Shape) -> ArgumentError:
    """Return the error for the first axis that cannot be split."""
    axis, least, k = find_misfit(at.sbp, shape, at.hierarchy)
    if least is None:
        return ArgumentError(f"boxing: {at} splits axis {axis} of a value of shape {shape}", got=f"S({axis})",
                             expected=f"an axis of {len(shape)}" if shape else "B: a number cannot be split",
                             fix="B, or another axis")
    return ArgumentError(f"boxing: {at} does not suit the shape {shape}: a device would get nothing", got=str(shape),
                         expected=f"an axis of {k} or more" if len(at.sbp) == 1 else
                         f"at least {k} of axis {axis} where it is cut for {k} devices, not {least}",
                         fix="B, another axis, or fewer devices")
