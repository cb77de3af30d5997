"""spread: a graph of logical values becomes a graph of the parts that each virtual device has of them.

A job builds one graph as if there were one device. For each of its nodes in order: choose a signature (choose.py), box
the inputs (boxing.py), and append one node per device, on its parts, or one for all where every device would do the same.
What comes out is an ordinary graph, which the ordinary passes, planner and executor run.

Where things lie at first: an argument of the job is S(0) on the devices of its first reader (the host hands each device
its rows); a variable is B, or as its hint says (it is one array in memory, and a split one's parts are views of it); a
host value is B. Updates of variables are made once, on whole arrays; outputs are whole again when they are fetched.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from flowedu.dist.boxing import Route, route
from flowedu.dist.choose import Choice, cheapest, choose, is_present
from flowedu.dist.sbp import Layout, fits, ids, pretty
from flowedu.dist.signature import text, whole
from flowedu.errors import JobBuildAndInferError
from flowedu.graph.ir import Graph, GraphValue, Node
from flowedu.ops.axes import parse
from flowedu.ops.define import REGISTRY

HINT = REGISTRY["distribute_hint"]


@dataclass(eq=False)
class Held:
    """Where a logical value is.

    Attributes: layouts, those it is in (the first is its own, the others came by boxing); made, {(sbp, devices): parts}.
    The two differ where devices share memory: of a split argument the whole is there, though getting it has a price.
    """

    value: GraphValue
    layouts: list[Layout]
    made: dict[tuple[str, int], tuple[GraphValue, ...]] = field(default_factory=dict)

    def parts(self, layout: Layout) -> tuple[GraphValue, ...]:
        """The parts in a layout, one per device. Appends the nodes that make them."""
        layout = layout.plain
        if layout.sbp == "B":
            return (self.whole(),) * layout.k
        key = (layout.sbp, layout.k)
        if key not in self.made:
            have = [x for x in self.layouts if (x.sbp, x.k) in self.made]     # others are paid for, and not made yet
            if ("B", 1) in self.made:
                have.insert(0, Layout("B", layout.devices))
            r = cheapest(have, layout, self.value.spec)
            self.made[key] = r.run(self.parts(r.src))
        return self.made[key]

    def whole(self) -> GraphValue:
        """The logical value as one array."""
        if ("B", 1) not in self.made:
            src = self.layouts[0]
            self.made["B", 1] = route(src, Layout("B", src.devices), self.value.spec).run(self.made[src.sbp, src.k])[:1]
        return self.made["B", 1][0]


@dataclass
class Boxed:
    """A value that a reader wants in another layout than it has."""

    value: GraphValue
    route: Route


@dataclass
class Row:
    """What became of one node: its signature, and what had to be moved for it. choice: None where there was none."""

    name: str
    op: str
    devices: tuple[int, ...]
    signature: str
    boxed: list[Boxed]
    choice: Choice | None = None

    @property
    def bytes(self) -> int:
        return sum(b.route.bytes for b in self.boxed)


class Spread:
    """The lowering of one graph, and its record.

    Attributes: rows, one for each logical node and each fetched output; held, {logical value: Held}.
    """

    def __init__(self, graph: Graph, devices: int):
        self.graph, self.all = graph, tuple(range(devices))
        self.rows: list[Row] = []
        self.held: dict[GraphValue, Held] = {}

    @property
    def bytes(self) -> int:
        """What one run of the graph moves between devices."""
        return sum(r.bytes for r in self.rows)

    def layouts(self, value: GraphValue) -> list[Layout]:
        """The layouts of a logical value: its own first."""
        return list(self.held[value].layouts)

    # ---- the walk
    def run(self) -> None:
        graph, nodes = self.graph, self.graph.nodes
        self._place_sources(nodes)
        graph.nodes, old = [], graph.placement
        forward = len(nodes) if graph.forward is None else graph.forward
        with graph.building():
            for number, node in enumerate(nodes):
                devices = node.placement or self.all
                if node.op.random and node.inputs:
                    self._unread(node)
                if node.op is HINT:
                    self._hint(node, devices)
                elif node.mutates:
                    self._update(node, devices)
                elif len(devices) == 1:
                    row = Row(node.name, node.op.name, devices, text(node.op, whole(node.op, node.inputs)), [])
                    for x in node.inputs:
                        if x.kind != "input":                      # the host hands each device what it reads
                            self._bill(row, x, Layout("B", devices))
                    self._emit_once(node, devices, row)
                else:
                    self._emit_split(node, devices, strict=number < forward)
            graph.outputs = [self._fetch(v) for v in graph.outputs]
        graph.placement = old

    def _place_sources(self, nodes: Sequence[Node]) -> None:
        """Arguments, variables and host values."""
        graph = self.graph
        wishes: dict[GraphValue, Layout] = {}
        for node in nodes:
            sbp = hinted(node)[0] if node.op is HINT else None
            if sbp is not None and node.inputs[0].kind == "variable":
                layout = Layout(sbp, node.placement or self.all)
                if sbp != "P" and fits(sbp, node.inputs[0].shape, layout.k):
                    wishes.setdefault(node.inputs[0], layout.plain)
        for v in (*graph.variables.values(), *graph.hosts.values()):
            self.held[v] = Held(v, [wishes.get(v, Layout("B", self.all))], {("B", 1): (v,)})
        readers = graph.consumers()
        for v in graph.inputs.values():
            places = [n.placement or self.all for n in readers.get(v, ())]
            devices = next((d for d in places if len(d) > 1), places[0] if places else self.all)
            sbp = "S0" if v.ndim and fits("S0", v.shape, len(devices)) else "B"
            self.held[v] = Held(v, [Layout(sbp, devices).plain], {("B", 1): (v,)})

    def _unread(self, node: Node) -> None:
        """Random ops ask an input for its shape only: zeros of that shape, without memory, spare bringing it whole."""
        for x in node.inputs:
            zero = REGISTRY["constant"](shape=(), value=0, dtype=x.dtype)
            y = REGISTRY["expand"](zero, shape=x.shape)
            y.name = f"{x.name} (shape)"
            self.held[y] = Held(y, [Layout("B", self.all)], {("B", 1): (y,)})
            node.inputs = tuple(y if i is x else i for i in node.inputs)

    # ---- one node
    def _hint(self, node: Node, devices: tuple[int, ...]) -> None:
        """A wish changes nothing yet: its readers look at it. A forced one is where the value is from now on."""
        x, y, (sbp, forced) = node.inputs[0], node.outputs[0], hinted(node)
        self.held[y] = held = self.held[x]
        if not forced or sbp is None or len(devices) == 1:
            return
        layout = Layout(sbp, devices)
        if not fits(layout.sbp, x.shape, len(devices)):
            raise JobBuildAndInferError(f"{node.name}: the blob cannot be {pretty(layout.sbp)} on {len(devices)} devices",
                                        expected=f"an axis of {len(devices)} or more", got=str(x.shape), at=node.line,
                                        fix="split another axis, or flow.distribute.broadcast()")
        row = Row(node.name, "parallel_cast", devices, f"{pretty(held.layouts[0].sbp)} -> {pretty(layout.sbp)}", [])
        self._bill(row, x, layout)
        made = keyed(layout, self._parts(x, layout))
        self.held[y] = Held(y, [layout], made | {k: v for k, v in held.made.items() if k == ("B", 1)})
        self.rows.append(row)

    def _update(self, node: Node, devices: tuple[int, ...]) -> None:
        """Made once, on whole arrays. The bill is that of updating each part of a split variable where it is: a gradient
        has the axis letters of its variable, and is wanted in its layout, as are the optimizer's arrays."""
        row = Row(node.name, node.op.name, devices, "in place", [])
        terms, _ = parse(node.op.equation([x.spec for x in node.inputs], node.attrs), len(node.inputs))
        home: dict[str, Layout] = {}
        for i in node.mutates:                                  # the first of a group is the variable
            home.setdefault(terms[i], self.held[node.inputs[i]].layouts[0])
        for i, x in enumerate(node.inputs):
            if i not in node.mutates:
                self._bill(row, x, home.get(terms[i], Layout("B", devices)))
        self._emit_once(node, devices, row)

    def _emit_once(self, node: Node, devices: tuple[int, ...], row: Row) -> None:
        """The node itself, on whole values."""
        node.inputs = tuple(self._parts(x, Layout("B", devices))[0] for x in node.inputs)
        self.graph.nodes.append(node)
        for y in node.outputs:
            self.held[y] = Held(y, [Layout("B", devices)], {("B", 1): (y,)})
        self.rows.append(row)

    def _emit_split(self, node: Node, devices: tuple[int, ...], strict: bool) -> None:
        """Under the best signature, one node per device. strict: hints bind; a gradient follows them where it can."""
        present = [self.held[x].layouts for x in node.inputs]
        call = (node.op, [x.spec for x in node.inputs], node.attrs, present, devices)
        try:
            choice = choose(*call, hints=list(map(wish, node.inputs)), name=node.name, line=node.line)
        except JobBuildAndInferError:
            if strict:
                raise
            choice = choose(*call, name=node.name, line=node.line)
        row = Row(node.name, node.op.name, devices, text(node.op, choice.signature), [], choice)
        layouts = [Layout(s, devices) for s in choice.signature]
        for x, layout in zip(node.inputs, layouts):
            self._bill(row, x, layout)
        if choice.calls is None:
            self._emit_once(node, devices, row)
            return
        inputs = [self._parts(x, layout) for x, layout in zip(node.inputs, layouts)]
        made = []
        for i, (device, local) in enumerate(zip(devices, choice.calls)):
            made.append(Node(node.op, [p[i] for p in inputs], local.attrs, local.outs, f"{node.name}@{device}", node.line,
                             (device,)))
        self.graph.nodes += made
        for n, (y, layout) in enumerate(zip(node.outputs, layouts[len(inputs):])):
            self.held[y] = Held(y, [layout], keyed(layout, tuple(m.outputs[n] for m in made)))
        self.rows.append(row)

    def _fetch(self, value: GraphValue) -> GraphValue:
        """An output is brought to one device, whole: users see logical values."""
        held = self.held[value]
        devices = held.layouts[0].devices
        row = Row(value.name, "(fetch)", devices[:1], "B", [])
        if value.kind != "input":
            self._bill(row, value, Layout("B", devices[:1]))
        self.rows.append(row)
        return self._parts(value, Layout("B", devices))[0]

    # ---- boxing
    def _bill(self, row: Row, value: GraphValue, layout: Layout) -> None:
        """From now on the value is in this layout too; what that takes is noted."""
        held, layout = self.held[value], layout.plain
        if not is_present(held.layouts, layout):
            row.boxed.append(Boxed(value, cheapest(held.layouts, layout, value.spec)))
            held.layouts.append(layout)

    def _parts(self, value: GraphValue, layout: Layout) -> tuple[GraphValue, ...]:
        """The parts of a value; the nodes that make them are named after it."""
        held, before = self.held[value], len(self.graph.nodes)
        self.graph.placement = layout.devices
        parts = held.parts(layout)
        for n, node in enumerate(self.graph.nodes[before:]):
            node.name = node.outputs[0].name = f"{value.name}:{layout.plain.sbp}.{n}"
            node.line = value.node.line if value.node is not None else ""
        return parts

    # ---- what was done
    def describe(self) -> str:
        """A table: op, devices, signature, bytes moved; below each op what was boxed. Totals at the end."""
        table = [("op", "devices", "signature", "bytes moved")]
        totals: dict[str, int] = {}
        for r in self.rows:
            if r.op == "(fetch)" and not r.bytes:
                continue
            table.append((f"{r.name} ({r.op})" if r.op != "(fetch)" else f"{r.name} (fetch)", ids(r.devices), r.signature,
                          f"{r.bytes:,}" if r.bytes else "-"))
            for b in r.boxed:
                for h in b.route.hops:
                    totals[h.primitive.name] = totals.get(h.primitive.name, 0) + h.bytes
                if b.route.bytes:
                    table.append((f"  {b.value.name}: {b.route.src} -> {b.route.dst}", "", b.route.name,
                                  f"{b.route.bytes:,}"))
        widths = [max(len(line[i]) for line in table) for i in range(3)]
        lines = ["  ".join([*(c.ljust(w) for c, w in zip(line, widths)), line[3].rjust(12)]).rstrip() for line in table]
        said = ", ".join(f"{name} {n:,}" for name, n in sorted(totals.items(), key=lambda t: -t[1]) if n)
        return "\n".join([f"{self.graph.name} on {len(self.all)} devices", *lines,
                          f"moved in one run: {self.bytes:,} bytes" + (f" ({said})" if said else "")])


def keyed(layout: Layout, parts: tuple[GraphValue, ...]) -> dict[tuple[str, int], tuple[GraphValue, ...]]:
    """The entry of Held.made for parts in a layout."""
    return {("B", 1): parts[:1]} if layout.sbp == "B" else {(layout.sbp, layout.k): parts}


def hinted(node: Node) -> tuple[str | None, bool]:
    """(sbp, forced) of a hint."""
    names = dict(zip(HINT.attrs, node.attrs))
    return names["sbp"], names["forced"]


def wish(value: GraphValue) -> str | None:
    """The SBP a reader of `value` is asked to take it in."""
    node = value.node
    if node is None or node.op is not HINT:
        return None
    sbp, forced = hinted(node)
    return None if forced else sbp


def spread(graph: Graph, devices: int) -> Spread:
    """Rewrite `graph`, in place, for this many virtual devices. A node's placement says which ones run it (None: all)."""
    done = Spread(graph, devices)
    done.run()
    return done
