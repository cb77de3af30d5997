"""Boxing algebra: primitives (collectives between two layouts), combined by `|` and `via`.

`a | b` takes the route that moves fewer bytes (`a` if they are equal). `via(middle, a, b)` takes
`a` to an intermediate layout, then `b`. The search prunes routes above a limit of bytes.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from flowedu.core import extensions
from flowedu.core.sbp.boxing.geometry import Shape
from flowedu.core.sbp.sbp import Layout
from flowedu.core.values.spec import Spec

Message = tuple[int, int, int]       # from device, to device, bytes
ANY = math.inf                       # no limit


@dataclass(frozen=True)
class Primitive:
    """One collective.

    `label` returns its name, and `when` is True for layouts that it can convert. `messages` returns
    {(from, to): elements}, and `elements` their sum. `in_ops` returns a function that runs the hop
    on all parts by ops. distributed/perform.py has the code that runs on one rank.
    """

    kind: str
    label: Callable[[Layout, Layout, Shape], str]
    when: Callable[[Layout, Layout, Shape], bool]
    messages: Callable[[Layout, Layout, Shape], dict[tuple[int, int], int]]
    elements: Callable[[Layout, Layout, Shape], int]
    in_ops: Callable[[Layout, Layout, Spec], Callable[[Sequence], Sequence]]

    @property
    def boxing(self) -> Boxing:
        def best(src: Layout, dst: Layout, spec: Spec, limit: float) -> Route | None:
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
        """Return (from device, to device, bytes) tuples, sorted by device."""
        elements = self.primitive.messages(self.src, self.dst, self.spec.shape)
        return [(a, b, n * self.spec.dtype.bytes) for (a, b), n in elements.items()]

    def __str__(self) -> str:
        return (extensions.hop_text or repr)(self)


@dataclass(frozen=True)
class Route:
    """A sequence of hops, which is empty if the value already has the target layout."""

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
        """Return (from device, to device, bytes) tuples, in the order of the hops."""
        return [m for h in self.hops for m in h.messages()]

    def run(self, parts: Sequence) -> tuple:
        """Return the parts under `dst`, computed by ops. Results may share memory."""
        for run in self._runs:
            parts = run(parts)
        return tuple(parts)

    @functools.cached_property
    def _runs(self) -> list[Callable[[Sequence], Sequence]]:
        """One function parts -> parts for each hop, built on first use."""
        if not self.hops and self.src.devices != self.dst.devices:
            order = [self.src.devices.index(d) for d in self.dst.devices]
            return [lambda parts: [parts[n] for n in order]]
        return [h.primitive.in_ops(h.src, h.dst, h.spec) for h in self.hops]

    def perform(self, comm: Any, part: np.ndarray | None, what: str = "") -> np.ndarray | None:
        """Run the route on this rank and return its part under `dst` (None if it has no part).

        Every rank of both layouts calls this. Only an empty route returns the memory of `part`.

        Args:
            comm: this rank's communicator (core/sbp/ranks.py).
            part: an array of the rank's shape and dtype under `src`, or None if it has no part.
            what: a description for the communicator's error messages.
        """
        return comm.box(self, part, what)

    @functools.cached_property
    def programs(self) -> dict[int, list[Callable]]:
        """{rank: one function for each hop}, a cache that the engine fills."""
        return {}

    @functools.cached_property
    def title(self) -> str:
        return f"boxing {self.src} -> {self.dst}"

    def describe(self) -> str:
        """Return the hops, the bytes, and all messages (sender, receiver, bytes) as text."""
        return extensions.route_text(self)

    def draw(self, path: str | PathLike | None = None) -> str:
        """Return an SVG drawing of the blocks on each device, and write it to `path` if given."""
        return extensions.draw_route(self, path)


class Boxing:
    """A boxing expression. `best(src, dst, spec, limit)` returns a Route below `limit`, or None."""

    def __init__(self, best: Callable[[Layout, Layout, Spec, float], Route | None]):
        self.best = best

    def __or__(self, other: Boxing) -> Boxing:
        def either(src: Layout, dst: Layout, spec: Spec, limit: float) -> Route | None:
            one = self.best(src, dst, spec, limit)
            return other.best(src, dst, spec, limit if one is None else one.bytes) or one
        return Boxing(either)


def via(middle: Callable[[Layout, Layout, Spec, float], Iterable[Layout]], first: Boxing,
        second: Boxing) -> Boxing:
    """Return the expression that takes `first` to the cheapest `middle` layout, then `second`."""
    def through(src: Layout, dst: Layout, spec: Spec, limit: float) -> Route | None:
        best = None
        for m in middle(src, dst, spec, limit):
            a = first.best(src, m, spec, limit)
            b = None if a is None else second.best(m, dst, spec, limit - a.bytes)
            if a is not None and b is not None:
                best = Route(src, dst, a.hops + b.hops, spec)
                limit = best.bytes
        return best
    return Boxing(through)
