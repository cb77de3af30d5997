# plans.same_values
def dead(graph):
    needed, kept = set(graph.outputs), []
    for node in reversed(graph.nodes):
        if node.mutates or any(y in needed for y in node.outputs):
            kept.append(node)
            needed.update(node.inputs)
    graph.nodes = kept[::-1]
    return ""
