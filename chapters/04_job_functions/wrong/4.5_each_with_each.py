# plans.pass_fast
def cse(graph):
    table, kept = {}, []
    for node in graph.nodes:
        node.inputs = tuple(table.get(x, x) for x in node.inputs)
        if node.op.random or node.mutates or node.op.fresh:
            kept.append(node)
            continue
        for old in kept:
            same = old.op is node.op and old.inputs == node.inputs
            other = old.op.random or old.mutates or old.op.fresh
            if same and make_key(old.attrs) == make_key(node.attrs) and not other:
                table.update(zip(node.outputs, old.outputs))
                break
        else:
            kept.append(node)
    graph.nodes = kept
    replace(graph, table)
    return ""
