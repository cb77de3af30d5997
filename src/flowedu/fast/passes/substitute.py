"""Substitution of new nodes for old ones, the last step of most passes."""
from __future__ import annotations

from flowedu.core.graph.ir import Graph, Node
from flowedu.core.graph.rewrite import dead, replace


def substitute(graph: Graph, made: dict[Node, Node]) -> None:
    """{old node: new one}, each with one output. What only the old ones read is no more."""
    graph.nodes = [made.get(n, n) for n in graph.nodes]
    replace(graph, {old.outputs[0]: new.outputs[0] for old, new in made.items()})
    dead(graph)
