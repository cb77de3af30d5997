"""Checks of a boxing primitive: values are kept, and messages and bytes agree, for all small layouts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from flowedu.core.eager.arrays import from_numpy
from flowedu.core.sbp.boxing.algebra import Hop, Primitive
from flowedu.core.sbp.boxing.geometry import inside
from flowedu.core.sbp.sbp import REDUCERS, Layout
from flowedu.core.values.dtype import float32
from flowedu.core.values.spec import Spec
from flowedu.errors import GraphError

PLACES = (((0,), (1,)), ((0, 1), (2,)), ((1, 2, 3), (3,)), ((0, 1, 2, 3), (2, 2)))
SHAPES = ((7,), (5, 4))
REDUCE = {"sum": np.add.reduce, "max": np.maximum.reduce, "min": np.minimum.reduce}


def check_primitive(primitive: Primitive) -> None:
    """Check a primitive between all small layouts that it converts.

    Raises:
        GraphError: a rule is broken. The message has the kind of the primitive, and the two layouts.
    """
    for shape in SHAPES:
        spec, layouts = Spec(shape, float32), list(_layouts(shape))
        for src, dst in itertools.product(layouts, layouts):
            try:
                if not primitive.when(src, dst, shape):
                    continue
                fault = _find_fault(Hop(primitive, src, dst, spec))
            except Exception as e:
                fault = f"raised {type(e).__name__}", "a primitive that converts these layouts", str(e)
            if fault:
                problem, expected, got = fault
                raise GraphError(f'boxing "{primitive.kind}": {problem}', expected=expected, at="", got=got,
                                 fix=f"correct the primitive for {shape}, {src} -> {dst}; or let its `when` "
                                     f"return False")


def _layouts(shape: tuple[int, ...]) -> Iterator[Layout]:
    texts = [*(f"S{axis}" for axis in range(len(shape))), "B"]
    for devices, hierarchy in PLACES:
        partial: list[list[str]] = [[], *([p] for p in REDUCERS)]
        grids = [itertools.product([*texts, *p], repeat=len(hierarchy)) for p in partial]
        for sbp in dict.fromkeys(itertools.chain(*grids)):
            at = Layout(sbp, devices, hierarchy)
            if at.fits(shape) and at.plain == at:
                yield at


def _find_fault(hop: Hop) -> tuple[str, str, str] | None:
    """Return (problem, expected, got) of the first rule that the hop breaks, or None."""
    src, dst, shape = hop.src, hop.dst, hop.spec.shape
    devices = {*src.devices, *dst.devices}
    messages = hop.messages()
    if hop.bytes != sum(n for *_, n in messages):
        return "its bytes are not those of its messages", f"{hop.bytes} bytes", f"{messages}"
    for sender, receiver, n in messages:
        if sender == receiver or not {sender, receiver} <= devices or n <= 0:
            return "a message is not possible", f"bytes between two of {devices}", f"{sender, receiver, n}"
    rng = np.random.default_rng(0)
    x = rng.integers(-50, 50, shape).astype(np.float32)            # sums of integers are exact
    parts = hop.primitive.in_ops(src, dst, hop.spec)([from_numpy(p) for p in make_parts(x, src, rng)])
    return _find_difference(x, dst, [np.asarray(p.numpy()) for p in parts])


def make_parts(x: np.ndarray, at: Layout, rng: np.random.Generator) -> list[np.ndarray]:
    """Return the parts of x under a layout. The addends of a partial value are random."""
    if not at.partial:
        addends = [x]
    elif at.reducer == "sum":
        addends = [rng.integers(-9, 9, x.shape).astype(x.dtype) for _ in range(at.slots - 1)]
        addends.append(x - sum(addends))
    else:
        sign, owner = (-1 if at.reducer == "max" else 1), rng.integers(0, at.slots, x.shape)
        addends = [np.where(owner == n, x, x + sign * rng.integers(0, 9, x.shape)).astype(x.dtype)
                   for n in range(at.slots)]
    whole = tuple((0, n) for n in x.shape)
    return [addends[at.slot(i)][inside(at.box(x.shape, i), whole)].copy() for i in range(at.k)]


def _find_difference(x: np.ndarray, at: Layout, parts: Sequence[np.ndarray]) -> tuple[str, str, str] | None:
    """Return (problem, expected, got) if the parts are not those of x under a layout, or None."""
    shapes = [at.local_shape(x.shape, i) for i in range(at.k)]
    if [p.shape for p in parts] != shapes or any(p.dtype != x.dtype for p in parts):
        return "a part has another shape or dtype", f"{shapes} {x.dtype}", f"{[p.shape for p in parts]}"
    addends, whole = np.full((at.slots, *x.shape), np.nan, x.dtype), tuple((0, n) for n in x.shape)
    for i, part in enumerate(parts):
        place = addends[at.slot(i)][inside(at.box(x.shape, i), whole)]
        if not (np.isnan(place) | (place == part)).all():
            return "copies of an element differ", f"{place.tolist()}", f"{part.tolist()}"
        place[...] = part
    value = REDUCE[at.reducer or "sum"](addends)
    if not np.array_equal(value, x):
        return "the value changes", f"{x.tolist()}", f"{value.tolist()}"
    return None
