"""run: the plans of the ranks this thread owns, and one step of all of them."""
from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from flowedu.dist.comm import Engine
from flowedu.dist.graph.lower import RankGraph
from flowedu.graph.executor import Executor, scratch_bytes
from flowedu.graph.passes import run_passes
from flowedu.graph.plan import Plan, make_plan
from flowedu.ops.core import get_num_threads


@dataclass
class Memory:
    """Bytes one rank needs. arena: the peak of what a step computes; parameters; states, what optimizers remember; other
    variables and constants."""

    arena: int
    parameters: int
    states: int
    other: int

    @property
    def total(self) -> int:
        return self.arena + self.parameters + self.states + self.other


class RankPrograms:
    """Plans and executors of ranks.

    Args:
        engine: whose owned ranks these are.
        ranks: {rank: its graph}; passes have not run yet.
        off: passes that are switched off.
    """

    def __init__(self, engine: Engine, ranks: Mapping[int, RankGraph], off: Sequence[str] = ()):
        self.engine, self.ranks, self.off = engine, dict(ranks), tuple(off)
        self.report = {r: run_passes(g.graph, self.off) for r, g in self.ranks.items()}
        self.kept = {r: (list(g.graph.nodes), list(g.graph.outputs)) for r, g in self.ranks.items()}
        self.plans: dict[int, Plan] = {}
        self.executors: dict[int, Executor] = {}

    @property
    def threads(self) -> int:
        """How many threads the kernels of one rank use: its share of those of the process."""
        return max(1, get_num_threads() // (self.engine.local_size if self.engine.name == "threads" else len(self.ranks)))

    def link(self, arrays: Mapping[int, Mapping[str, object]], counter: str = "") -> None:
        """Plan over these tensors: {rank: {name of a variable or host value: tensor}}. counter: the variable that holds the
        number of steps made."""
        threads = self.threads
        for rank, g in self.ranks.items():
            graph = g.graph
            graph.nodes, graph.outputs = list(self.kept[rank][0]), list(self.kept[rank][1])
            found = {v: arrays[rank][n] for t in (graph.variables, graph.hosts) for n, v in t.items()}
            self.plans[rank] = make_plan(graph, found, lambda e, p: scratch_bytes(e, p, threads), self.report[rank],
                                         inplace="inplace" not in self.off, reuse="reuse" not in self.off)
            before = self.executors.get(rank)
            self.executors[rank] = executor = Executor(self.plans[rank], threads=threads)
            executor.as_tensors, executor.counter = True, arrays[rank].get(counter)
            executor.runs = before.runs if before is not None else 0
            written = {n.inputs[k] for n in graph.nodes for k in n.mutates}
            executor.written = [t for v, t in found.items() if v in written and v.kind == "variable"]

    def run(self, arguments: Mapping[int, tuple]) -> dict[int, list]:
        """One step of every rank, at the same time: {rank: its inputs} -> {rank: its outputs}. What one rank raises ends
        the step of all."""
        def program(rank):
            def step(comm):
                self.ranks[rank].end.comm = comm
                return self.executors[rank].run(arguments[rank])
            return step
        return self.engine.run({rank: program(rank) for rank in self.ranks})

    def memory(self, parameters: Container[str] = (), states: Container[str] = ()) -> dict[int, Memory]:
        """What every rank needs. parameters, states: names of variables."""
        found = {}
        for rank, plan in self.plans.items():
            size = {"parameters": 0, "states": 0, "other": 0}
            for b in plan.buffers:
                if b.kind in ("variable", "const"):
                    size["parameters" if b.name in parameters else "states" if b.name in states else "other"] += b.nbytes
            found[rank] = Memory(plan.arena, **size)
        return found
