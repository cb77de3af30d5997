# compiled.updated
def update(graph: Graph) -> str:
    """w -= lr * (a @ b), where a @ b is the gradient of w and nothing else reads it: one BLAS call with beta = 1.

    The gradient, as large as the weights, is neither written nor read back.
    """
    readers, outputs = graph.consumers(), set(graph.outputs)
    kept, absorbed = [], set()
    for node in graph.nodes:
        if node.op is not sgd_update:
            kept.append(node)
            continue
        attrs, rate = attributes(node), node.inputs[0]
        left, decay = list(node.inputs[:2]), {n: [] for n in DECAYS}
        for i, (w, g) in enumerate(zip(node.inputs[2::2], node.inputs[3::2])):
            own = {n: number_of(attrs[n], i) for n in DECAYS}
            alone = len(readers[g]) == 1
            if alone and not any(own.values()) and _goes_into(node, w, g.node):
                values = matmul_update.complete({**attributes(g.node), "scale": attrs["scale"]})
                kept.append(Node(matmul_update, (*g.node.inputs, rate, w), values, (), f"{w.name}-update", node.line))
                absorbed.add(g.node)
            else:
                left += [w, g]
                for n, v in own.items():
                    decay[n].append(v)
        if len(left) > 2:
            kept.append(Node(node.op, left, node.op.complete({**attrs, **decay}), (), node.name, node.line))
    graph.nodes = [n for n in kept if n not in absorbed]
    return f"{len(absorbed)} gradients go straight into their weights" if absorbed else ""
