# steps.accumulated
def over_micro_batches(tracer, cuts: Sequence[Sequence[GraphValue]], differentiate: Callable, k: int) -> list[tuple]:
    """[(table, gradients)] of each micro-batch; a table maps values of the first to those of this one.

    Args:
        cuts: the slices of every input; build was traced on the first of each, after they were made.
        differentiate: (nodes, table) -> gradients.
    """
    nodes = tracer.graph.nodes

    def passed(i: int, forward: Sequence[Node], table: dict) -> tuple:
        before = len(nodes)
        grads = differentiate(forward, table)
        tracer.passes.update(dict.fromkeys(forward, (i, False)))
        tracer.passes.update(dict.fromkeys(nodes[before:], (i, True)))
        return table, grads

    last_cut = max((nodes.index(v.node) for slices in cuts for v in slices), default=-1)
    first = nodes[last_cut + 1:]
    found = [passed(0, first, {})]
    one = {}
    written = dict(tracer.written)
    for i in range(1, k):
        before = found[-1][0]
        table = one
        table.update({slices[0]: slices[i] for slices in cuts})
        table.update({variable: before.get(value, value) for variable, value in written.items()})
        found.append(passed(i, repeat_forward(tracer, first, table), table))
    last = found[-1][0]
    tracer.written = {variable: last.get(value, value) for variable, value in written.items()}
    return found
