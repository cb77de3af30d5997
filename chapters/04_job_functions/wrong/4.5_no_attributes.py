# plans.same_values
def cse(graph):
    seen, table, kept = {}, {}, []
    for node in graph.nodes:
        node.inputs = tuple(table.get(x, x) for x in node.inputs)
        key = (node.op, node.inputs)
        if key in seen and not node.op.random and not node.mutates:
            table.update(zip(node.outputs, seen[key].outputs))
        else:
            seen[key] = node
            kept.append(node)
    graph.nodes = kept
    replace(graph, table)
    return ""
