def simplify(graph):
    going = True
    while going:
        going = False
        for i, node in enumerate(graph.nodes):
            if node.op in SAME and node.outputs[0].spec == node.inputs[0].spec:
                graph.nodes = graph.nodes[:i] + graph.nodes[i + 1:]
                replace(graph, {node.outputs[0]: node.inputs[0]})
                going = True
                break
    return ""
