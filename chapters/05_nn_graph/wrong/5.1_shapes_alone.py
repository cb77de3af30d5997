# plans.same_values
def simplify(graph):
    gone = {n.outputs[0]: n.inputs[0] for n in graph.nodes if n.op in SAME
            and n.inputs[0].shape == n.outputs[0].shape}
    graph.nodes = [n for n in graph.nodes if not n.outputs or n.outputs[0] not in gone]
    replace(graph, gone)
    return ""
