"""Memory of each rank of a graph of global tensors, as numbers and as text."""
from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from flowedu.core.layers.parameter import Parameter


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


def memory(view) -> dict[int, Memory]:
    """What each owned rank of a GlobalView (distributed/graph/view.py) needs."""
    variables = view.tracer.variables
    parameters = {n for n, t in variables.items() if isinstance(t, Parameter)}
    return of_programs(view.programs, parameters, {n for n, t in variables.items()
                                                   if n in view.owner._states and t is not view.counter})


def of_programs(ranks, parameters: Container[str] = (), states: Container[str] = ()) -> dict[int, Memory]:
    """What every rank needs. parameters, states: names of variables."""
    found = {}
    for rank, program in ranks.programs.items():
        size = {"parameters": 0, "states": 0, "other": 0}
        for b in program.plan.buffers:
            if b.kind in ("variable", "const"):
                size["parameters" if b.name in parameters else "states" if b.name in states else "other"] += b.nbytes
        found[rank] = Memory(program.plan.arena, **size)
    return found


def text(view) -> str:
    """Bytes and memory, rank by rank."""
    lines = [f"moved in one step: {view.bytes:,} bytes"]
    for r, m in memory(view).items():
        lines.append(f"rank {r}: {m.total:,} bytes: arena {m.arena:,}, parameters {m.parameters:,}, states "
                     f"{m.states:,}, other {m.other:,}; sends {view.ranks[r].sent:,} bytes in a step")
    return "\n".join(lines)
