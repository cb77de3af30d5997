"""Small gradients that are all-reduced in one group take one message instead of many.

core/sbp/graph/lower.py asks here when it comes to an update."""
from __future__ import annotations

import numpy as np

from flowedu.core.graph.ir import GraphValue, Node
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.record import Meaning
from flowedu.core.sbp.boxing.primitives import ALL_REDUCE
from flowedu.core.sbp.boxing.primitives import groups as reducing
from flowedu.core.sbp.graph.lower import letters, record
from flowedu.core.sbp.infer import Boxed, Row
from flowedu.core.values.spec import Spec

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
    """{gradient: its sum}, of those that travel together. mine: the RankGraph to which the nodes are appended."""
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
        node = Node(all_reduce, parts, (group, src.reducer, mine.end), [Spec((size,), dtype)], f"{len(parts)} gradients",
                    row.node.line)
        mine.graph.nodes.append(node)
        mine.sent += sum(n for b in found for sender, _, n in b.route.messages() if sender == mine.rank)
        at = 0
        with mine.graph.building():
            for b, p in zip(found, parts):
                y = REGISTRY["slice"](node.outputs[0], start=(at,), stop=(at + p.spec.size,), step=(1,))
                made[b.value] = REGISTRY["reshape"](y, shape=p.shape)
                at += p.spec.size
    return made
