"""The pass update merges plain SGD into the matrix product that computes the gradient."""
from __future__ import annotations

from flowedu.core.graph.ir import Graph, GraphValue, Node, base
from flowedu.core.graph.rewrite import attributes
from flowedu.core.ops.matmul import matmul
from flowedu.core.ops.update import number_of, sgd_update
from flowedu.core.values.dtype import float32
from flowedu.fast.ops.matmul_update import matmul_update

DECAYS = ("weight_decay", "l1", "l2")


def update(graph: Graph) -> str:
    """Merge w -= lr * (a @ b) into one BLAS call (beta = 1) if the gradient a @ b has no other reader.

    The gradient, which is as large as the weights, is not written to memory.
    """
    readers, outputs = graph.consumers(), set(graph.outputs)
    nodes, absorbed = [], set()
    for node in graph.nodes:
        if node.op is not sgd_update:
            nodes.append(node)
            continue
        attrs, rate = attributes(node), node.inputs[0]
        left = list(node.inputs[:2])
        decay: dict[str, list[float]] = {n: [] for n in DECAYS}
        for i, (w, g) in enumerate(zip(node.inputs[2::2], node.inputs[3::2])):
            decays = {n: number_of(attrs[n], i) for n in DECAYS}
            alone = len(readers[g]) == 1 and g not in outputs
            if alone and not any(decays.values()) and _goes_into(node, w, g.node):
                values = matmul_update.complete({**attributes(g.node), "scale": attrs["scale"]})
                inputs = (*g.node.inputs, rate, w)
                nodes.append(Node(matmul_update, inputs, values, (), f"{w.name}-update", node.line))
                absorbed.add(g.node)
            else:
                left += [w, g]
                for n, v in decays.items():
                    decay[n].append(v)
        if len(left) > 2:
            nodes.append(Node(node.op, left, node.op.complete({**attrs, **decay}), (), node.name, node.line))
    graph.nodes = [n for n in nodes if n not in absorbed]
    return f"{len(absorbed)} gradients go straight into their weights" if absorbed else ""


def _goes_into(node: Node, w: GraphValue, product: Node | None) -> bool:
    """Return True if `product`, which computes the gradient of w, can perform the update `node` of w."""
    rate, step = node.inputs[:2]
    return (product is not None and product.op is matmul and len(w.shape) == 2 and rate.dtype is float32
            and step.kind != "node"          # a computed step may skip the update
            and all(base(x).kind != "variable" for x in product.inputs))  # may be updated earlier
