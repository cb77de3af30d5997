"""spread: turns a graph of logical values into a graph of the parts on each virtual device.

A job builds one graph as if there were one device. infer.py determines the layout of every value and of each
consumer's input. For each node, spread appends one node per device, which computes that device's parts. If
all devices would do the same work, it appends one node for all. The result is an ordinary graph, which the
ordinary passes, planner, and executor process.

Initial layouts:

- An argument of the job is S(0) on the devices of its first consumer, along all axes of a grid. The host
  gives each device its rows.
- A variable is B, or has the layout of its hint. It is one array in memory, and the parts of a split variable
  are views of it.
- A host value is B.

Variables are updated once, as complete arrays. Outputs are complete arrays when they are fetched.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.sbp.boxing.primitives import route
from flowedu.core.sbp.choose import cheapest
from flowedu.core.sbp.local import LocalCall
from flowedu.core.sbp.sbp import Layout, layout, place_of, pretty
from flowedu.core.values.place import Place
from flowedu.distributed.graph.infer import HINT, Inference, Row
from flowedu.distributed.rank_graphs import unread

Key = tuple[tuple[str, ...], tuple[int, ...]]
WHOLE: Key = (("B",), (1,))          # the key of a value that is computed once, for all devices


@dataclass(eq=False)
class Held:
    """The existing forms of a logical value.

    Attributes:
        layouts: its layouts. The first is its own; the others were created by boxing.
        made: {(sbp, hierarchy): parts} for plain layouts. The keys contain no devices, because memory is
            shared. For a split argument, `made` also has the complete array. `layouts` does not contain it,
            because reading it has a cost.
    """

    value: GraphValue
    layouts: list[Layout]
    made: dict[Key, tuple[GraphValue, ...]] = field(default_factory=dict)

    def parts(self, dst: Layout) -> tuple[GraphValue, ...]:
        """Return the parts in a layout, one per device. Append the nodes that compute them."""
        dst = dst.plain
        if dst.whole:
            return (self.whole(),) * dst.k
        key = key_of(dst)
        if key not in self.made:
            # Others have a cost, but do not exist yet.
            have = [x for x in self.layouts if key_of(x) in self.made]
            if WHOLE in self.made:
                have.insert(0, layout("B", dst.devices))
            r = cheapest(have, dst, self.value.spec)
            self.made[key] = r.run(self.parts(r.src))
        return self.made[key]

    def whole(self) -> GraphValue:
        """Return the logical value as one array."""
        if WHOLE not in self.made:
            src = self.layouts[0]
            self.made[WHOLE] = route(src, layout("B", src.devices),
                                     self.value.spec).run(self.made[key_of(src)])[:1]
        return self.made[WHOLE][0]


class Spread:
    """The lowering of one graph, and the layouts and parts that it created.

    Attributes:
        rows, bytes: the rows and bytes of the inference.
        held: {logical value: Held}.
    """

    def __init__(self, graph: Graph, devices: int):
        self.graph, self.all = graph, tuple(range(devices))
        self.held: dict[GraphValue, Held] = {}
        self.named: Counter[str] = Counter()             # {name: number of nodes of boxed parts}
        forward = set(graph.nodes if graph.forward is None else graph.nodes[:graph.forward])
        unread(graph)
        for node in graph.nodes:
            node.placement = place_of(node.placement or self.all)
        self.inferred = Inference(graph, Place(self.all, (devices,)), self._sources(), fed=True).run(forward)
        for v in graph.outputs:                                # users get complete logical values
            wanted = layout("B", self.inferred.layout_of(v).devices[:1])
            row = Row(v.name, "(fetch)", place_of(wanted), pretty(wanted.sbp))
            if v.kind != "input":
                self.inferred.bill(row, v, wanted)
            row.reads = (wanted,)
            self.inferred.rows.append(row)
        self._spread()

    @property
    def rows(self) -> list[Row]:
        return self.inferred.rows

    @property
    def bytes(self) -> int:
        """The bytes that one run of the graph moves between devices."""
        return self.inferred.bytes

    def layouts(self, value: GraphValue) -> list[Layout]:
        """Return the layouts of a logical value, its own first."""
        return list(self.inferred.layouts[value])

    def describe(self) -> str:
        """Return the table of the inference."""
        return self.inferred.describe()

    def _sources(self) -> dict[GraphValue, Layout]:
        """Return the layouts of arguments, variables, and host values."""
        graph = self.graph
        found: dict[GraphValue, Layout] = {}
        for node in graph.nodes:
            sbp = None if node.op is not HINT else node.attrs[HINT.attr_index["sbp"]]
            if sbp is not None and node.inputs[0].kind == "variable":
                wished = layout(sbp, place_of(node.attrs[HINT.attr_index["place"]] or node.placement))
                if not wished.partial and wished.fits(node.inputs[0].shape):
                    found.setdefault(node.inputs[0], wished.plain)
        readers = graph.consumers()
        for v in graph.inputs.values():
            places = [n.placement for n in readers.get(v, ())] or [place_of(self.all)]
            place = next((p for p in places if len(p.devices) > 1), places[0])
            cut = layout("S0", place)
            found[v] = (cut if cut.fits(v.shape) else layout("B", place)).plain
        return found

    # ---- the rows
    def _spread(self) -> None:
        graph, inferred = self.graph, self.inferred
        for v in (*graph.variables.values(), *graph.hosts.values(), *graph.inputs.values()):
            self.held[v] = Held(v, inferred.layouts[v], {WHOLE: (v,)})
        old, graph.nodes = graph.placement, []
        with graph.building():
            for row in inferred.rows:
                if row.node is None:
                    continue
                if row.op == "parallel_cast":
                    self._cast(row, row.node)
                elif row.calls is None:
                    self._once(row, row.node)
                else:
                    self._split(row, row.node, row.calls)
            graph.outputs = [self._parts(v, layout("B", place_of(inferred.layout_of(v))))[0]
                             for v in graph.outputs]
        graph.placement = old

    def _hold(self, value: GraphValue, parts: tuple[GraphValue, ...]) -> None:
        """Register the parts of `value` in its own layout."""
        own = self.inferred.layout_of(value)
        self.held[value] = Held(value, self.inferred.layouts[value], {key_of(own): parts[:1] if own.whole
                                                                      else parts})

    def _cast(self, row: Row, node: Node) -> None:
        x, y = node.inputs[0], node.outputs[0]
        self._hold(y, self._parts(x, row.makes[0]))
        made = self.held[self.inferred.base(x)].made
        if WHOLE in made:
            self.held[y].made.setdefault(WHOLE, made[WHOLE])

    def _once(self, row: Row, node: Node) -> None:
        """Append the node itself, on whole values."""
        node.inputs = tuple(self._parts(x, layout("B", row.place))[0] for x in node.inputs)
        self.graph.nodes.append(node)
        for y in node.outputs:
            self._hold(y, (y,))

    def _split(self, row: Row, node: Node, calls: Sequence[LocalCall]) -> None:
        """Append one node per device."""
        inputs = [self._parts(x, at) for x, at in zip(node.inputs, row.reads)]
        made = [Node(call.op, [p[i] for p in inputs], call.attrs, call.outs, f"{node.name}@{device}",
                     node.line, (device,))
                for i, (device, call) in enumerate(zip(row.devices, calls))]
        self.graph.nodes += made
        for n, y in enumerate(node.outputs):
            self._hold(y, tuple(m.outputs[n] for m in made))

    def _parts(self, value: GraphValue, dst: Layout) -> tuple[GraphValue, ...]:
        """Return the parts of a value; the nodes that compute them are named after it."""
        held, before = self.held[self.inferred.base(value)], len(self.graph.nodes)
        self.graph.placement = dst.devices
        parts = held.parts(dst)
        name = f"{value.name}:{''.join(dst.plain.sbp)}"
        for node in self.graph.nodes[before:]:
            node.name = node.outputs[0].name = f"{name}.{self.named[name]}"
            self.named[name] += 1
            node.line = value.node.line if value.node is not None else ""
        return parts


def key_of(at: Layout) -> Key:
    """Return the key of the parts of a layout in Held.made."""
    at = at.plain
    return WHOLE if at.whole else (at.sbp, at.hierarchy)


def spread(graph: Graph, devices: int) -> Spread:
    """Rewrite `graph` in place for virtual devices.

    The placement of a node is a row of devices or a Place; None is all devices.
    """
    return Spread(graph, devices)
