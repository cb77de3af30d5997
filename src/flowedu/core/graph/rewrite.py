"""Helpers of passes: changed copies of nodes, replaced values, and dead code elimination."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.ops.define import Op


def attributes(node: Node) -> dict[str, Any]:
    """Return {name: value} of a node's attributes."""
    return dict(zip(node.op.attrs, node.attrs))


def rebuilt(op: Op, inputs: Sequence[GraphValue], attrs: dict[str, Any], node: Node,
            name: str = "") -> Node:
    """Return a node that calls `op`, with the line, placement, and (by default) name of `node`."""
    values = op.complete(attrs)
    specs = op.infer([x.spec for x in inputs], values)
    return Node(op, inputs, values, specs, name or node.name, node.line, node.placement)


def replace(graph: Graph, table: dict[GraphValue, GraphValue]) -> None:
    """Replace each key of `table` by its value in all inputs and outputs."""
    def final(v: GraphValue) -> GraphValue:
        while v in table:
            v = table[v]
        return v

    for node in graph.nodes:
        if not table.keys().isdisjoint(node.inputs):
            node.inputs = tuple([final(x) for x in node.inputs])
    graph.outputs = [final(x) for x in graph.outputs]


def dead(graph: Graph) -> str:
    """Remove nodes that no output needs, except writes of variables and communication."""
    needed = set(graph.outputs)
    kept = []
    for node in reversed(graph.nodes):
        if node.mutates or node.op.effect or any(y in needed for y in node.outputs):
            kept.append(node)
            needed.update(node.inputs)
    graph.nodes = kept[::-1]
    return ""
