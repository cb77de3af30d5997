# training.casts
def zero(graph, parameters, stage, like):
    made, readers, alone = {}, graph.consumers(), set()
    for value, at in parameters.items():
        found = list(dict.fromkeys(readers.get(value, ())))
        node = Node(HINT, (value,), HINT.complete(dict(sbp=at.sbp, forced=True)), [value.spec], f"{value.name}-zero",
                    found[0].line)
        made[found[0]] = [node]
        like.update({node: like[found[0]]} if found[0] in like else {})
        for r in found:
            r.inputs = tuple(node.outputs[0] if x is value else x for x in r.inputs)
    graph.nodes = [n for node in graph.nodes for n in (*made.get(node, ()), node)]
    return alone
