"""Passes that speed up the graphs of ranks (distributed/graph/lower.py) by removing messages."""
from __future__ import annotations

import numpy as np

from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.ops.concat import slice as slice_op
from flowedu.core.ops.record import Meaning
from flowedu.core.ops.view import constant, expand, reshape
from flowedu.core.sbp.boxing.algebra import Route
from flowedu.core.sbp.boxing.primitives import ALL_REDUCE
from flowedu.core.sbp.boxing.primitives import groups as reducing
from flowedu.core.values.spec import Spec
from flowedu.distributed.graph.infer import Boxed, Row
from flowedu.distributed.graph.nodes import letters, record

SMALL = 1 << 16                      # bytes of a value up to which the message costs more than its copy


def _summed(xs, group, reducer, end):
    flat = np.concatenate([x.reshape(-1) for x in xs])
    return end.comm.all_reduce(flat, group, op=reducer, what="gradients together", out=flat)


all_reduce = record(
    "all_reduce(*xs, group, reducer, end) -> y",
    Meaning(lambda xs: ",".join(letters(x.ndim, "A") for x in xs) + "->Z", _summed,
            shape=lambda xs: (sum(x.size for x in xs),)),
    doc="Small arrays of one dtype all-reduced together: the results, one after the other.")


def together(mine, row: Row) -> dict[GraphValue, GraphValue]:
    """Use one message for all small gradients that one group all-reduces. Return {gradient: its sum}.

    The nodes are appended to the RankGraph `mine`.
    """
    sets: dict[tuple, list[Boxed]] = {}
    for b in row.boxed:
        r = b.route
        if len(r.hops) == 1 and r.hops[0].primitive is ALL_REDUCE and b.value.spec.nbytes <= SMALL:
            key = r.src, b.value.dtype, reducing(r.src, r.dst, b.value.shape)
            sets.setdefault(key, []).append(b)
    made = {}
    for (src, dtype, lines), found in sets.items():
        group = next((tuple(sorted(line)) for line in lines if mine.rank in line), None)
        if group is None or len(found) == 1:
            continue
        parts = [mine.find(b.value, src) for b in found]
        size = sum(p.spec.size for p in parts)
        node = Node(all_reduce, parts, (group, src.reducer, mine.end), [Spec((size,), dtype)],
                    mine.unique_name(f"{len(parts)} gradients"),
                    row.node.line if row.node is not None else "")
        mine.graph.nodes.append(node)
        mine.moved[node.name] = sum(n for b in found for sender, _, n in b.route.messages()
                                    if sender == mine.rank)
        at = 0
        with mine.graph.building():
            for b, p in zip(found, parts):
                y = slice_op(node.outputs[0], start=(at,), stop=(at + p.spec.size,), step=(1,))
                made[b.value] = reshape(y, shape=p.shape)
                at += p.spec.size
    return made


def carve(mine, route: Route, part: GraphValue | None) -> GraphValue | None:
    """Replace a route without messages by ops on this rank's own part, or by zeros.

    Parts of other ranks that are equal to this rank's part are replaced by it. All other parts are replaced
    by zeros. Nodes that the result of this rank does not need are removed.
    """
    if not route.hops:
        return part
    graph, src, spec = mine.graph, route.src, route.hops[0].spec
    before = len(graph.nodes)
    with graph.building():
        def locate(i: int) -> tuple:
            return src.box(spec.shape, i), src.slot(i)

        own = None if part is None else locate(src.devices.index(mine.rank))
        parts = [part if locate(i) == own else constant(
            shape=src.local_shape(spec.shape, i), value=0, dtype=spec.dtype) for i in range(src.k)]
        out = route.run(parts)[route.dst.devices.index(mine.rank)]
    needed, kept = {out}, []
    for node in reversed(graph.nodes[before:]):
        if not needed.isdisjoint(node.outputs):
            needed.update(node.inputs)
            kept.append(node)
    graph.nodes[before:] = kept[::-1]
    return out


def unread(graph: Graph) -> None:
    """Replace the inputs of random ops by zeros without memory, because only their shape is used.

    These inputs then need no boxing.
    """
    nodes, graph.nodes = graph.nodes, []
    old = graph.placement
    with graph.building():
        for node in nodes:
            if node.op.random and node.inputs:
                graph.placement = node.placement
                for x in dict.fromkeys(node.inputs):
                    zero = constant(shape=(), value=0, dtype=x.dtype)
                    y = expand(zero, shape=x.shape)
                    y.name = f"{x.name} (shape)"
                    node.inputs = tuple(y if i is x else i for i in node.inputs)
            graph.nodes.append(node)
    graph.placement = old
