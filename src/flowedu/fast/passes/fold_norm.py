"""The pass fold_norm merges batch norm (and relu or relu6) into the convolution before it, in inference.

batch_norm_infer is y * scale + shift with one scale and shift per channel. The scale cannot be multiplied
into the weights once, because a training job may change these variables between two runs. Instead, the
convolution kernel scales and shifts its result while it is in the cache, which costs as little as adding a
bias.
"""
from __future__ import annotations

from math import inf

from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.graph.rewrite import attributes, rebuilt, replace
from flowedu.fast.ops.conv_last import conv2d_last, conv2d_last_norm
from flowedu.fast.passes.norm_clip import LIMITS
from flowedu.ops.norm import batch_norm_infer


def fold_norm(graph: Graph) -> str:
    """Merge conv2d_last -> batch_norm_infer [-> relu or relu6] into conv2d_last_norm.

    The values between these ops must have no other readers.
    """
    readers, outputs = graph.consumers(), set(graph.outputs)

    def only_reader(value: GraphValue) -> Node | None:
        users = readers.get(value, ())
        return users[0] if len(users) == 1 and value not in outputs else None

    table: dict[GraphValue, GraphValue] = {}
    new_nodes: dict[Node, Node] = {}
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
                      {**attributes(conv), "epsilon": attributes(norm)["epsilon"], "low": low, "high": high},
                      last)
        new_nodes[last] = new
        gone.update({conv, norm} - {last})
        table[last.outputs[0]] = new.outputs[0]
    graph.nodes = [new_nodes.get(n, n) for n in graph.nodes if n not in gone]
    replace(graph, table)
    return f"{len(new_nodes)} batch norms moved into convolutions" if new_nodes else ""
