"""Graph pass for nodes with 16-bit floats that have only a float32 kernel on a GPU.

Operands are cast to float32, and results are rounded once. Eager calls do the same (engine.py).
"""
from __future__ import annotations

from flowedu.core.eager.dispatch import prepare
from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.graph.rewrite import attributes, rebuilt, replace
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values.dtype import HALVES, dtype, float32
from flowedu.core.values.spec import Spec
from flowedu.cuda.engine import Ready
from flowedu.errors import FlowError


def by_float32(graph: Graph) -> str:
    """Rewrite the nodes that have only a float32 kernel. A value is cast once, however many nodes read it."""
    wide: dict[GraphValue, GraphValue] = {}
    table: dict[GraphValue, GraphValue] = {}
    nodes: list[Node] = []

    def cast(x: GraphValue, to: dtype, node: Node) -> GraphValue:
        nodes.append(Node(REGISTRY["cast"], [x], (to,), [Spec(x.shape, to)], f"{x.name} in {to.name}",
                          node.line, node.placement))
        return nodes[-1].outputs[0]

    for node in graph.nodes:
        if not _needs_float32(node):
            nodes.append(node)
            continue
        inputs = [table.get(x, x) for x in node.inputs]
        for x in inputs:
            if x.dtype in HALVES and x not in wide:
                wide[x] = cast(x, float32, node)
        inputs = [wide.get(x, x) for x in inputs]
        new = rebuilt(node.op, inputs, attributes(node), node)
        nodes.append(new)
        for y, z in zip(node.outputs, new.outputs):
            table[y] = z if z.dtype is y.dtype else cast(z, y.dtype, node)
    graph.nodes = nodes
    replace(graph, table)
    return f"{len(wide)} values cast to float32, whose kernels there are" if wide else ""


def _needs_float32(node: Node) -> bool:
    """Return True if the node reads 16-bit floats, and has a kernel only for float32.

    Ready reports nodes without any kernel later.
    """
    if node.op.view is not None or not any(x.dtype in HALVES for x in node.inputs):
        return False
    entry = prepare(node.op, [x.spec for x in node.inputs], node.attrs)
    try:
        entry.launched = entry.launched or Ready(entry)
    except FlowError:
        return False
    return entry.launched.row is None
