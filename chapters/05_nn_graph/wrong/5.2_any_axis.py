# compiled.folded
def fold_norm(graph):
    readers, outputs = graph.consumers(), set(graph.outputs)
    table, made, gone = {}, {}, set()

    def only_reader(value):
        found = readers.get(value, ())
        return found[0] if len(found) == 1 and value not in outputs else None

    for conv in graph.nodes:
        norm = only_reader(conv.outputs[0]) if conv.op is conv2d_last else None
        if norm is None or norm.op is not batch_norm_infer:
            continue
        act = only_reader(norm.outputs[0])
        act = act if act is not None and act.op in LIMITS else None
        last = act or norm
        low, high = LIMITS[act.op] if act else (-inf, inf)
        new = rebuilt(conv2d_last_norm, (*conv.inputs, *norm.inputs[1:]),
                      {**attributes(conv), "epsilon": attributes(norm)["epsilon"], "low": low, "high": high}, last)
        made[last] = new
        gone.update({conv, norm} - {last})
        table[last.outputs[0]] = new.outputs[0]
    graph.nodes = [made.get(n, n) for n in graph.nodes if n not in gone]
    replace(graph, table)
    return ""
