# plans.same_values
def dead(graph):
    first = next(i for i, n in enumerate(graph.nodes) if any(y in graph.outputs for y in n.outputs))
    graph.nodes = graph.nodes[:first + 1]
    return ""
