"""pipeline: the order of micro-batches over stages on different devices.

In the traced graph, micro-batches follow each other: forward, backward, forward, backward. In that order only
one stage works at a time. Here every stage gets the order 1F1B (one forward, one backward). With s stages,
stage i (from 0) first runs s - i forward passes, and then alternates backward and forward passes. So all
stages have work, and stage i never keeps the activations of more than s - i micro-batches.

The order is one list for all ranks; each rank keeps its own entries. (Narayanan et al., PipeDream-2BW and
Megatron, 2021.)
"""
from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from flowedu.core.graph.ir import Graph, GraphValue, Node

Pass = tuple[int, bool]              # micro-batch, True for the backward pass


def one_forward_one_backward(graph: Graph, passes: Mapping[Node, Pass], stage: Mapping[Node, object]) -> None:
    """Reorder graph.nodes.

    Args:
        graph: the graph.
        passes: {node of a micro-batch: (micro-batch, True for the backward pass)}.
        stage: {node: its stage}, any comparable value; None for nodes without a stage.
    """
    forward = [n for n in graph.nodes if n in passes and not passes[n][1]]
    stages = list(dict.fromkeys(stage[n] for n in forward if stage[n] is not None))
    if len(stages) < 2:
        return

    schedule = _Schedule(graph, passes, stage, stages)
    while not schedule.is_finished():
        emitted = schedule.emit_free_nodes()
        for s in stages:                 # one node per stage in turn, as if all took the same time
            emitted |= schedule.emit_next_node(s)
        if not emitted and not schedule.is_finished():
            schedule.emit_first_ready_node()
    graph.nodes = schedule.order + schedule.updates


class _Schedule:
    """The new order of a graph's nodes, and the nodes that are not in it yet.

    Attributes:
        order: the nodes so far.
        updates: the nodes that write variables. They follow all others.
        others: the other nodes, in the order of the graph.
        free: nodes without micro-batch or stage, which are emitted as soon as possible.
        queues: {stage: {pass: its nodes}}.
        turns: {stage: its passes, in the order 1F1B}.
        done: the values of inputs and variables, and the outputs of `order`.
    """

    def __init__(self, graph: Graph, passes: Mapping[Node, Pass], stage: Mapping[Node, object], stages: list):
        self.order: list[Node] = []
        self.updates = [n for n in graph.nodes if n.mutates]
        self.others = [n for n in graph.nodes if not n.mutates]
        self.free: list[Node] = []
        self.queues: dict[object, dict[Pass, deque[Node]]] = {s: {} for s in stages}
        self.done: set[GraphValue] = {*graph.inputs.values(), *graph.variables.values()}
        self.done.update(graph.hosts.values())
        for node in self.others:
            if node in passes and stage[node] in self.queues:
                self.queues[stage[node]].setdefault(passes[node], deque()).append(node)
            else:
                self.free.append(node)
        self.turns = {s: deque(_turns(i, len(stages), sorted(self.queues[s]))) for i, s in enumerate(stages)}

    def is_finished(self) -> bool:
        return not self.free and not any(self.turns.values())

    def is_ready(self, node: Node) -> bool:
        return all(x in self.done for x in node.inputs)

    def emit(self, node: Node) -> None:
        self.order.append(node)
        self.done.update(node.outputs)

    def emit_free_nodes(self) -> bool:
        """Emit the free nodes that are ready. Return True if there was one."""
        waiting = []
        for node in self.free:
            if self.is_ready(node):
                self.emit(node)
            else:
                waiting.append(node)
        emitted = len(waiting) < len(self.free)
        self.free = waiting
        return emitted

    def emit_next_node(self, stage: object) -> bool:
        """Emit the next node of a stage in its order 1F1B. Return False if none is ready."""
        queues, turns = self.queues[stage], self.turns[stage]
        while turns and not queues[turns[0]]:
            turns.popleft()
        if not turns:
            return False
        queue = queues[turns[0]]
        if not self.is_ready(queue[0]):
            return False
        self.emit(queue.popleft())
        return True

    def emit_first_ready_node(self) -> None:
        """Emit the first ready node of the graph, where a stage depends on a later one."""
        emitted = set(self.order)
        node = next((n for n in self.others if n not in emitted and self.is_ready(n)), None)
        assert node is not None, "the graph has a cycle"
        for queues in self.queues.values():
            for queue in queues.values():
                if node in queue:
                    queue.remove(node)
        self.free = [n for n in self.free if n is not node]
        self.emit(node)


def _turns(i: int, stages: int, found: list[Pass]) -> list[Pass]:
    """Return the passes of stage i in the order 1F1B."""
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
