# steps.accumulated
def over_micro_batches(tracer, cuts, differentiate, k):
    nodes = tracer.graph.nodes
    last_cut = max((nodes.index(v.node) for slices in cuts for v in slices), default=-1)
    first = nodes[last_cut + 1:]
    found, table, forward = [], {}, first
    written = dict(tracer.written)
    for i in range(k):
        if i:
            before = table
            table = {slices[0]: slices[i] for slices in cuts}
            del before
            forward = repeat_forward(tracer, first, table)
        mark = len(nodes)
        found.append((table, differentiate(forward, table)))
        tracer.passes.update(dict.fromkeys(forward, (i, False)))
        tracer.passes.update(dict.fromkeys(nodes[mark:], (i, True)))
    tracer.written = {variable: table.get(value, value) for variable, value in written.items()}
    return found
