"""pipeline: the order of micro-batches over stages on different devices.

Unrolled, micro-batches follow each other: forward, backward, forward, backward. In that order one stage works
at a time. Here every stage gets the order 1F1B: of s stages the i-th (from 0) starts s - i micro-batches,
then backward and forward passes take turns. So all stages have work, and none keeps the activations of more
than s - i micro-batches.

The order is one list for all ranks; each rank keeps its own entries. (Narayanan et al., PipeDream-2BW and
Megatron, 2021.)
"""
from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from flowedu.core.graph.ir import Graph, GraphValue, Node

Pass = tuple[int, bool]              # micro-batch, whether backward


def one_forward_one_backward(graph: Graph, passes: Mapping[Node, Pass], stage: Mapping[Node, object]) -> None:
    """Put graph.nodes in order.

    Args:
        passes: of each node of a micro-batch, which one, and whether it is in the backward pass.
        stage: of each node where it runs (anything that can be compared; None: anywhere).
    """
    stages = list(dict.fromkeys(stage[n] for n in graph.nodes if n in passes and not passes[n][1] and stage[n] is not None))
    if len(stages) < 2 or not passes:
        return
    queues: dict[object, dict[Pass, deque[Node]]] = {s: {} for s in stages}
    free: list[Node] = []                # of no micro-batch, or of no stage: as soon as they can be
    last = [n for n in graph.nodes if n.mutates]
    for node in graph.nodes:
        if node.mutates:
            continue
        if node in passes and stage[node] in queues:
            queues[stage[node]].setdefault(passes[node], deque()).append(node)
        else:
            free.append(node)
    done: set[GraphValue] = {*graph.inputs.values(), *graph.variables.values(), *graph.hosts.values()}
    order: list[Node] = []

    def ready(node: Node) -> bool:
        return all(x in done for x in node.inputs)

    def emit(node: Node) -> None:
        order.append(node)
        done.update(node.outputs)

    turns = {s: deque(_turns(i, len(stages), sorted(queues[s]))) for i, s in enumerate(stages)}
    while free or any(turns.values()):
        before = len(order)
        waiting = []
        for node in free:
            if ready(node):
                emit(node)
            else:
                waiting.append(node)
        free = waiting
        for s in stages:                 # a node each in turn, as if all took the same time
            while turns[s] and not queues[s][turns[s][0]]:
                turns[s].popleft()
            if turns[s] and ready(queues[s][turns[s][0]][0]):
                emit(queues[s][turns[s][0]].popleft())
        if len(order) == before and (free or any(turns.values())):     # a stage that needs a later one first: no pipeline
            left = set(graph.nodes) - set(order) - set(last)
            node = next((n for n in graph.nodes if n in left and ready(n)), None)
            assert node is not None, "the graph has a cycle"
            for table in queues.values():
                for queue in table.values():
                    if node in queue:
                        queue.remove(node)
            free = [n for n in free if n is not node]
            emit(node)
    graph.nodes = order + last


def _turns(i: int, stages: int, found: list[Pass]) -> list[Pass]:
    """The passes of stage i in the order 1F1B."""
    forward = deque(p for p in found if not p[1])
    backward = deque(p for p in found if p[1])
    order: list[Pass] = []
    for _ in range(min(stages - i, len(forward))):
        order.append(forward.popleft())
    while forward or backward:
        if backward:
            order.append(backward.popleft())
        if forward:
            order.append(forward.popleft())
    return order
