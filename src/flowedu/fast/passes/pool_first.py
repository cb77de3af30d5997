"""The pass pool_first: max pooling moves before the bias and the relu that lead to it.

    max_pool(relu(x + b)) = relu(max_pool(x) + b)

Neither adding a number nor relu changes which element is the largest, so they may as well work on the few that are left:
a quarter of them, for 2x2 windows. In the backward pass relu's gradient and the bias's move to the pooled side as well.
"""
from __future__ import annotations

from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.graph.rewrite import attributes, rebuilt, replace
from flowedu.core.ops import reduce
from flowedu.core.ops.elementwise import relu, relu_grad
from flowedu.ops.bias import bias_add
from flowedu.ops.pool import max_pool2d, max_pool2d_grad

OVER = (0, 2, 3)             # the axes over which the gradient of a channel's bias is summed


def pool_first(graph: Graph) -> str:
    """Bias and relu come after the max pooling that they come before."""
    readers, outputs = graph.consumers(), set(graph.outputs)
    table: dict[GraphValue, GraphValue] = {}
    made: dict[Node, list[Node]] = {}
    gone: set[Node] = set()
    moved = 0
    for pool in graph.nodes:
        chain = _before(pool, readers, outputs)
        back = _backward(pool, chain[-1], readers, outputs) if chain else None
        if not chain or back is None:
            continue
        new = [rebuilt(pool.op, chain[0].inputs[:1], attributes(pool), pool, f"{pool.name}-first")]
        for node in chain:
            name = pool.name if node is chain[-1] else node.name         # the result keeps the name it is known by
            new.append(rebuilt(node.op, (new[-1].outputs[0], *node.inputs[1:]), attributes(node), node, name))
        made[pool] = new
        gone.update(chain)
        table[pool.outputs[0]] = new[-1].outputs[0]
        moved += 1
        for scatter, slope in back:
            gated = rebuilt(slope.op, (scatter.inputs[0], new[-1].outputs[0]), attributes(slope), slope)
            spread = rebuilt(scatter.op, (gated.outputs[0], new[0].outputs[1]), attributes(scatter), scatter)
            made[scatter], made[slope] = [gated], [spread]
            table[slope.outputs[0]] = spread.outputs[0]
            for total in readers.get(slope.outputs[0], ()):
                if total.op is reduce.sum and attributes(total)["axis"] == OVER:
                    made[total] = [rebuilt(total.op, gated.outputs, attributes(total), total)]
                    table[total.outputs[0]] = made[total][0].outputs[0]
    graph.nodes = [m for n in graph.nodes if n not in gone for m in made.get(n, [n])]
    replace(graph, table)
    return f"{moved} max poolings moved forward" if moved else ""


def _before(pool: Node, readers, outputs) -> list[Node]:
    """[bias_add, relu] or [relu]: what leads to a pooling, in order; relu's output may be read by its gradient too."""
    act = pool.inputs[0].node if pool.op is max_pool2d else None
    if act is None or act.op is not relu or act.outputs[0] in outputs \
            or 2 * pool.outputs[0].spec.size > act.outputs[0].spec.size:
        return []
    bias = act.inputs[0].node
    plain = bias is not None and bias.op is bias_add and attributes(bias)["axis"] == 1 \
        and len(readers[act.inputs[0]]) == 1 and act.inputs[0] not in outputs
    return [bias, act] if plain else [act]


def _backward(pool: Node, act: Node, readers, outputs) -> list[tuple[Node, Node]] | None:
    """(max_pool2d_grad, relu_grad) pairs; None where something else reads a value that would not be there any more."""
    r, index = act.outputs[0], pool.outputs[1]
    scatters = readers.get(index, ())
    if index in outputs or any(n.op is not max_pool2d_grad or n.inputs[1] is not index for n in scatters):
        return None
    pairs = []
    for scatter in scatters:
        found = readers.get(scatter.outputs[0], ())
        if len(found) != 1 or scatter.outputs[0] in outputs or found[0].op is not relu_grad \
                or found[0].inputs != (scatter.outputs[0], r):
            return None
        pairs.append((scatter, found[0]))
    allowed = {pool, *(slope for _, slope in pairs)}
    return pairs if all(n in allowed for n in readers[r]) else None
