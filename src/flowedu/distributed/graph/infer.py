"""infer: chooses the layout of every value of a graph, and the layout in which each consumer reads it.

A graph is built as if there were one device. For each node in order, infer determines where it runs (a
Place), the best signature (choose.py), the layout of every input under that signature, and the cost of
converting the input (boxing.py). It creates no nodes. The result is a list of rows, one per node. lower.py
converts the rows to one graph per rank. distributed/spread.py converts them to one graph over shared memory.
"""
from __future__ import annotations

import functools
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from flowedu.core import extensions
from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.ops.axes import parse
from flowedu.core.ops.update import HEAD
from flowedu.core.sbp.boxing.algebra import Route
from flowedu.core.sbp.candidates import Way
from flowedu.core.sbp.choose import Choice, cheapest, choose, is_present
from flowedu.core.sbp.local import LocalCall
from flowedu.core.sbp.sbp import Layout, layout, place_of, pretty
from flowedu.core.sbp.signature import text, whole
from flowedu.core.values.place import Place
from flowedu.errors import JobBuildAndInferError, UnsupportedError
from flowedu.ops.hint import distribute_hint as HINT

_text = functools.lru_cache(maxsize=4096)(text)


@dataclass
class Boxed:
    """A value that a consumer needs in another layout."""

    value: GraphValue
    route: Route


@dataclass
class Row:
    """The decision for one node, or for one fetched value: the signature, and the data to move for it.

    Attributes:
        choice: the choice of the signature; None without alternatives.
        node: the node; None for a fetch.
        reads, makes: the layouts of inputs and outputs.
        calls: one call per device of `place`; None if every device makes the complete call.
        shared: True if later consumers reuse the values boxed here.
    """

    name: str
    op: str
    place: Place
    signature: str
    boxed: list[Boxed] = field(default_factory=list)
    choice: Choice | None = None
    node: Node | None = None
    reads: tuple[Layout, ...] = ()
    makes: tuple[Layout, ...] = ()
    calls: Sequence[LocalCall] | None = None
    shared: bool = True

    @property
    def devices(self) -> tuple[int, ...]:
        return self.place.devices

    @property
    def bytes(self) -> int:
        return sum(b.route.bytes for b in self.boxed)


