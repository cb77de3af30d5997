"""run: the programs of the ranks this thread owns, and one step of all of them."""
from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from flowedu.core.graph.program import Program
from flowedu.core.sbp.graph.lower import RankGraph
from flowedu.core.sbp.ranks import Engine


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
    """A Program for every rank.

    Args:
        engine: whose owned ranks these are.
        ranks: {rank: its graph}; passes have not run yet.
        off: passes that are switched off.

    Attributes: programs, {rank: Program}.
    """

    def __init__(self, engine: Engine, ranks: Mapping[int, RankGraph], off: Sequence[str] = ()):
        self.engine, self.ranks = engine, dict(ranks)
        together = engine.local_size if engine.name == "threads" else len(self.ranks)
        self.programs = {r: Program(g.graph, off, share=together) for r, g in self.ranks.items()}

    def link(self, arrays: Mapping[int, Mapping[str, object]], counter: str = "") -> None:
        """Lay out over these tensors: {rank: {name of a variable or host value: tensor}}. counter: the variable that holds
        the number of steps made."""
        for rank, program in self.programs.items():
            graph, mine = program.graph, arrays[rank]
            program.link({v: mine[n] for t in (graph.variables, graph.hosts) for n, v in t.items()}, mine.get(counter))

    def stale(self) -> bool:
        """Whether a rank's layout does not hold any more."""
        return any(p.stale() for p in self.programs.values())

    def run(self, arguments: Mapping[int, tuple]) -> dict[int, list]:
        """One step of every rank, at the same time: {rank: its inputs} -> {rank: its outputs}. What one rank raises ends
        the step of all."""
        def program(rank):
            def step(comm):
                self.ranks[rank].end.comm = comm
                return self.programs[rank].run(arguments[rank])
            return step
        return self.engine.run({rank: program(rank) for rank in self.ranks})

    def memory(self, parameters: Container[str] = (), states: Container[str] = ()) -> dict[int, Memory]:
        """What every rank needs. parameters, states: names of variables."""
        found = {}
        for rank, program in self.programs.items():
            size = {"parameters": 0, "states": 0, "other": 0}
            for b in program.plan.buffers:
                if b.kind in ("variable", "const"):
                    size["parameters" if b.name in parameters else "states" if b.name in states else "other"] += b.nbytes
            found[rank] = Memory(program.plan.arena, **size)
        return found
