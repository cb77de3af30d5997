"""The four primitives, and BOXING, the expression that has a route between any two layouts."""
from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterable

from flowedu.core.sbp.boxing import geometry, inops
from flowedu.core.sbp.boxing.algebra import ANY, Boxing, Primitive, Route, via
from flowedu.core.sbp.boxing.geometry import Shape, align_grids, equivalent, merge_axes, moved
from flowedu.core.sbp.sbp import Layout, boxes, find_misfit, place_of
from flowedu.core.values.place import bounds
from flowedu.core.values.spec import Spec
from flowedu.errors import layouts as errors


def _moves(src: Layout, dst: Layout, shape: Shape) -> bool:
    """Return True if the number of addends and their reducer stay the same."""
    return src.slots == dst.slots and src.reducer == dst.reducer


def _move_label(src: Layout, dst: Layout, shape: Shape) -> str:
    is_local = not moved(src, dst, shape)
    if src.devices == dst.devices:
        if is_local:
            return "slice"
        pair = align_grids(src, dst, shape)
        changed = [(a, b) for a, b in zip(pair[0].sbp, pair[1].sbp) if a != b] if pair else []
        gathers = changed and all(a[0] == "S" and b == "B" for a, b in changed)
        return "all-gather" if gathers else "all-to-all"
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
        name = "keep-all"                                  # equal parts are their own maximum
    return f"copy and {name}" if geometry.messages(src, dst, shape) else name


@functools.lru_cache(maxsize=8192)
def groups(src: Layout, dst: Layout, shape: Shape) -> tuple[tuple[int, ...], ...]:
    """Return the groups of devices of an all-reduce if all changes are P to B, else ()."""
    pair = align_grids(src, dst, shape)
    if pair is None:
        return ()
    a, b = pair
    axes = tuple(i for i, (x, y) in enumerate(zip(a.sbp, b.sbp)) if x != y)
    if not axes or any(a.sbp[i][0] != "P" or b.sbp[i] != "B" for i in axes):
        return ()
    return tuple(tuple(src.devices[i] for i in line) for line in geometry.lines(a, axes))


def _all_reduce_messages(src: Layout, dst: Layout, shape: Shape) -> dict[tuple[int, int], int]:
    """Return the messages of a reduce-scatter and an all-gather of the flattened elements."""
    elements: Counter = Counter()
    for group in groups(src, dst, shape):
        n = geometry.size(src.box(shape, src.devices.index(group[0])))
        for a, (b, (start, stop)) in itertools.product(group, zip(group, bounds(n, len(group)))):
            if a != b and stop > start:
                elements[a, b] += stop - start             # reduce-scatter: b sums its share
                elements[b, a] += stop - start             # all-gather: b sends the sum back
    return dict(sorted(elements.items()))


def _all_reduce_elements(src: Layout, dst: Layout, shape: Shape) -> int:
    """Return the elements of `_all_reduce_messages`: k devices send 2(k-1) values per element."""
    return sum(2 * (len(g) - 1) * geometry.size(src.box(shape, src.devices.index(g[0])))
               for g in groups(src, dst, shape))


_TRANSFER = (geometry.messages, moved, inops.make_transfer)
MOVE = Primitive("move", _move_label, _moves, *_TRANSFER)
REDUCE = Primitive("reduce", lambda src, dst, shape:
                   "reduce-scatter" if src.devices == dst.devices else "reduce",
                   _reduces, *_TRANSFER)
FILL = Primitive("fill", _fill_label, _fills, *_TRANSFER)
ALL_REDUCE = Primitive("all-reduce", lambda src, dst, shape: "all-reduce",
                       lambda src, dst, shape: groups(src, dst, shape) != (),
                       _all_reduce_messages, _all_reduce_elements, lambda src, dst, spec:
                       inops.make_all_reduce(src, groups(src, dst, spec.shape)))
PRIMITIVES = (MOVE, REDUCE, FILL, ALL_REDUCE)

NOTHING = Boxing(lambda src, dst, spec, limit:
                 Route(src, dst, (), spec) if equivalent(src, dst, spec.shape) else None)


def between(src: Layout, dst: Layout, spec: Spec, limit: float) -> Iterable[Layout]:
    """Return the intermediate layouts, or none if `src` is not partial or `limit` is too low."""
    return stops(src, dst, spec) if src.partial and limit > _least(src, dst, spec) else ()


def stops(src: Layout, dst: Layout, spec: Spec) -> Iterable[Layout]:
    """Yield layouts without partial sums on all devices of src or dst, or on the first device."""
    seen = set()
    for at in (src, dst):
        for hierarchy in dict.fromkeys([(at.k,), at.hierarchy]):
            for sbp in itertools.product([f"S{i}" for i in range(spec.ndim)] + ["B"],
                                         repeat=len(hierarchy)):
                middle = Layout(sbp, at.devices, hierarchy).plain
                if middle.fits(spec.shape):
                    middle = merge_axes(middle, spec.shape)
                    where = (middle.devices, boxes(middle.sbp, middle.hierarchy, spec.shape))
                    if where not in seen:
                        seen.add(where)
                        yield middle
    for at in (src, dst):
        yield Layout(("B",), at.devices[:1], (1,))


def partly(src: Layout, dst: Layout, spec: Spec, limit: float) -> Iterable[Layout]:
    """Yield intermediate layouts that are partial along some axes and split along the others."""
    if src.partial and limit > _least(src, dst, spec):
        sbps = [src.sbp[src.partial[0]], *(f"S{i}" for i in range(spec.ndim))]
        for place in dict.fromkeys((place_of(src), place_of(dst))):
            for sbp in itertools.product(sbps, repeat=len(place.hierarchy)):
                m = merge_axes(Layout(sbp, *place), spec.shape)
                if 1 < m.slots < m.k and m.fits(spec.shape) and \
                        _least(src, m, spec) + _least(m, dst, spec) < limit:
                    yield m


@functools.lru_cache(maxsize=8192)
def _least(src: Layout, dst: Layout, spec: Spec) -> int:
    """Return a lower bound of the bytes of a route: addends that must move, and copies of sums."""
    have = dict(zip(src.devices, boxes(src.sbp, src.hierarchy, spec.shape)))
    want = [(d, dst.slot(n), dst.box(spec.shape, n)) for n, d in enumerate(dst.devices)]
    kept = {(slot, geometry.overlap(have[d], box)) for d, slot, box in want if d in have}
    moving = src.slots * spec.size - sum(geometry.size(box) for _, box in kept if box is not None)
    copies = 0 if dst.partial else sum(geometry.size(box) for *_, box in want) - spec.size
    return max(0, moving + copies) * spec.dtype.bytes


DIRECT = NOTHING | MOVE.boxing | ALL_REDUCE.boxing | REDUCE.boxing | FILL.boxing
FINISHED = DIRECT | via(between, DIRECT, DIRECT)
BOXING = FINISHED | via(partly, DIRECT, FINISHED)


@functools.lru_cache(maxsize=8192)
def route(src: Layout, dst: Layout, spec: Spec) -> Route:
    """Return the cheapest route for a value of this logical Spec (the first of equals).

    Raises:
        ArgumentError: a split axis does not exist, or a split leaves a device without elements.
    """
    for at in (src, dst):
        misfit = find_misfit(at.sbp, spec.shape, at.hierarchy)
        if misfit is not None:
            raise errors.boxing_misfit(at, spec.shape, *misfit)
    return BOXING.best(src.plain, dst.plain, spec, ANY)  # type: ignore[return-value]  # no limit
