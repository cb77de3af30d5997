# plans.same_values
def dead(graph):
    needed, kept = set(graph.outputs), []
    for node in reversed(graph.nodes):
        if node.mutates or node.op.effect or node.outputs[0] in needed:
            kept.append(node)
            needed.update(node.inputs)
    graph.nodes = kept[::-1]
    return ""
