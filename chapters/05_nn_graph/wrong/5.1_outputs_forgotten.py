# plans.same_values
def simplify(graph):
    table, kept = {}, []
    for node in graph.nodes:
        node.inputs = tuple(table.get(x, x) for x in node.inputs)
        if node.op in SAME and node.inputs[0].spec == node.outputs[0].spec:
            table[node.outputs[0]] = node.inputs[0]
        else:
            kept.append(node)
    graph.nodes = kept
    return ""
