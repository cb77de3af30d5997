def dead(graph):
    makers = {y: n for n in graph.nodes for y in n.outputs}
    todo = [makers[v] for v in graph.outputs if v in makers]
    todo += [n for n in graph.nodes if n.mutates or n.op.effect]
    needed = set()
    while todo:
        node = todo.pop()
        if node not in needed:
            needed.add(node)
            todo += [makers[x] for x in node.inputs if x in makers]
    graph.nodes = [n for n in graph.nodes if n in needed]
    return ""
