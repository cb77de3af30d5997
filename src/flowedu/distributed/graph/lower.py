"""lower: one rank's part of a logical graph, as an ordinary graph over its shards.

Boxing is a node of this graph: a call of `Route.perform` on the rank's data. A rank without a part of the
value only receives (`box_in`), and a rank that needs no part only sends (`box_out`).

Every rank processes the same rows (infer.py) in the same order, and keeps its own parts: the call on its
shard, the shards of its variables and inputs, and its side of every boxing. So all ranks communicate in the
same order, without deadlocks.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.ops.update import HEAD
from flowedu.core.sbp.sbp import Layout
from flowedu.core.values.spec import Spec
from flowedu.distributed.graph.infer import Boxed, Inference, Row, groups
from flowedu.distributed.graph.nodes import End, box, box_in, box_out
from flowedu.distributed.rank_graphs import carve, together

PER_PARAMETER = ("weight_decay", "l1", "l2")           # attributes of updates with one value per parameter


class RankGraph:
    """One rank's part of a logical graph.

    Attributes:
        rank: the rank.
        graph: the graph of the rank.
        end: the connection of its boxing nodes.
        outputs: the indices of the logical outputs of which the rank has a part, in the order of
            graph.outputs.
        moved: {name of a message: bytes that it sends to other ranks}.
    """

    def __init__(self, inferred: Inference, rank: int):
        self.inferred, self.rank, self.end = inferred, rank, End(rank)
        logical = inferred.graph
        self.graph = graph = Graph(f"{logical.name}@{rank}")
        graph.training = logical.training
        self.have: dict[GraphValue, dict[Layout, GraphValue]] = {}
        self.names: dict[str, int] = {}                  # {name: number of nodes that requested it}
        self.moved: dict[str, int] = {}
        for name in {node.name for node in logical.nodes}:
            graph.claim(name)                            # nodes of `carve` need other names
        for kind in ("inputs", "variables", "hosts"):
            for v in getattr(logical, kind).values():
                at = inferred.layout_of(v)
                if rank in at.devices:
                    self._keep(v, at, getattr(graph, kind[:-1])(v.name, self.local(v, at)))
        for row in inferred.rows:
            self._row(row)
        self.outputs = [i for i, v in enumerate(logical.outputs) if rank in inferred.layout_of(v).devices]
        outputs = [logical.outputs[i] for i in self.outputs]
        graph.outputs = [self.find(v, inferred.layout_of(v)) for v in outputs]

    @property
    def bytes_sent(self) -> int:
        """The bytes that this rank sends in a step."""
        return sum(self.moved.values())

    # ---- this rank's parts
    def local(self, value: GraphValue, at: Layout) -> Spec:
        """Return the Spec of this rank's part."""
        return Spec(at.local_shape(value.shape, at.devices.index(self.rank)), value.dtype)

    def _keep(self, value: GraphValue, at: Layout, part: GraphValue) -> None:
        self.have.setdefault(value, {})[at.plain] = part

    def find(self, value: GraphValue, at: Layout) -> GraphValue:
        """Return this rank's part of a value in one of its layouts."""
        table, at = self.have[self.inferred.base(value)], at.plain
        if at in table:
            return table[at]
        if at.whole:
            return next(part for other, part in table.items() if other.whole)
        raise KeyError(f"rank {self.rank} has no part of {value.name} as {at}")

    def unique_name(self, name: str) -> str:
        """Return `name` for the first node that requests it, then `name_2`, `name_3`."""
        self.names[name] = count = self.names.get(name, 0) + 1
        return name if count == 1 else f"{name}_{count}"

    # ---- rows
    def _row(self, row: Row) -> None:
        boxed: dict[GraphValue, Any] = {}                # None: this rank receives no part
        summed = together(self, row) if row.node is not None and row.node.mutates else {}
        for b in row.boxed:
            part = summed.get(b.value) or self._carry(b, row.node.line if row.node is not None else "")
            if part is not None and row.shared:
                self._keep(self.inferred.base(b.value), b.route.dst, part)
            boxed[b.value] = part
        node = row.node
        if node is None or self.rank not in row.devices and not node.mutates:
            return
        if row.op == "parallel_cast":
            x = node.inputs[0]
            part = boxed[x] if x in boxed else self.find(x, row.makes[0])
            self._keep(node.outputs[0], row.makes[0], part)
        elif node.mutates:
            self._update(row, node)
        else:
            self._call(row, node)

    def _call(self, row: Row, node: Node) -> None:
        """Append the rank's own call: on its shards, or the whole call if all ranks do the same."""
        i = row.devices.index(self.rank)
        inputs = [self.find(x, at) for x, at in zip(node.inputs, row.reads)]
        if row.calls is None:
            made = Node(node.op, inputs, node.attrs, [y.spec for y in node.outputs],
                        self.unique_name(node.name), node.line)
        else:
            call = row.calls[i]
            made = Node(call.op, inputs, call.attrs, call.outs, self.unique_name(node.name), node.line)
        self.graph.nodes.append(made)
        for y, at, part in zip(node.outputs, row.makes, made.outputs):
            self._keep(y, at, part)

    def _update(self, row: Row, node: Node) -> None:
        """Append the update of the variables of which this rank has a part."""
        members = groups(node)
        mine = [n for n, g in enumerate(members) if self.rank in row.reads[g[0]].devices]
        if not mine:
            return
        numbers: Sequence[int] = range(len(node.inputs))
        attrs = node.attrs
        if len(mine) < len(members):
            numbers = [*range(HEAD), *(i for n in mine for i in members[n])]
            attrs = tuple(tuple(v[n] for n in mine) if name in PER_PARAMETER and len(v) > 1 else v
                          for name, v in zip(node.op.attrs, attrs))
        inputs = [self.find(node.inputs[i], row.reads[i]) for i in numbers]
        self.graph.nodes.append(Node(node.op, inputs, attrs, [], self.unique_name(node.name), node.line))

    # ---- boxing
    def _carry(self, b: Boxed, line: str) -> GraphValue | None:
        """Append this rank's side of a route. Return its part of the result, if it receives one."""
        route, rank = b.route, self.rank
        has, wants = rank in route.src.devices, rank in route.dst.devices
        if not (has or wants):
            return None
        part = self.find(b.value, route.src) if has else None
        spec = self.local(b.value, route.dst) if wants else None
        messages = route.messages()
        if not wants and not any(rank == sender for sender, _, _ in messages):
            return None
        if not messages:
            return carve(self, route, part)
        op = box if wants else box_out
        if not has:
            op = box_in
        inputs = () if part is None else (part,)
        specs = () if spec is None else (spec,)
        attrs = (route, self.end, *specs)
        node = Node(op, inputs, attrs, specs, self.unique_name(f"{b.value.name}:{''.join(route.dst.sbp)}"),
                    line)
        self.graph.nodes.append(node)
        self.moved[node.name] = sum(n for sender, _, n in messages if sender == rank)
        return node.outputs[0] if specs else None


def lower(inferred: Inference, ranks) -> dict[int, RankGraph]:
    """Return {rank: RankGraph} for these ranks."""
    return {rank: RankGraph(inferred, rank) for rank in ranks}
