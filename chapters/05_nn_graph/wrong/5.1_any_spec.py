# plans.same_values
def simplify(graph: Graph) -> str:
    """x for identity(x), for reshape or expand to the same shape, and for a cast to the same dtype."""
    table, kept = {}, []
    for node in graph.nodes:
        if node.op in SAME:
            table[node.outputs[0]] = node.inputs[0]
        else:
            kept.append(node)
    graph.nodes = kept
    replace(graph, table)
    return ""
