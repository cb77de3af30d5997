# compiled.folded
def fold_norm(graph: Graph) -> str:
    """conv2d_last -> batch_norm_infer [-> relu or relu6], each read by the next alone, become conv2d_last_norm."""
    readers, outputs = graph.consumers(), set(graph.outputs)

    def only_reader(value: GraphValue) -> Node | None:
        found = readers.get(value, ())
        return found[0] if len(found) == 1 and value not in outputs else None

    table: dict[GraphValue, GraphValue] = {}
    made: dict[Node, Node] = {}
    gone: set[Node] = set()
    for conv in graph.nodes:
        norm = only_reader(conv.outputs[0]) if conv.op is conv2d_last else None
        if norm is None or norm.op is not batch_norm_infer or attributes(norm)["axis"] % 4 != 3 \
                or norm.inputs[0] is not conv.outputs[0]:
            continue
        act = only_reader(norm.outputs[0])
        act = act if act is not None and act.op in LIMITS else None
        last = act or norm
        low, high = LIMITS[act.op] if act else (-inf, inf)
        new = rebuilt(conv2d_last_norm, (*conv.inputs, *norm.inputs[1:]),
                      {"epsilon": attributes(norm)["epsilon"], "low": low, "high": high}, last)
        made[last] = new
        gone.update({conv, norm} - {last})
        table[last.outputs[0]] = new.outputs[0]
    graph.nodes = [made.get(n, n) for n in graph.nodes if n not in gone]
    replace(graph, table)
    return f"{len(made)} batch norms moved into convolutions" if made else ""
