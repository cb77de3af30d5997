# training.casts
def zero(graph, parameters, stage, like):
    made, readers = {}, graph.consumers()

    def cast(value, at, reader):
        node = Node(HINT, (value,), HINT.complete(dict(sbp=at.sbp, forced=True)), [value.spec],
                    f"{value.name}-zero-{len(made)}", reader.line)
        made.setdefault(reader, []).append(node)
        if reader in like:
            like[node] = like[reader]
        return node.outputs[0]

    for value, at in parameters.items():
        found = [r for r in dict.fromkeys(readers.get(value, ())) if not r.mutates]
        if found:
            whole = cast(value, at, found[0])
            for r in found:
                r.inputs = tuple(whole if x is value else x for x in r.inputs)
    for node in [n for n in graph.nodes if n.mutates]:
        inputs = list(node.inputs)
        for members in groups(node):
            at = parameters.get(inputs[members[0]])
            for i in members if at is not None else ():
                if i not in node.mutates and inputs[i].shape == inputs[members[0]].shape:
                    inputs[i] = cast(inputs[i], at, node)
        node.inputs = tuple(inputs)
    graph.nodes = [n for node in graph.nodes for n in (*made.get(node, ()), node)]
    return set()
