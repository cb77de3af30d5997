"""The pass norm_clip replaces batch norm and relu or relu6 by one op, forward and backward.

    y = batch_norm(x);  z = relu6(y)              z = batch_norm_clip(x)
    dy = relu6_grad(dz, z);  dx = batch_norm_grad(dy, x)      dx = batch_norm_clip_grad(dz, x)

This saves two passes over memory in each direction, and y is not stored.
"""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import inf

from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.graph.rewrite import attributes, rebuilt, replace
from flowedu.core.ops.elementwise import relu, relu_grad
from flowedu.fast.ops.norm_clip import batch_norm_clip, batch_norm_clip_grad
from flowedu.ops.composed import relu6, relu6_grad
from flowedu.ops.norm import batch_norm, batch_norm_grad

LIMITS = {relu: (0.0, inf), relu6: (0.0, 6.0)}
GRADIENTS = {relu: relu_grad, relu6: relu6_grad}


def norm_clip(graph: Graph) -> str:
    """Merge batch norm and an activation that is its only reader."""
    readers, outputs = graph.consumers(), set(graph.outputs)
    table: dict[GraphValue, GraphValue] = {}
    new_nodes: dict[Node, Node] = {}
    gone: set[Node] = set()
    for node in graph.nodes:
        if node.op is not batch_norm:
            continue
        y = node.outputs[0]
        acts = [n for n in readers.get(y, ()) if n.op in LIMITS]
        if len(acts) != 1 or len(readers[y]) != 1 or y in outputs:
            continue
        act = acts[0]
        low, high = LIMITS[act.op]
        back = _backward(node, act, readers, outputs)
        if back is None:
            continue
        new = rebuilt(batch_norm_clip, node.inputs, {**attributes(node), "low": low, "high": high}, node)
        new_nodes[node] = new
        gone.add(act)
        table.update({act.outputs[0]: new.outputs[0], node.outputs[1]: new.outputs[1],
                      node.outputs[2]: new.outputs[2]})
        for mask, grad in back:
            inputs = (mask.inputs[0], *grad.inputs[1:3], node.inputs[2], *grad.inputs[3:])
            new_nodes[grad] = rebuilt(batch_norm_clip_grad, inputs, attributes(new), grad)
            table.update(zip(grad.outputs, new_nodes[grad].outputs))
            gone.add(mask)
    graph.nodes = [new_nodes.get(n, n) for n in graph.nodes if n not in gone]
    replace(graph, table)
    forward = sum(node.op is batch_norm for node in new_nodes)
    if not new_nodes:
        return ""
    return f"{forward} batch norms clip their result, {len(new_nodes) - forward} gradients with them"


def _backward(node: Node, act: Node, readers: Mapping[GraphValue, Sequence[Node]],
              outputs: Collection[GraphValue]) -> list[tuple[Node, Node]] | None:
    """Return pairs (gradient of the activation, gradient of batch norm), or None if dy has other readers."""
    z, pairs = act.outputs[0], []
    for mask in readers.get(z, ()):
        if mask.op is not GRADIENTS[act.op] or mask.inputs[1] is not z:
            continue                                             # another reader of z, which is kept
        dy = mask.outputs[0]
        grads = readers.get(dy, ())
        if mask.inputs[0] is z or dy in outputs or len(grads) != 1 or grads[0].op is not batch_norm_grad:
            return None
        grad = grads[0]
        if grad.inputs[0] is not dy or grad.inputs[1:] != (*node.inputs[:2], *node.outputs[1:]) \
                or grad.attrs != node.attrs:
            return None
        pairs.append((mask, grad))
    return pairs
