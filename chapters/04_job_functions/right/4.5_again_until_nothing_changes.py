def cse(graph):
    while True:
        first, table = {}, {}
        for node in graph.nodes:
            if node.op.random or node.op.fresh or node.mutates:
                continue
            same = first.setdefault((id(node.op), node.inputs, make_key(node.attrs)), node)
            if same is not node:
                table.update(zip(node.outputs, same.outputs))
        if not table:
            return ""
        graph.nodes = [n for n in graph.nodes if not any(y in table for y in n.outputs)]
        replace(graph, table)
