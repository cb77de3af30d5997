# plans.same_values
def cse(graph):
    seen, table, kept = {}, {}, []
    for node in graph.nodes:
        key = (node.inputs, node.attrs)
        if key in seen and node.outputs and not node.op.random and not node.mutates:
            table.update(zip(node.outputs, seen[key].outputs))
        else:
            seen[key] = node
            kept.append(node)
    graph.nodes = kept
    replace(graph, table)
    return ""
