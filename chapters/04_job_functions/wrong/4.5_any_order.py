# plans.same_values
def cse(graph):
    seen, table, kept = {}, {}, []
    for n in graph.nodes:
        if n.op.random or n.mutates or n.op.fresh:
            kept.append(n)
            continue
        key = (n.op, tuple(sorted(id(table.get(x, x)) for x in n.inputs)), repr(n.attrs))
        if key in seen:
            for a, b in zip(n.outputs, seen[key].outputs):
                table[a] = b
        else:
            seen[key] = n
            kept.append(n)
    graph.nodes = kept
    replace(graph, table)
    return ""
