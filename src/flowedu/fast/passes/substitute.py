"""Substitution of new nodes for old ones, the last step of most passes."""
from __future__ import annotations

from flowedu.core.graph.ir import Graph, Node
from flowedu.core.graph.rewrite import dead, replace


def substitute(graph: Graph, new_nodes: dict[Node, Node]) -> None:
    """Replace nodes with one output, {old: new}, and remove the values that only the old nodes read."""
    graph.nodes = [new_nodes.get(n, n) for n in graph.nodes]
    replace(graph, {old.outputs[0]: new.outputs[0] for old, new in new_nodes.items()})
    dead(graph)
