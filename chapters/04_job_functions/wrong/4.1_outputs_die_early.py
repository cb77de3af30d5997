# memory.last_reads
def last_reads(graph):
    last = {}
    for number, node in enumerate(graph.nodes):
        for x in node.inputs:
            last[base(x)] = last[x] = number
    return last
