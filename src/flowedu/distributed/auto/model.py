"""Model of the layout choice of a graph: unknowns, and the communication cost of every value.

An unknown is a node, or a variable or input with a free layout. The options of a node are its signatures
(candidates.py). The options of a variable or input are its possible layouts. Every value has one cost, which
depends on the layout from its producer and on the layouts that its consumers need, in order. As in
distributed/graph/infer.py, a value is converted to a layout once, and later consumers reuse the result.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.ops import axes
from flowedu.core.ops.define import Op
from flowedu.core.sbp.candidates import GridSignature, Way, ways
from flowedu.core.sbp.choose import cheapest, is_present
from flowedu.core.sbp.sbp import Layout, layout, place_of
from flowedu.core.values.place import Place
from flowedu.core.values.spec import Spec
from flowedu.distributed.graph.infer import HINT, groups, wish


@dataclass(frozen=True)
class Option:
    """One option of an unknown.

    Attributes:
        layouts: the layouts of a node's inputs and outputs, or of a variable and the values tied to it.
        way: the signature of a node; None for a variable or input.
        work: the duplicate work, in elements.
        memory: the bytes of the results on all devices together.
    """

    layouts: tuple[Layout, ...]
    way: Way | None = None
    work: int = 0
    memory: int = 0


class Read(NamedTuple):
    """A consumer of a value.

    Attributes:
        unknown: the unknown of the consumer.
        wanted: the layout that the consumer needs, for each of its options.
        shared: True if later consumers can reuse the converted value.
        forced: True if the user requires the layout. Only then may a complete value become a partial sum.
    """

    unknown: int
    wanted: Sequence[Layout]
    shared: bool = True
    forced: bool = False


@dataclass
class Traffic:
    """The producer and the consumers of a value.

    Attributes:
        value: the value.
        maker: the unknown that produces it.
        own: its layout, for each option of `maker`.
        reads: its consumers, in order.
    """

    value: GraphValue
    maker: int
    own: Sequence[Layout]
    reads: list[Read] = field(default_factory=list)


class Model:
    """Unknowns and values of a logical graph.

    Args:
        graph, everywhere, sources, unshared: as for Inference.
        free: {variable or input with a free layout: values with the same layout, such as an optimizer's
            states}.
        taken: {node: the signature of the greedy choice}, which is always an option of the node.

    Attributes:
        options: options[u] are the options of unknown u. Unknown 0 has one option, for all fixed layouts.
        nodes: {node: unknown}.
        kept: {free value: unknown}.
        traffic: {value: Traffic}.
    """

    def __init__(self, graph: Graph, everywhere: Place, sources: Mapping[GraphValue, Layout],
                 free: Mapping[GraphValue, Sequence[GraphValue]] | None = None, unshared: Iterable[Node] = (),
                 taken: Mapping[Node, GridSignature] | None = None):
        self.graph, self.everywhere = graph, everywhere
        self.free, self.unshared = dict(free or {}), set(unshared)
        self.taken = taken or {}
        self.options: list[list[Option]] = [[Option(())]]
        self.nodes: dict[Node, int] = {}
        self.kept: dict[GraphValue, int] = {}
        self.traffic: dict[GraphValue, Traffic] = {}
        self.same: dict[GraphValue, GraphValue] = {}
        self.loose: set[GraphValue] = set()
        self.known: dict[tuple, tuple[float, bool]] = {}
        self.bills: dict[tuple, float] = {}
        self._sources(sources)
        for node in graph.nodes:
            self._node(node)

    # ---- the unknowns
    def _unknown(self, options: Sequence[Option]) -> int:
        self.options.append(list(options))
        return len(self.options) - 1

    def _add_traffic(self, value: GraphValue, maker: int, own: Sequence[Layout]) -> None:
        self.traffic[value] = Traffic(value, maker, own)

    def base(self, value: GraphValue) -> Traffic:
        """Return the traffic of a value, or of the value that it is an alias of."""
        while value in self.same:
            value = self.same[value]
        return self.traffic[value]

    def _sources(self, sources: Mapping[GraphValue, Layout]) -> None:
        graph, tied = self.graph, {v for vs in self.free.values() for v in vs}
        for v in (*graph.inputs.values(), *graph.variables.values(), *graph.hosts.values()):
            if v in self.free:
                members = (v, *self.free[v])
                layouts = possible(graph, v, sources[v])
                self.kept[v] = u = self._unknown([
                    Option((at,) * len(members), memory=sum(total_bytes(m.spec, at) for m in members))
                    for at in layouts])
                for m in members:
                    self._add_traffic(m, u, layouts)
            elif v not in tied:
                if v not in sources:
                    self.loose.add(v)
                self._add_traffic(v, 0, [sources.get(v, layout("B", self.everywhere))])

    def _place(self, node: Node) -> Place:
        if node.placement is not None:
            return place_of(node.placement)
        return next((place_of(self.base(x).own[0]) for x in node.inputs if x not in self.loose),
                    self.everywhere)

    def _read(self, value: GraphValue, reader: int, wanted: Sequence[Layout], *how: bool) -> None:
        self.base(value).reads.append(Read(reader, [at.plain for at in wanted], *how))

    def _node(self, node: Node) -> None:
        if node.op is HINT:
            self._hint(node)
            return
        place = self._place(node)
        if node.mutates:
            self._update(node, place)
        elif len(place.devices) == 1 or place is self.everywhere and all(x in self.loose
                                                                         for x in node.inputs):
            for x in node.inputs:
                self._read(x, 0, [layout("B", place)])
            for y in node.outputs:
                self._add_traffic(y, 0, [layout("B", place)])
            if place is self.everywhere and node.placement is None:
                self.loose.update(node.outputs)
        else:
            options = self._options(node, place)
            self.nodes[node] = u = self._unknown(options)
            for i, x in enumerate(node.inputs):
                self._read(x, u, [o.layouts[i] for o in options])
            for i, y in enumerate(node.outputs, len(node.inputs)):
                self._add_traffic(y, u, [o.layouts[i] for o in options])

    def _hint(self, node: Node) -> None:
        """Add a forced hint: a consumer that needs one layout, or the SBP of the value on other devices."""
        x, y = node.inputs[0], node.outputs[0]
        names = dict(zip(HINT.attrs, node.attrs))
        there, sbp = names.get("place"), names["sbp"]
        place = self._place(node) if there is None else place_of(there)
        if not names["forced"] or sbp is None and there is None or len(place.devices) == 1 and there is None:
            self.same[y] = x
            if x in self.loose:
                self.loose.add(y)
            return
        made = self.base(x)
        if sbp is not None:
            self._read(x, 0, [layout(sbp, place)], node not in self.unshared, True)
            self._add_traffic(y, 0, [layout(sbp, place)])
        else:
            plain = [at.plain.sbp for at in made.own]
            wanted = [layout(s if len(s) == len(place.hierarchy) else "B", place) for s in plain]
            self._read(x, made.maker, wanted, node not in self.unshared, True)
            self._add_traffic(y, made.maker, wanted)

    def _update(self, node: Node, place: Place) -> None:
        """Require gradients and states in the layout of the variable."""
        wants: list[tuple[int, Sequence[Layout]]] = [(0, [layout("B", place)])] * len(node.inputs)
        for members in groups(node):
            w = node.inputs[members[0]]
            home = self.base(w)
            for i in members:
                same = node.inputs[i].shape == w.shape
                wants[i] = home.maker, [at if same else layout("B", place_of(at)) for at in home.own]
        for x, want in zip(node.inputs, wants):
            self._read(x, *want)

    def _options(self, node: Node, place: Place) -> list[Option]:
        """Return the signatures of a node. Hints restrict them, unless they left the greedy choice none."""
        specs = tuple(x.spec for x in node.inputs)
        wanted = [wish(x, place) for x in node.inputs]
        once = work(node.op, specs, [y.spec for y in node.outputs], node.attrs)
        found, hinted, taken = [], [], self.taken.get(node)
        for way in ways(node.op, specs, node.attrs, place.hierarchy):
            if way.fault or way.mixed or not way.whole and way.calls is None:
                continue
            layouts = tuple(Layout(s, *place) for s in way.signature)
            if way.signature != taken and not all(any(allowed(own, at.plain) for own in self.base(x).own)
                                                  for x, at in zip(node.inputs, layouts)):
                continue
            if way.whole:
                total = once * len(place.devices)
            else:
                calls = way.calls or ()
                each = {id(c): work(c.op, c.ins, c.outs, c.attrs) for c in {id(c): c for c in calls}.values()}
                total = sum(each[id(c)] for c in calls)
            memory = sum(total_bytes(y.spec, at) for y, at in zip(node.outputs, layouts[len(specs):]))
            found.append(Option(layouts, way, max(0, total - once), memory))
            if way.signature == taken or all(h is None or s == h for s, h in zip(way.signature, wanted)):
                hinted.append(found[-1])
        return hinted or found

    # ---- the costs
    def bill(self, t: Traffic, numbers: Sequence[int]) -> float:
        """Return the bytes moved for a value if unknown u has option numbers[u]; inf if it is impossible."""
        # Layouts to which the value has already been converted.
        wants: dict[object, tuple[Layout, bool, bool]] = {}
        for i, (u, wanted, shared, forced) in enumerate(t.reads):
            at = wanted[numbers[u]]
            wants.setdefault(at if shared else i, (at, shared, forced))
        key = t.value.spec, t.own[numbers[t.maker]], tuple(wants.values())
        if key not in self.bills:
            self.bills[key] = self._conversion_bytes(*key)
        return self.bills[key]

    def _conversion_bytes(self, spec: Spec, own: Layout, wants: Iterable[tuple[Layout, bool, bool]]) -> float:
        """Return the bytes to convert a value to these layouts, one after the other."""
        have, total = [own], 0.0
        for wanted, shared, forced in wants:
            steps = [self.step(spec, at, wanted) for at in have]
            total += min(n for n, _ in steps) if forced or any(legal for _, legal in steps) else math.inf
            if shared:
                have.append(wanted)
        return total

    def step(self, spec: Spec, src: Layout, dst: Layout) -> tuple[float, bool]:
        """Return (bytes of the conversion from `src` to `dst`, True if the conversion is allowed)."""
        key = spec, src, dst
        if key not in self.known:
            if is_present((src,), dst):
                self.known[key] = 0, True
            elif src.fits(spec.shape) and dst.fits(spec.shape):
                self.known[key] = routed(spec, src, dst), allowed(src, dst)
            else:
                self.known[key] = math.inf, False
        return self.known[key]


def allowed(src: Layout, dst: Layout) -> bool:
    """Return True unless a complete value would become a partial sum.

    Partial sums can be used only where a call produces them.
    """
    partial, plain = [a for a, s in enumerate(dst.sbp) if s[0] == "P"], src.plain
    return not partial or plain[1:] == dst[1:] and all(plain.sbp[a] == dst.sbp[a] for a in partial)


def routed(spec: Spec, src: Layout, dst: Layout) -> int:
    """Return the bytes of the cheapest route.

    The bytes are proportional to the size of an evenly split axis, so they are scaled from small shapes.
    """
    def least(axis: int, n: int) -> int:
        """Return the smallest size of the axis that is split in the same way."""
        if src.partial:                                        # intermediate layouts may split it in any way
            k = math.lcm(src.k, dst.k)
        else:
            k = math.lcm(*(math.prod(k for s, k in zip(at.sbp, at.hierarchy) if s == f"S{axis}")
                           for at in (src, dst)))
        return k if n and n % k == 0 else n
    small = tuple(least(axis, n) for axis, n in enumerate(spec.shape))
    return _routed(Spec(small, spec.dtype), src, dst) * spec.size // max(math.prod(small), 1)


@functools.lru_cache(maxsize=1 << 16)
def _routed(spec: Spec, src: Layout, dst: Layout) -> int:
    return cheapest((src,), dst, spec).bytes


def possible(graph: Graph, v: GraphValue, at: Layout) -> list[Layout]:
    """Return the possible layouts of a variable, the current one first.

    Along each axis of the grid the variable is B, or split along one of its axes. If its update needs the
    whole value, only complete layouts remain.
    """
    found: list[tuple[str, ...]] = [()]
    for k in at.hierarchy:
        found = [(*f, s) for f in found for s in (["B"] if k == 1
                                                  else ["B", *(f"S{a}" for a in range(v.ndim))])]
    layouts = [at] + [x for x in (Layout(f, at.devices, at.hierarchy) for f in found) if x != at]
    for node in graph.nodes:
        if node.mutates and v in node.inputs:
            terms, _ = axes.parse(node.op.equation([x.spec for x in node.inputs], node.attrs),
                                  len(node.inputs))
            if terms[node.inputs.index(v)].isupper():
                layouts = [x for x in layouts if x.whole]
    return [x for x in layouts if x.fits(v.shape)]


def total_bytes(spec: Spec, at: Layout) -> int:
    """Return the bytes of a value on all its devices together."""
    return sum(math.prod(at.local_shape(spec.shape, i)) for i in range(at.k)) * spec.dtype.bytes


def work(op: Op, ins: Sequence[Spec], outs: Sequence[Spec], attrs: tuple) -> int:
    """Return the work of a call as the number of elements that it accesses. The work of a view is 0."""
    if op.view is not None or op.axes is None:
        return 0
    return axes.cost(op, ins, outs, op.equation(ins, attrs))
