"""The pass pool_first moves max pooling before the bias and relu that precede it.

    max_pool(relu(x + b)) = relu(max_pool(x) + b)

Adding a number and relu do not change which element is the largest. After pooling, they process fewer
elements, for example a quarter with 2x2 windows. The gradients of relu and bias also move to the pooled
side.
"""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.graph.rewrite import attributes, rebuilt, replace
from flowedu.core.ops import reduce
from flowedu.core.ops.elementwise import relu, relu_grad
from flowedu.ops.bias import bias_add
from flowedu.ops.pool import max_pool2d, max_pool2d_grad

OVER = (0, 2, 3)             # axes over which the gradient of a channel's bias is summed


def pool_first(graph: Graph) -> str:
    """Move max pooling before bias and relu."""
    readers, outputs = graph.consumers(), set(graph.outputs)
    table: dict[GraphValue, GraphValue] = {}
    new_nodes: dict[Node, list[Node]] = {}
    gone: set[Node] = set()
    moved = 0
    for pool in graph.nodes:
        chain = _before(pool, readers, outputs)
        back = _backward(pool, chain[-1], readers, outputs) if chain else None
        if not chain or back is None:
            continue
        new = [rebuilt(pool.op, chain[0].inputs[:1], attributes(pool), pool, f"{pool.name}-first")]
        for node in chain:
            name = pool.name if node is chain[-1] else node.name         # the result keeps its name
            new.append(rebuilt(node.op, (new[-1].outputs[0], *node.inputs[1:]), attributes(node), node, name))
        new_nodes[pool] = new
        gone.update(chain)
        table[pool.outputs[0]] = new[-1].outputs[0]
        moved += 1
        for scatter, slope in back:
            gated = rebuilt(slope.op, (scatter.inputs[0], new[-1].outputs[0]), attributes(slope), slope)
            spread = rebuilt(scatter.op, (gated.outputs[0], new[0].outputs[1]), attributes(scatter), scatter)
            new_nodes[scatter], new_nodes[slope] = [gated], [spread]
            table[slope.outputs[0]] = spread.outputs[0]
            for total in readers.get(slope.outputs[0], ()):
                if total.op is reduce.sum and attributes(total)["axis"] == OVER:
                    new_nodes[total] = [rebuilt(total.op, gated.outputs, attributes(total), total)]
                    table[total.outputs[0]] = new_nodes[total][0].outputs[0]
    graph.nodes = [m for n in graph.nodes if n not in gone for m in new_nodes.get(n, [n])]
    replace(graph, table)
    return f"{moved} max poolings moved forward" if moved else ""


def _before(pool: Node, readers: Mapping[GraphValue, Sequence[Node]],
            outputs: Collection[GraphValue]) -> list[Node]:
    """Return [bias_add, relu], [relu], or [] before a pooling. relu's gradient may also read its output."""
    act = pool.inputs[0].node if pool.op is max_pool2d else None
    if act is None or act.op is not relu or act.outputs[0] in outputs \
            or 2 * pool.outputs[0].spec.size > act.outputs[0].spec.size:
        return []
    bias = act.inputs[0].node
    plain = bias is not None and bias.op is bias_add and attributes(bias)["axis"] == 1 \
        and len(readers[act.inputs[0]]) == 1 and act.inputs[0] not in outputs
    return [bias, act] if plain else [act]


def _backward(pool: Node, act: Node, readers: Mapping[GraphValue, Sequence[Node]],
              outputs: Collection[GraphValue]) -> list[tuple[Node, Node]] | None:
    """Return pairs (max_pool2d_grad, relu_grad), or None if a removed value has other readers."""
    r, index = act.outputs[0], pool.outputs[1]
    scatters = readers.get(index, ())
    if index in outputs or any(n.op is not max_pool2d_grad or n.inputs[1] is not index for n in scatters):
        return None
    pairs = []
    for scatter in scatters:
        slopes = readers.get(scatter.outputs[0], ())
        if len(slopes) != 1 or scatter.outputs[0] in outputs or slopes[0].op is not relu_grad \
                or slopes[0].inputs != (scatter.outputs[0], r):
            return None
        pairs.append((scatter, slopes[0]))
    allowed = {pool, *(slope for _, slope in pairs)}
    return pairs if all(n in allowed for n in readers[r]) else None
