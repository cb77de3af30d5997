"""The algebra: a primitive is one collective between two layouts; routes are made of them by "or" and "via".

`a | b` is whichever moves fewer bytes, the first of equals. `via(middle, a, b)` is a to a layout in between and b from
there. An expression is asked for a route below a limit of bytes, so a route that is already too dear is not pursued.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from flowedu.core.extensions import extension
from flowedu.core.sbp.boxing.geometry import Shape
from flowedu.core.sbp.sbp import Layout
from flowedu.core.values.spec import Spec

Message = tuple[int, int, int]       # from device, to device, bytes


@dataclass(frozen=True)
class Primitive:
    """One collective.

    Attributes: label, what it is called between two layouts; when, whether it applies; messages, {(from, to): elements};
    elements, how many those are, found without them; in_ops(src, dst, spec), in ops, on all parts: a function parts ->
    parts. (One rank's half, over a communicator: distributed/perform.py.)
    """

    kind: str
    label: Callable[[Layout, Layout, Shape], str]
    when: Callable[[Layout, Layout, Shape], bool]
    messages: Callable[[Layout, Layout, Shape], dict[tuple[int, int], int]]
    elements: Callable[[Layout, Layout, Shape], int]
    in_ops: Callable[[Layout, Layout, Spec], Callable[[Sequence], Sequence]]

    @property
    def boxing(self) -> Boxing:
        def best(src, dst, spec, limit):
            if not self.when(src, dst, spec.shape):
                return None
            r = Route(src, dst, (Hop(self, src, dst, spec),), spec)
            return r if r.bytes < limit else None
        return Boxing(best)


@dataclass(frozen=True)
class Hop:
    """One primitive between two layouts."""

    primitive: Primitive
    src: Layout
    dst: Layout
    spec: Spec

    @functools.cached_property
    def name(self) -> str:
        return self.primitive.label(self.src, self.dst, self.spec.shape)

    @functools.cached_property
    def bytes(self) -> int:
        return self.primitive.elements(self.src, self.dst, self.spec.shape) * self.spec.dtype.bytes

    def messages(self) -> list[Message]:
        """(from device, to device, bytes), in order of the devices."""
        found = self.primitive.messages(self.src, self.dst, self.spec.shape)
        return [(a, b, n * self.spec.dtype.bytes) for (a, b), n in found.items()]

    def __str__(self) -> str:
        return extension("hop as text", otherwise=repr)(self)


@dataclass(frozen=True)
class Route:
    """Hops, one after the other. Empty: the value is already in the target layout."""

    src: Layout
    dst: Layout
    hops: tuple[Hop, ...]
    spec: Spec

    @functools.cached_property
    def bytes(self) -> int:
        return sum(h.bytes for h in self.hops)

    @property
    def name(self) -> str:
        return ", ".join(h.name for h in self.hops) or "nothing"

    def messages(self) -> list[Message]:
        """(from device, to device, bytes), in the order of the hops."""
        return [m for h in self.hops for m in h.messages()]

    def run(self, parts: Sequence) -> tuple:
        """The parts, one per device of `dst`, made from those of `src`, in ops: values of a graph, or tensors. Devices
        share memory here: parts that are equal may be one value, and a part of a part may be a view of it."""
        for run in self._runs:
            parts = run(parts)
        return tuple(parts)

    @functools.cached_property
    def _runs(self) -> list[Callable[[Sequence], Sequence]]:
        """What each hop does to all parts, worked out when it is first asked for."""
        if not self.hops and self.src.devices != self.dst.devices:
            order = [self.src.devices.index(d) for d in self.dst.devices]
            return [lambda parts: [parts[n] for n in order]]
        return [h.primitive.in_ops(h.src, h.dst, h.spec) for h in self.hops]

    def perform(self, comm, part: np.ndarray | None, what: str = "") -> np.ndarray | None:
        """Run the route on this rank: its part at the end (None: it has none there) from its part at the start.

        Every rank of both ends calls this. The result is contiguous, and shares no memory with `part` unless there is
        nothing to do.

        Args:
            comm: this rank's end of a communicator (sbp/ranks).
            part: an array of the shape and dtype that this rank has under `src`; None where it has nothing.
            what: a few words for the communicator's messages.
        """
        return comm.box(self, part, what)

    @functools.cached_property
    def programs(self) -> dict[int, list[Callable]]:
        """{rank: what it does for each hop}, as its engine keeps it."""
        return {}

    @functools.cached_property
    def what(self) -> str:
        return f"boxing {self.src} -> {self.dst}"

    def describe(self) -> str:
        """Path, bytes, and all messages: sender, receiver, bytes."""
        return extension("route as text")(self)

    def draw(self, path=None) -> str:
        """The route as a picture: the blocks on each device before, between and after the hops. SVG text, which is also
        written to `path` when one is given."""
        return extension("route as a picture")(self, path)


class Boxing:
    """An expression of the algebra. `best(src, dst, spec, limit)`: the route it offers below `limit` bytes, or None."""

    def __init__(self, best: Callable[[Layout, Layout, Spec, float], Route | None]):
        self.best = best

    def __or__(self, other: Boxing) -> Boxing:
        def either(src, dst, spec, limit):
            one = self.best(src, dst, spec, limit)
            return other.best(src, dst, spec, limit if one is None else one.bytes) or one
        return Boxing(either)


def via(middle: Callable[[Layout, Layout, Spec, float], Iterable[Layout]], first: Boxing, second: Boxing) -> Boxing:
    """`first` to one of the layouts that `middle` offers, the cheapest, then `second`."""
    def through(src, dst, spec, limit):
        best = None
        for m in middle(src, dst, spec, limit):
            a = first.best(src, m, spec, limit)
            b = None if a is None else second.best(m, dst, spec, limit - a.bytes)
            if b is not None:
                best = Route(src, dst, a.hops + b.hops, spec)
                limit = best.bytes
        return best
    return Boxing(through)


ANY = math.inf          # the limit that is none
