"""Boxing: from one layout to another, as an algebra.

A primitive is one collective: it knows when it applies, the bytes it moves, who sends what to whom, and how the parts it
starts from become the parts it ends with. Two ways to compose them give every other route: `a | b`, whichever moves
fewer bytes (the first of equals), and `via(middle, a, b)`, a to a layout in between and b from there.

    from \\ to   B               S(j)                  P              k devices, n bytes of the logical value
    B           0               0 slice               0 keep-first
    S(i)        (k-1)n          n minus what is       0 pad
                all-gather      in place  all-to-all
    P           2(k-1)n         (k-1)n                0
                all-reduce      reduce-scatter

`run` is written in ops, so it works on whatever the interpreter in charge works on: values of a graph, tensors. Devices
share memory here, so parts that are equal on all devices are one value; the bytes are those a network would carry.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from flowedu.blob.spec import Spec
from flowedu.dist.sbp import Layout, bounds, check_sbp, fits, ids, pretty
from flowedu.errors import ArgumentError
from flowedu.ops.define import REGISTRY

Message = tuple[int, int, int]       # from device, to device, bytes


class Hop(NamedTuple):
    """One primitive between two layouts."""

    primitive: Primitive
    src: Layout
    dst: Layout
    spec: Spec

    @property
    def bytes(self) -> int:
        return self.primitive.bytes(self.src, self.dst, self.spec)

    def messages(self) -> list[Message]:
        found = self.primitive.messages(self.src, self.dst, self.spec)
        return [(a, b, n) for a, b, n in found if a != b and n]

    def __str__(self) -> str:
        on = ids(self.src.devices) if self.src.devices == self.dst.devices else \
            f"{ids(self.src.devices)} to {ids(self.dst.devices)}"
        return f"{pretty(self.src.sbp)} -> {pretty(self.dst.sbp)} on {on}: {self.primitive.name}, {self.bytes} bytes"


class Route(NamedTuple):
    """Hops, one after the other. None: the value is there already."""

    src: Layout
    dst: Layout
    hops: tuple[Hop, ...]

    @property
    def bytes(self) -> int:
        return sum(h.bytes for h in self.hops)

    @property
    def name(self) -> str:
        return ", ".join(h.primitive.name for h in self.hops) or "nothing"

    def messages(self) -> list[Message]:
        """(from device, to device, bytes), in the order of the hops."""
        return [m for h in self.hops for m in h.messages()]

    def run(self, parts: Sequence) -> tuple:
        """The parts, one per device of `dst`, made from those of `src`."""
        parts = tuple(parts)
        for h in self.hops:
            parts = tuple(h.primitive.run(parts, h.src, h.dst, h.spec))
        return parts

    def describe(self) -> str:
        """Path, bytes, and who sends what to whom."""
        lines = [f"{self.src} -> {self.dst}: {self.name}, {self.bytes} bytes"]
        for h in self.hops:
            lines.append(f"  {h}")
            for sender, sent in groupby(sorted(h.messages()), key=lambda m: m[0]):
                lines.append(f"    device {sender} sends " + ", ".join(f"{n} to {to}" for _, to, n in sent))
        return "\n".join(lines)


class Boxing:
    """An expression of the algebra. `routes(src, dst, spec)`: the route it offers, or none."""

    def __init__(self, routes: Callable[[Layout, Layout, Spec], Iterable[Route]]):
        self.routes = routes

    def __or__(self, other: Boxing) -> Boxing:
        def either(src, dst, spec):
            found = [*self.routes(src, dst, spec), *other.routes(src, dst, spec)]
            return [min(found, key=lambda r: r.bytes)] if found else []
        return Boxing(either)


def via(middle: Callable[[Layout, Layout, Spec], Iterable[Layout]], first: Boxing, second: Boxing) -> Boxing:
    """`first` to one of the layouts `middle` offers, the cheapest, then `second`."""
    def through(src, dst, spec):
        found = [Route(src, dst, a.hops + b.hops) for m in middle(src, dst, spec)
                 for a in first.routes(src, m, spec) for b in second.routes(m, dst, spec)]
        return [min(found, key=lambda r: r.bytes)] if found else []
    return Boxing(through)


@dataclass(frozen=True)
class Primitive:
    """One collective. Functions of (src, dst[, spec]); `run` gets the parts first."""

    name: str
    when: Callable[[Layout, Layout], bool]
    bytes: Callable[[Layout, Layout, Spec], int]
    messages: Callable[[Layout, Layout, Spec], list[Message]]
    run: Callable[[tuple, Layout, Layout, Spec], Sequence]

    @property
    def boxing(self) -> Boxing:
        return Boxing(lambda src, dst, spec: [Route(src, dst, (Hop(self, src, dst, spec),))] if self.when(src, dst) else [])


# ---- who has what of a value that is whole or split, and who needs it
def _overlap(a, b) -> tuple[tuple[int, int], ...]:
    return tuple((max(i, k), max(i, k, min(j, m))) for (i, j), (k, m) in zip(a, b))


def _size(box) -> int:
    n = 1
    for a, b in box:
        n *= b - a
    return n


def _moves(src: Layout, dst: Layout, spec: Spec) -> list[Message]:
    """Every device gets what it lacks; of a whole value, from one that has it."""
    found = []
    for i, to in enumerate(dst.devices):
        need = dst.box(spec.shape, i)
        if src.sbp == "B":
            sender = to if to in src.devices else src.devices[i % src.k]
            found.append((sender, to, _size(need) * spec.dtype.bytes))
        else:
            found += [(d, to, _size(_overlap(src.box(spec.shape, j), need)) * spec.dtype.bytes)
                      for j, d in enumerate(src.devices)]
    return found


def _moved(src: Layout, dst: Layout, spec: Spec) -> int:
    return sum(n for a, b, n in _moves(src, dst, spec) if a != b)


def _cut(x, box):
    """The part of `x` in `box`."""
    if all(b - a == n for (a, b), n in zip(box, x.shape)):
        return x
    return REGISTRY["slice"](x, start=tuple(a for a, _ in box), stop=tuple(b for _, b in box), step=(1,) * len(box))


def _assemble(parts: tuple, src: Layout, dst: Layout, spec: Spec) -> Sequence:
    """What each device of `dst` needs, cut out of the parts and put together."""
    def piece(i):
        need = dst.box(spec.shape, i)
        if src.sbp == "B":
            return _cut(parts[i % src.k], need)
        found = []
        for j, x in enumerate(parts):
            at = src.box(spec.shape, j)[src.axis][0]
            box = _overlap(src.box(spec.shape, j), need)
            if box[src.axis][0] < box[src.axis][1]:
                found.append(_cut(x, [(a - at, b - at) if d == src.axis else (a, b) for d, (a, b) in enumerate(box)]))
        return REGISTRY["concat"](*found, axis=src.axis) if len(found) > 1 else found[0]

    if dst.sbp == "B" and src.axis is not None:
        return (piece(0),) * dst.k
    return [piece(i) for i in range(dst.k)]


# ---- sums
def _total(xs):
    return functools.reduce(REGISTRY["add"], xs)


def _scattered(src: Layout, dst: Layout, spec: Spec) -> list[Message]:
    """Everybody sends everybody the part that one is to sum."""
    return [(a, b, _size(dst.box(spec.shape, i)) * spec.dtype.bytes)
            for i, b in enumerate(dst.devices) for a in src.devices]


def _reduced(src: Layout, dst: Layout, spec: Spec) -> list[Message]:
    """Reduce-scatter, then all-gather, of the elements in a row."""
    chunk = [(b - a) * spec.dtype.bytes for a, b in bounds(spec.size, src.k)]
    pairs = [(i, j) for i in range(src.k) for j in range(src.k)]
    return [(src.devices[i], src.devices[j], chunk[j]) for i, j in pairs] + [
        (src.devices[i], src.devices[j], chunk[i]) for i, j in pairs]


# ---- into partial sums
def _zeros(spec: Spec):
    return REGISTRY["constant"](shape=spec.shape, value=0, dtype=spec.dtype)


def _pad(parts: tuple, src: Layout, dst: Layout, spec: Spec) -> Sequence:
    boxes = [src.box(spec.shape, i) for i in range(src.k)]
    return [REGISTRY["slice_grad"](x, shape=spec.shape, start=tuple(a for a, _ in box), stop=tuple(b for _, b in box),
                                   step=(1,) * len(box)) for x, box in zip(parts, boxes)]


def _here(a: str, b: str) -> Callable[[Layout, Layout], bool]:
    """On one row of devices, from an SBP that starts with `a` to one that starts with `b`."""
    return lambda src, dst: src.devices == dst.devices and src.sbp[0] == a and dst.sbp[0] == b


def _elsewhere(src: Layout, dst: Layout) -> bool:
    if src.devices == dst.devices:
        return False
    return (src.sbp == dst.sbp == "P" and src.k == dst.k) or (src.sbp != "P" and dst.sbp != "P")


_none = lambda src, dst, spec: 0
_nobody = lambda src, dst, spec: []
_others = lambda times: lambda src, dst, spec: times * (src.k - 1) * spec.nbytes

SLICE = Primitive("slice", _here("B", "S"), _none, _nobody, _assemble)
ALL_GATHER = Primitive("all-gather", _here("S", "B"), _others(1), _moves, _assemble)
ALL_TO_ALL = Primitive("all-to-all", lambda src, dst: _here("S", "S")(src, dst) and src.sbp != dst.sbp, _moved, _moves,
                       _assemble)
REDUCE_SCATTER = Primitive("reduce-scatter", _here("P", "S"), _others(1), _scattered, lambda parts, src, dst, spec: [
    _total([_cut(x, dst.box(spec.shape, i)) for x in parts]) for i in range(dst.k)])
ALL_REDUCE = Primitive("all-reduce", _here("P", "B"), _others(2), _reduced,
                       lambda parts, src, dst, spec: (_total(parts),) * dst.k)
KEEP_FIRST = Primitive("keep-first", lambda src, dst: src.sbp == "B" and dst.sbp == "P" and dst.devices[0] in src.devices,
                       _none, _nobody, lambda parts, src, dst, spec: (parts[0],) + (_zeros(spec),) * (dst.k - 1))
PAD = Primitive("pad", _here("S", "P"), _none, _nobody, _pad)
COPY = Primitive("copy", _elsewhere,
                 lambda src, dst, spec: sum(n for a, b, n in COPY.messages(src, dst, spec) if a != b),
                 lambda src, dst, spec: _moves(src, dst, spec) if src.sbp != "P" else
                 [(a, b, spec.nbytes) for a, b in zip(src.devices, dst.devices)],
                 lambda parts, src, dst, spec: parts if src.sbp == "P" else _assemble(parts, src, dst, spec))
PRIMITIVES = (SLICE, ALL_GATHER, ALL_TO_ALL, REDUCE_SCATTER, ALL_REDUCE, KEEP_FIRST, PAD, COPY)

NOTHING = Boxing(lambda src, dst, spec: [Route(src, dst, ())] if src == dst else [])


def _summed(src: Layout, dst: Layout, spec: Spec) -> Iterable[Layout]:
    """Where a partial sum may be summed before it leaves its devices."""
    if src.sbp == "P":
        for sbp in [f"S{i}" for i in range(spec.ndim)] + ["B"]:
            if fits(sbp, spec.shape, src.k):
                yield Layout(sbp, src.devices)


def _on_first(src: Layout, dst: Layout, spec: Spec) -> Iterable[Layout]:
    """The first device of a partial sum gets all of it."""
    if dst.sbp == "P":
        yield Layout("B", dst.devices[:1])


COLLECTIVE = NOTHING | functools.reduce(Boxing.__or__, [p.boxing for p in PRIMITIVES[:-1]])
REACH = COLLECTIVE | COPY.boxing | via(_summed, COLLECTIVE, COPY.boxing)     # all but some ways into a partial sum
BOXING = REACH | via(_on_first, REACH, KEEP_FIRST.boxing)


@functools.lru_cache(maxsize=4096)
def route(src: Layout, dst: Layout, spec: Spec) -> Route:
    """The cheapest route for a value of this logical Spec. Raises ArgumentError for a split that leaves a device empty."""
    for layout in (src, dst):
        check_sbp(layout.sbp, "boxing")
        if not fits(layout.sbp, spec.shape, layout.k):
            raise ArgumentError(f"boxing: {layout} does not suit the shape {spec.shape}",
                                expected=f"an axis of {layout.k} or more", got=pretty(layout.sbp), fix="B, or another axis")
    return BOXING.routes(src.plain, dst.plain, spec)[0]
