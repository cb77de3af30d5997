# memory.last_reads
def last_reads(graph):
    last = {}
    for number, node in enumerate(graph.nodes):
        for x in node.inputs:
            last.setdefault(base(x), number)
    for value in graph.outputs:
        last[base(value)] = len(graph.nodes)
    return last
