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
            found = Layout((*at.sbp[:axis], "S0", *at.sbp[axis + 1:]), at.devices, at.hierarchy)
            return found if found.fits(shape) else at
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
    made: dict[Node, list[Node]] = {}            # {node: the casts to insert before it}
    alone: set[Node] = set()
    readers = graph.consumers()

    def cast(value: GraphValue, at: Layout, reader: Node) -> Node:
        attrs = HINT.complete(dict(sbp=at.sbp, forced=True))
        node = Node(HINT, (value,), attrs, [value.spec], f"{value.name}-zero-{sum(map(len, made.values()))}",
                    reader.line)
        made.setdefault(reader, []).append(node)
        if reader in like:
            like[node] = like[reader]
        return node

    def through_views(value: GraphValue, chain: tuple[Node, ...]):
        """Return (views between, reader) of a parameter."""
        for reader in dict.fromkeys(readers.get(value, ())):
            if reader.op.view is not None and len(reader.inputs) == 1 and reader.op is not HINT \
                    and reader.outputs[0] not in graph.outputs:
                yield from through_views(reader.outputs[0], (*chain, reader))
            elif not reader.mutates:
                yield value, chain, reader

    for value, at in parameters.items():
        if stage < 3:
            found = [r for r in dict.fromkeys(readers.get(value, ())) if not r.mutates]
            if found:
                whole = cast(value, at, found[0]).outputs[0]
                for reader in found:
                    reader.inputs = tuple(whole if x is value else x for x in reader.inputs)
            continue
        for seen, chain, reader in list(through_views(value, ())):
            node = cast(value, at, reader)
            alone.add(node)
            now = node.outputs[0]
            for view in chain:
                again = Node(view.op, (now,), view.attrs, [view.outputs[0].spec], f"{view.name}-zero",
                             view.line)
                made[reader].append(again)
                if reader in like:
                    like[again] = like[reader]
                now = again.outputs[0]
            reader.inputs = tuple(now if x is seen else x for x in reader.inputs)
    if stage == 1:
        for node in [n for n in graph.nodes if n.mutates]:
            inputs = list(node.inputs)
            for members in groups(node):
                at = parameters.get(node.inputs[members[0]])
                for i in members if at is not None else ():
                    if i not in node.mutates and node.inputs[i].shape == node.inputs[members[0]].shape:
                        inputs[i] = cast(node.inputs[i], at, node).outputs[0]
            node.inputs = tuple(inputs)
    graph.nodes = [n for node in graph.nodes for n in (*made.get(node, ()), node)]
    return alone
