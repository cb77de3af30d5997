# plans.same_values
def cse(graph):
    seen, kept = set(), []
    for node in graph.nodes:
        key = (node.op, node.inputs, node.attrs)
        if node.op.random or node.mutates or key not in seen:
            kept.append(node)
        seen.add(key)
    graph.nodes = kept
    return ""
