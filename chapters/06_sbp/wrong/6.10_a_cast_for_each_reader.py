# training.casts
def zero(graph, parameters, stage, like):
    made, readers, alone = {}, graph.consumers(), set()
    for value, at in parameters.items():
        for reader in dict.fromkeys(readers.get(value, ())):
            if not reader.mutates:
                node = Node(HINT, (value,), HINT.complete(dict(sbp=at.sbp, forced=True)), [value.spec],
                            f"{value.name}-zero-{len(alone)}", reader.line)
                made.setdefault(reader, []).append(node)
                like.update({node: like[reader]} if reader in like else {})
                reader.inputs = tuple(node.outputs[0] if x is value else x for x in reader.inputs)
                alone.add(node)
    graph.nodes = [n for node in graph.nodes for n in (*made.get(node, ()), node)]
    return alone if stage == 3 else set()
