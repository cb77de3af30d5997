"""The pass narrow: an op between casts from a 16-bit float to float32 and back takes the 16-bit numbers as they are.

    y = cast(relu(cast(x, float32)), bfloat16)        y = relu(x)

Kernels widen and round by themselves (ops/halves.py), to the same bits, and the float32 copies are never made.
"""
from __future__ import annotations

from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.graph.rewrite import dead, rebuilt, replace
from flowedu.core.ops.view import cast
from flowedu.core.values.dtype import HALVES, dtype, float32
from flowedu.core.values.spec import Spec
from flowedu.errors import FlowError


def narrow(graph: Graph) -> str:
    """Casts around ops go."""
    readers, outputs = graph.consumers(), set(graph.outputs)
    table: dict[GraphValue, GraphValue] = {}
    made: dict[Node, Node] = {}
    for node in graph.nodes:
        half = _between(node, readers, outputs)
        new = _narrowed(node, half, table) if half is not None else None
        if new is not None:
            made[node] = new
            y, same = node.outputs[0], new.outputs[0]
            table.update({n.outputs[0]: same for n in readers[y]} if y.dtype is float32 else {y: same})
    if not made:
        return ""
    graph.nodes = [made.get(n, n) for n in graph.nodes]
    replace(graph, table)
    dead(graph)
    return f"{len(made)} ops without casts around them"


def _between(node: Node, readers, outputs) -> dtype | None:
    """The 16-bit type that a node's inputs are cast from and its output is cast to, if that is all that reads it. (What
    compares gives truth values.)"""
    if node.op is cast or node.op.cpu is None or node.mutates or len(node.outputs) != 1:
        return None
    y = node.outputs[0]
    types = {x.node.inputs[0].dtype if _widens(x) else x.dtype for x in node.inputs if x.dtype is float32}
    if y.dtype is float32:
        types |= {float32} if y in outputs else {n.outputs[0].dtype if n.op is cast else n for n in readers.get(y, ())}
    elif y.dtype.is_floating_point:
        return None
    return types.pop() if len(types) == 1 and types <= set(HALVES) else None


def _widens(x: GraphValue) -> bool:
    return x.node is not None and x.node.op is cast and x.node.inputs[0].dtype in HALVES


def _narrowed(node: Node, half: dtype, table: dict[GraphValue, GraphValue]) -> Node | None:
    inputs = tuple([x.node.inputs[0] if x.dtype is float32 else x for x in node.inputs])
    inputs = tuple([table.get(x, x) for x in inputs])
    try:
        y = node.outputs[0]
        wanted = Spec(y.shape, half if y.dtype is float32 else y.dtype)
        if node.op.infer([x.spec for x in inputs], node.attrs) != (wanted,):
            return None
    except FlowError:
        return None
    return rebuilt(node.op, inputs, dict(zip(node.op.attrs, node.attrs)), node)
