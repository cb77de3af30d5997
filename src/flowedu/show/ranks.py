"""Memory of each rank of a graph of global tensors, as numbers and as text."""
from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from flowedu.core.layers.parameter import Parameter


@dataclass
class Memory:
    """Bytes of memory that one rank needs.

    Attributes: arena, the peak of a step; parameters; states, of optimizers; other, variables and constants.
    """

    arena: int
    parameters: int
    states: int
    other: int

    @property
    def total(self) -> int:
        return self.arena + self.parameters + self.states + self.other


def memory(view) -> dict[int, Memory]:
    """Return the memory of each owned rank of a GlobalView (distributed/graph/view.py)."""
    variables = view.tracer.variables
    parameters = {n for n, t in variables.items() if isinstance(t, Parameter)}
    return of_programs(view.programs, parameters, {n for n, t in variables.items()
                                                   if n in view.owner._states and t is not view.counter})


def of_programs(ranks, parameters: Container[str] = (), states: Container[str] = ()) -> dict[int, Memory]:
    """Return the memory of each rank. parameters, states: names of variables."""
    result = {}
    for rank, program in ranks.programs.items():
        size = {"parameters": 0, "states": 0, "other": 0}
        for b in program.plan.buffers:
            if b.kind in ("variable", "const"):
                kind = "states" if b.name in states else "other"
                size["parameters" if b.name in parameters else kind] += b.nbytes
        result[rank] = Memory(program.plan.arena, **size)
    return result


def text(view) -> str:
    """Format the bytes moved per step, and the memory of each rank."""
    lines = [f"moved in one step: {view.bytes:,} bytes"]
    for r, m in memory(view).items():
        lines.append(f"rank {r}: {m.total:,} bytes: arena {m.arena:,}, parameters {m.parameters:,}, states "
                     f"{m.states:,}, other {m.other:,}; sends {view.ranks[r].bytes_sent:,} bytes in a step")
    return "\n".join(lines)
