"""ZeRO: splits values that are equal on all devices of a data-parallel group while they are not in use.

ZeRO is a choice of SBP. A parameter that is B along an axis of its placement becomes S(0) along that axis,
and so does its optimizer state. So each device updates only its part. A cast converts the parameter back to B
for its consumers.

    stage 1   one cast in a step; the gradient is all-reduced, then cut
    stage 2   the gradient is reduce-scattered: no device ever has all of it
    stage 3   a cast for every reader, in the forward and in the backward pass, whose result is freed after it

(Rajbhandari, Rasley, Ruwase and He, ZeRO, 2020.)
"""
from __future__ import annotations

from typing import Any

from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.sbp.sbp import Layout
from flowedu.distributed.graph.infer import HINT, groups


def shard(at: Layout, shape: tuple[int, ...], min_size: int) -> Layout:
    """Return the layout of a parameter under ZeRO.

    The layout is unchanged if the parameter has fewer than `min_size` elements, or is not B along any axis.
    """
    n = 1
    for d in shape:
        n *= d
    for axis, (s, k) in enumerate(zip(at.sbp, at.hierarchy)):
        if s == "B" and k > 1 and n >= min_size:
            split = Layout((*at.sbp[:axis], "S0", *at.sbp[axis + 1:]), at.devices, at.hierarchy)
            return split if split.fits(shape) else at
    return at


def zero(graph: Graph, parameters: Any, stage: int,
         like: dict[Node, object]) -> set[Node]:
    """Insert the casts into a logical graph.

    Return the casts whose result has one consumer only (see Inference).

    Args:
        graph: the logical graph.
        parameters: {parameter that is split from now on: the layout for its readers}.
        stage: 1, 2, or 3.
        like: {node: value}. Each new node is added with the value of its consumer.
    """
    readers = graph.consumers()
    inserted: dict[Node, list[Node]] = {}        # {node: the new nodes before it}
    own_casts: set[Node] = set()                 # those of stage 3

    def insert(node: Node, reader: Node) -> GraphValue:
        """Insert `node` before its only reader, and return its output."""
        inserted.setdefault(reader, []).append(node)
        if reader in like:
            like[node] = like[reader]
        return node.outputs[0]

    def cast(value: GraphValue, at: Layout, reader: Node) -> GraphValue:
        attrs = HINT.complete(dict(sbp=at.sbp, forced=True))
        name = f"{value.name}-zero-{sum(map(len, inserted.values()))}"
        return insert(Node(HINT, (value,), attrs, [value.spec], name, reader.line), reader)

    def replace_input(node: Node, old: GraphValue, new: GraphValue) -> None:
        node.inputs = tuple(new if x is old else x for x in node.inputs)

    def share_cast(value: GraphValue, at: Layout) -> None:
        """Stages 1 and 2: insert one cast before the first reader, for all readers."""
        consumers = [r for r in dict.fromkeys(readers.get(value, ())) if not r.mutates]
        if consumers:
            whole = cast(value, at, consumers[0])
            for reader in consumers:
                replace_input(reader, value, whole)

    def follow_views(value: GraphValue, views: tuple[Node, ...] = ()):
        """Yield (value that is read, views between it and the parameter, reader)."""
        for reader in dict.fromkeys(readers.get(value, ())):
            if reader.op.view is not None and len(reader.inputs) == 1 and reader.op is not HINT \
                    and reader.outputs[0] not in graph.outputs:
                yield from follow_views(reader.outputs[0], (*views, reader))
            elif not reader.mutates:
                yield value, views, reader

    def cast_for_each_reader(value: GraphValue, at: Layout) -> None:
        """Stage 3: insert a cast, and copies of the views after it, before every reader."""
        for source, views, reader in list(follow_views(value)):
            copy = cast(value, at, reader)
            own_casts.add(copy.node)
            for view in views:
                name = f"{view.name}-{copy.node.name}"               # a shared view has several copies
                node = Node(view.op, (copy,), view.attrs, [view.outputs[0].spec], name, view.line)
                copy = insert(node, reader)
            replace_input(reader, source, copy)

    def cast_gradients(update: Node) -> None:
        """Stage 1: cast the gradients of split parameters before their update."""
        inputs = list(update.inputs)
        for members in groups(update):
            weight = update.inputs[members[0]]
            for i in members if weight in parameters else ():
                if i not in update.mutates and update.inputs[i].shape == weight.shape:
                    inputs[i] = cast(update.inputs[i], parameters[weight], update)
        update.inputs = tuple(inputs)

    for value, at in parameters.items():
        if stage < 3:
            share_cast(value, at)
        else:
            cast_for_each_reader(value, at)
    if stage == 1:
        for node in graph.nodes:
            if node.mutates:
                cast_gradients(node)
    graph.nodes = [n for node in graph.nodes for n in (*inserted.get(node, ()), node)]
    return own_casts
