# plans.same_values
def cse(graph):
    seen, table, kept = {}, {}, []
    for node in graph.nodes:
        node.inputs = tuple(table.get(x, x) for x in node.inputs)
        key = node.op, node.inputs, node.attrs
        if not (node.op.fresh or node.mutates) and key in seen:
            table.update(zip(node.outputs, seen[key].outputs))
            continue
        seen[key] = node
        kept.append(node)
    graph.nodes = kept
    replace(graph, table)
    return ""
