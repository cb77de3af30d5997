# plans.same_values
def simplify(graph):
    graph.nodes = [n for n in graph.nodes if not (n.op in SAME and n.inputs[0].spec == n.outputs[0].spec)]
    return ""
