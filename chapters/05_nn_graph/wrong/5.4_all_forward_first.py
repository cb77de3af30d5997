# steps.peak
def over_micro_batches(tracer, cuts, differentiate, k):
    nodes = tracer.graph.nodes
    last_cut = max((nodes.index(v.node) for slices in cuts for v in slices), default=-1)
    forwards, tables, written = [nodes[last_cut + 1:]], [{}], dict(tracer.written)
    for i in range(1, k):
        tables.append({slices[0]: slices[i] for slices in cuts})
        tables[-1].update({variable: tables[-2].get(value, value) for variable, value in written.items()})
        forwards.append(repeat_forward(tracer, forwards[0], tables[-1]))
    found = []
    for i, (forward, table) in enumerate(zip(forwards, tables)):
        mark = len(nodes)
        found.append((table, differentiate(forward, table)))
        tracer.passes.update(dict.fromkeys(forward, (i, False)))
        tracer.passes.update(dict.fromkeys(nodes[mark:], (i, True)))
    tracer.written = {variable: tables[-1].get(value, value) for variable, value in written.items()}
    return found
