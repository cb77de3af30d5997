# memory.last_reads
def last_reads(graph):
    last = {}
    for number, node in enumerate(graph.nodes):
        for x in node.inputs:
            last[base(x)] = number
    for value in graph.outputs:
        last[value] = len(graph.nodes)
    return last
