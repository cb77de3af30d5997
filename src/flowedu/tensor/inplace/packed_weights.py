"""Cache of packed weights for graphs that only read their weights, valid until a weight is written.

Packed weights are a second copy of the weights in memory, so only graphs without updates cache them. Before a
run, two counters show if the weights were written since the last run. One counts the ops that wrote into
their memory, and the other counts how often the memory was shared with other objects. While another library
holds the memory (a live `w.numpy()`, or the array that the weights were made from), writes cannot be
detected. Kernels then pack the weights in every run, as in training.
"""
from __future__ import annotations

from typing import Any

from flowedu.core.eager.tensor import Tensor
from flowedu.core.graph.ir import GraphValue, base
from flowedu.core.graph.program import Program
from flowedu.ops.kept import KEPT
from flowedu.tensor.inplace.writing import last_writes


def find_kept(program: Program) -> set[GraphValue]:
    """Mark the nodes whose packed weights come from variables (`graph.kept`), and return the variables."""
    graph = program.graph
    if type(program) is not Program or program.place or any(node.mutates for node in graph.nodes):
        return set()
    found = {node: {base(node.inputs[i]) for i in KEPT[node.op]} for node in graph.nodes if node.op in KEPT}
    graph.kept = frozenset(n for n, values in found.items() if all(v.kind == "variable" for v in values))
    return {v for n in graph.kept for v in found[n]}


class Kept:
    """Validity of packed weights in scratch memory, checked before each run.

    `weights` is the result of find_kept.
    """

    def __init__(self, program: Program, weights: set[GraphValue]) -> None:
        self.program = program
        self.weights: list[Tensor] = [program.arrays[v] for v in weights]
        self.executor: Any = None
        self.held: list[Tensor] = []
        self.seen: Any = None
        self.runs, self.there = 0, False

    def look(self) -> None:
        """Mark the packed weights in the executor as valid or invalid.

        They are valid if a successful run packed them in this memory and no weight has changed.
        """
        executor, now = self.program.executor, last_writes(self.weights)
        if executor is not self.executor:                      # packed again: other memory, or other weights
            self.executor, self.there, self.seen = executor, False, None
            self.held = [w.detach() for w in self.weights]     # kept alive, so that its address stays unique
        there = now is not None and now == self.seen and executor.runs > self.runs
        if not there:
            self.seen, self.runs = now, executor.runs
        if there != self.there:
            executor.set_kept(there)
            self.there = there