class Inference:
    """The layouts of the values of one graph.

    Args:
        graph: the logical graph. The `placement` of a node is a row of devices or a Place. None means the
            placement of the first input that has one.
        everywhere: all devices. Values that depend on no placed value are copied to each of them.
        sources: {input, variable, or host value: its layout}; missing ones are copied to all devices.
        unshared: forced hints whose result has one consumer only.
        ways: {node: signature}; for other nodes the best one is chosen (choose.py).
        fed: True if the host passes to each device the part of an input that the device reads.

    Attributes:
        rows: one for each node and fetched value.
        layouts: {value: its layouts}, first its own, then those of its conversions.
        same: {value: the value that it is an alias of}.
    """

    def __init__(self, graph: Graph, everywhere: Place, sources: Mapping[GraphValue, Layout], *,
                 unshared: Iterable[Node] = (), ways: Mapping[Node, Way] | None = None, fed: bool = False):
        self.graph, self.everywhere = graph, everywhere
        self.unshared, self.fed = set(unshared), fed
        self.ways = ways or {}
        self.rows: list[Row] = []
        self.same: dict[GraphValue, GraphValue] = {}
        self.layouts: dict[GraphValue, list[Layout]] = {v: [at] for v, at in sources.items()}
        self.loose: set[GraphValue] = set()                    # values without a particular layout
        # Layouts of the inputs of forced hints, by their `restore`.
        self.before: dict[str, Layout] = {}
        for v in (*graph.inputs.values(), *graph.variables.values(), *graph.hosts.values()):
            self.enter(v, None)

    @property
    def bytes(self) -> int:
        """The bytes that one run of the graph moves between devices."""
        return sum(r.bytes for r in self.rows)

    def base(self, value: GraphValue) -> GraphValue:
        """Return the value that this one is an alias of, or the value itself."""
        while value in self.same:
            value = self.same[value]
        return value

    def layout_of(self, value: GraphValue) -> Layout:
        """Return the layout in which a value was computed."""
        return self.layouts[value][0]

    def run(self, strict: Container[Node] | None = None) -> Inference:
        """Process all nodes. strict: the nodes written by the user (default: all)."""
        for node in self.graph.nodes:
            self.add(node, strict is None or node in strict)
        return self

    def enter(self, value: GraphValue, at: Layout | None) -> None:
        """Set the layout of an input, variable, or host value (None: any layout). Later calls do nothing."""
        if value not in self.layouts:
            self.layouts[value] = [at or layout("B", self.everywhere)]
            if at is None:
                self.loose.add(value)

    # ---- one node
    def add(self, node: Node, strict: bool = True) -> None:
        """Process one node.

        With `strict`, hints are binding, and inputs must be in one placement. Other nodes, such as gradients,
        follow hints if possible, and run in the placement of their first input.
        """
        if node.op is HINT:
            self._hint(node)
            return
        place = self.place(node, strict)
        if node.mutates:
            self._update(node, place)
        elif len(place.devices) == 1 or place is self.everywhere and all(x in self.loose
                                                                         for x in node.inputs):
            row = Row(node.name, node.op.name, place, text(node.op, whole(node.op, node.inputs)), node=node)
            for x in node.inputs:
                if not (self.fed and x.kind == "input"):
                    self.bill(row, x, layout("B", place))
            self._add_row(row, node, [layout("B", place)] * (len(node.inputs) + len(node.outputs)))
            if place is self.everywhere and node.placement is None:
                self.loose.update(node.outputs)
        else:
            self._choose(node, place, strict)

    def place(self, node: Node, strict: bool = False) -> Place:
        """Return the devices of a node."""
        if node.placement is not None:
            return place_of(node.placement)
        found = [(x, place_of(self.layout_of(x))) for x in node.inputs if x not in self.loose]
        if not found:
            return self.everywhere
        first = found[0][1]
        other = next((t for t in found if strict and not node.mutates
                      and set(t[1].devices) != set(first.devices)), None)
        if other is not None:
            raise JobBuildAndInferError(
                f"{node.name}: Expected all tensors to be on the same placement, but found at least two "
                f"placements, {first} ({found[0][0].name}) and {other[1]} ({other[0].name})!",
                expected="inputs in one place",
                got=f"devices {first} and {other[1]}", fix="x.to_global(placement=...) before the op",
                at=node.line)
        return first

    def _hint(self, node: Node) -> None:
        """Record a hint for the consumers of a value, or, if it is forced, convert the value."""
        x, y = node.inputs[0], node.outputs[0]
        names = dict(zip(HINT.attrs, node.attrs))
        there, sbp = names["place"], names["sbp"]
        if names["restore"] is not None and sbp is not None:
            self.before[names["restore"]] = self.layout_of(x)
        elif names["restore"] is not None:                     # every addend of a sum has the same gradient
            at = self.before[names["restore"]]
            there, sbp = place_of(at), tuple("B" if s[0] == "P" else s for s in at.sbp)
        place = self.place(node) if there is None else place_of(there)
        if sbp is None and there is not None:                  # the same layout on other devices
            have = self.layout_of(x).plain
            sbp = have.sbp if len(have.sbp) == len(place.hierarchy) else "B"
        if not names["forced"] or sbp is None or len(place.devices) == 1 and there is None:
            self.layouts[y], self.same[y] = self.layouts[x], x
            if x in self.loose:
                self.loose.add(y)
            return
        wanted = layout(sbp, place)
        if not wanted.fits(x.shape):
            raise JobBuildAndInferError(f"{node.name}: the blob cannot be {wanted}",
                                        expected="an axis that gives every device something",
                                        got=str(x.shape),
                                        at=node.line,
                                        fix="split another axis, or flow.distribute.broadcast()")
        sbp = f"{pretty(self.layout_of(x).sbp)} -> {pretty(wanted.sbp)}"
        row = Row(node.name, "parallel_cast", place, sbp,
                  node=node, shared=node not in self.unshared)
        self.bill(row, x, wanted)
        self._add_row(row, node, [wanted, wanted])

    def _update(self, node: Node, place: Place) -> None:
        """Require gradients and states in the layout of the variable.

        Every device updates its part of the variable.
        """
        row = Row(node.name, node.op.name, place, "in place", node=node)
        terms, _ = parse(node.op.equation([x.spec for x in node.inputs], node.attrs), len(node.inputs))
        reads = [layout("B", place)] * len(node.inputs)
        for members in groups(node):
            home = self.layout_of(node.inputs[members[0]])
            for i in members:
                x = node.inputs[i]
                reads[i] = home if x.shape == node.inputs[members[0]].shape else layout("B", place_of(home))
                if terms[i].isupper() and not home.whole:
                    raise UnsupportedError(f"{node.op.name}: {node.inputs[members[0]].name} is "
                                           f"{pretty(home.sbp)}",
                                           expected="a parameter that every device has whole: the rule needs "
                                           "its norm",
                                           got=str(home),
                                           fix="flow.sbp.broadcast, or another optimizer (Adam, SGD)")
        for x, at in zip(node.inputs, reads):
            self.bill(row, x, at)
        self._add_row(row, node, reads)

    def _choose(self, node: Node, place: Place, strict: bool) -> None:
        """Choose the best signature. A gradient for which the hints leave none ignores them."""
        way, choice = self.ways.get(node), None
        routes: Sequence[Route | None]
        if way is None:
            choice = self._cheapest(node, place, strict)
            signature, routes, calls = choice.signature, choice.routes, choice.calls
        else:
            signature, routes = way.signature, [None] * len(node.inputs)
            calls = None if way.whole else way.calls
        row = Row(node.name, node.op.name, place, _text(node.op, signature), [], choice, node, calls=calls)
        layouts = [Layout(s, *place) for s in signature]
        for x, at, route in zip(node.inputs, layouts, routes):
            self.bill(row, x, at, route)
        self._add_row(row, node, layouts)

    def _cheapest(self, node: Node, place: Place, strict: bool) -> Choice:
        present = [self.layouts[x] for x in node.inputs]
        call = (node.op, [x.spec for x in node.inputs], node.attrs, present, *place)
        try:
            return choose(*call, hints=[wish(x, place) for x in node.inputs], name=node.name, line=node.line)
        except JobBuildAndInferError:
            if strict:
                raise
            return choose(*call, name=node.name, line=node.line)

    def _add_row(self, row: Row, node: Node, layouts: Sequence[Layout]) -> None:
        n = len(node.inputs)
        row.reads, row.makes = tuple(layouts[:n]), tuple(layouts[n:])
        for y, at in zip(node.outputs, row.makes):
            self.layouts[y] = [at]
        self.rows.append(row)

    # ---- communication
    def bill(self, row: Row, value: GraphValue, wanted: Layout, route: Route | None = None) -> None:
        """Record the conversion of a value to the layout `wanted`, unless the value is available in it.

        route: the route of the conversion, if known.
        """
        have, wanted = self.layouts[value], wanted.plain
        if not is_present(have, wanted):
            row.boxed.append(Boxed(value, route or cheapest(have, wanted, value.spec)))
            if row.shared:
                have.append(wanted)

    def describe(self) -> str:
        """Return a table of op, devices, signature, and bytes moved, with boxed values and totals."""
        return extensions.layouts_text(self)


def groups(node: Node) -> list[list[int]]:
    """Return groups of input indices of a node that writes variables. Each group starts with its variable."""
    size = node.op.group
    # One variable, and all values computed from the others.
    if size is None:
        first = node.mutates[0]
        same = [i for i, x in enumerate(node.inputs) if i != first and x.shape == node.inputs[first].shape]
        return [[first, *same]]
    return [list(range(i, i + size)) for i in range(HEAD, len(node.inputs), size)]


def wish(value: GraphValue, place: Place) -> tuple[str, ...] | None:
    """Return the SBP requested for `value` by a consumer at `place`.

    A hint with one SBP per grid axis applies only to grids with that number of axes.
    """
    node = value.node
    if node is None or node.op is not HINT:
        return None
    names, axes = dict(zip(HINT.attrs, node.attrs)), len(place.hierarchy)
    sbp = names["sbp"]
    if names["forced"] or sbp is None:
        return None
    if isinstance(sbp, str):
        return (sbp,) * axes
    return sbp if len(sbp) == axes else None
