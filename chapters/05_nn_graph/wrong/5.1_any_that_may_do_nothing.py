# plans.same_values
def simplify(graph):
    gone = {n.outputs[0]: n.inputs[0] for n in graph.nodes if n.op in SAME}
    graph.nodes = [n for n in graph.nodes if n.op not in SAME]
    replace(graph, gone)
    return ""
