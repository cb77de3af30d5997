def last_reads(graph):
    last = {}
    for number in range(len(graph.nodes) - 1, -1, -1):
        for x in graph.nodes[number].inputs:
            last.setdefault(base(x), number)
    last.update((base(v), len(graph.nodes)) for v in graph.outputs)
    return last
