"""GlobalView: a graph of global tensors. The logical graph of `build` becomes one graph for each rank.

After the trace it infers the layouts of all values (infer.py), creates the ranks' graphs (lower.py), and
plans them. A step runs the plans of all ranks of this thread at the same time.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import RLock
from typing import Any

from flowedu.core import extensions
from flowedu.core.eager.arrays import copy_of
from flowedu.core.eager.dispatch import take_parts
from flowedu.core.eager.tensor import Tensor
from flowedu.core.graph.ir import GraphValue
from flowedu.core.graph.passes import cse
from flowedu.core.graph.plan import Plan
from flowedu.core.graph.program import Program
from flowedu.core.graph.rewrite import dead
from flowedu.core.sbp.ranks import Engine, current, world
from flowedu.core.sbp.tensor.interpreter import assemble, parts_of
from flowedu.core.values.spec import Spec
from flowedu.distributed.global_graph import prepared
from flowedu.distributed.graph.infer import Inference
from flowedu.distributed.graph.lower import RankGraph, lower
from flowedu.distributed.layouts import lay_at, value_in_layout
from flowedu.distributed.rank_graphs import unread
from flowedu.distributed.ranks.identity import GraphSource, describe_graph, identity_of
from flowedu.errors import GraphError


class RankPrograms:
    """One Program per rank.

    Args:
        engine: the engine of these ranks.
        ranks: {rank: its graph}, before passes.
        off: passes that are switched off.

    Attributes:
        programs: {rank: Program}.
    """

    def __init__(self, engine: Engine, ranks: Mapping[int, RankGraph], off: Sequence[str] = ()):
        self.engine, self.ranks = engine, dict(ranks)
        together = engine.local_size if engine.name == "threads" else len(self.ranks)
        self.programs = {r: Program(g.graph, off, share=together) for r, g in self.ranks.items()}

    def link(self, arrays: Mapping[int, Mapping[str, Any]], counter: str = "") -> None:
        """Link the plans to tensors, {rank: {name of a variable or host value: tensor}}.

        `counter` is the variable that holds the number of steps.
        """
        for rank, program in self.programs.items():
            graph, mine = program.graph, arrays[rank]
            program.link({v: mine[n] for t in (graph.variables, graph.hosts) for n, v in t.items()},
                         mine.get(counter))

    def stale(self) -> bool:
        """Return True if the plan of a rank is no longer valid."""
        return any(p.stale() for p in self.programs.values())

    def run(self, arguments: Mapping[int, tuple], identity: int = 0) -> dict[int, list]:
        """Run one step of every rank at the same time: {rank: its inputs} -> {rank: its outputs}.

        An exception of one rank ends the step of all. `identity` is the identity of the step, which ranks
        compare when they communicate.
        """
        def program(rank):
            def step(comm):
                self.ranks[rank].end.comm, comm.identity = comm, identity
                try:
                    return self.programs[rank].run(arguments[rank])
                finally:
                    comm.identity = 0
            return step
        results: Any = self.engine.run({rank: program(rank) for rank in self.ranks})
        return results


class GlobalView:
    """A CompiledGraph with global tensors, with the methods link and run of Program.

    Attributes:
        inferred: the layouts of all values.
        ranks: {rank: RankGraph} of the owned ranks.
        programs: the programs of the ranks.
        report, plan: the report and the plan of `first`.
    """

    def __init__(self, compiled):
        self.owner, self.tracer, self.graph = compiled.owner, compiled.tracer, compiled.graph
        tracer, graph, config = self.tracer, self.graph, self.owner.config
        strict = set(graph.nodes[:graph.forward])
        for f in (cse, dead):
            if f.__name__ not in config.off:
                f(graph)
        unread(graph)
        self.global_layouts, self.found = dict(tracer.placing.sources), None
        told = {"sources": {v: global_layout.layout for v, global_layout in self.global_layouts.items()}}
        if config.zero_stage or config.accumulation > 1 or config.auto_parallel:
            told = prepared(self)
        self.inferred = Inference(graph, world(), **told).run(strict)
        self.engine, self.source = current(), GraphSource(describe_graph(graph, tracer.variables))
        self.ranks = lower(self.inferred, self.engine.owned)
        self.programs = RankPrograms(self.engine, self.ranks, sorted(config.off))
        self.own: dict[str, dict] = {}               # parts that a step may write: {variable: {rank: tensor}}
        self.lock = RLock()

    @property
    def first(self) -> Program:
        """The program of this process's first rank."""
        return self.programs.programs[self.engine.rank]

    @property
    def report(self) -> list[str]:
        return self.first.report

    @property
    def plan(self) -> Plan:
        plan: Any = self.first.plan                            # a Plan, because the programs are linked
        return plan

    def lower(self, rank: int) -> RankGraph:
        """Return a new graph of one rank before its passes."""
        return lower(self.inferred, [rank])[rank]

    # ---- memory
    def link(self, arrays: Mapping[GraphValue, Tensor], counter: Tensor | None = None,
             before: Sequence[Callable[[], None]] = ()) -> None:
        """Create the plans of the ranks for these variables and host values."""
        self.arrays, self.counter, self.before = dict(arrays), counter, tuple(before)
        self.lay_out()

    def lay_out(self) -> None:
        """Create every rank's program for the current parts of the variables."""
        found: dict[int, dict[str, Tensor]] = {r: {} for r in self.ranks}
        written = {n.inputs[k].name for g in self.ranks.values() for n in g.graph.nodes for k in n.mutates}
        counter = ""
        for value, t in self.arrays.items():
            if value.kind == "host":
                parts = dict.fromkeys(self.ranks, t)
            else:
                changes = value.name in written or t is self.counter
                parts = self._parts(value.name, t, self.global_layouts.get(value), changes)
            counter = value.name if t is self.counter else counter
            for r, part in parts.items():
                found[r][value.name] = part
        self.programs.link(found, counter)
        self.counts = [t.numpy() for t in self.own[counter].values()] if counter else []

    def _parts(self, name: str, t: Tensor, global_layout, written: bool) -> dict[int, Tensor]:
        """Return the tensors of a variable's ranks. Written tensors are separate for each rank."""
        if t.global_layout is None:                            # the same on every rank
            known = self.own.setdefault(name, {self.engine.rank: t})
            for r in self.engine.owned:
                if r not in known:
                    known[r] = copy_of(t.detach()) if written else t
            return known
        # ZeRO, or the automatic choice
        if global_layout is not None and t.global_layout is not global_layout:
            take_parts(t, value_in_layout(t, global_layout), False)
        if t.has_memory:
            return {t.global_layout.layout.devices[0]: t}
        if written and self.own.get(name) is not t.rare.parts:
            parts = {r: copy_of(p.detach()) for r, p in parts_of(t).items()}
            take_parts(t, assemble(t.spec, t.global_layout, parts, None, identity_of(t)), False)
            self.own[name] = t.rare.parts
        return t.rare.parts

    def stale(self) -> bool:
        """Return True if a variable or the number of threads has changed since the plans were made."""
        variables = self.tracer.variables
        return self.programs.stale() or any(
            variables[n].global_layout is not None and variables[n].rare.parts is not p
            for n, p in self.own.items())

    # ---- running
    def run(self, xs: Sequence[Tensor]) -> list[Tensor]:
        """Run one step with the logical inputs, as global tensors, and return the outputs."""
        with self.lock:
            if self.stale():
                self.lay_out()
            for write in self.before:
                write()
            for count in self.counts:                # the optimizer may have made steps outside of the graph
                count[0] = self.counts[0][0]
            identity = self.engine.identify(self.source, (), xs)
            found = self.programs.run(self._arguments(xs), identity)
            return [self._output(i, v, found, identity) for i, v in enumerate(self.graph.outputs)]

    def _arguments(self, xs: Sequence[Tensor]) -> dict[int, tuple]:
        """Return {rank: its parts of the inputs}."""
        arguments: dict[int, list] = {r: [] for r in self.ranks}
        for value, x in zip(self.graph.inputs.values(), xs):
            global_layout = self.global_layouts.get(value)
            if x.global_layout is not global_layout:
                raise GraphError(f"nn.Graph {self.owner.name}: {value.name} has another layout than in the "
                                 f"first call",
                                 expected=_describe(global_layout), got=_describe(x.global_layout),
                                 fix="x.to_global(placement, sbp) as in the first call")
            parts = dict.fromkeys(self.ranks, x) if global_layout is None else parts_of(x)
            for r in self.ranks:
                if r in parts:
                    part = parts[r]
                    arguments[r].append(part if part._is_row_major() else copy_of(part.detach()))
        return {r: tuple(a) for r, a in arguments.items()}

    def _output(self, i: int, value, found: dict[int, list], identity: int) -> Tensor:
        parts = {r: found[r][g.outputs.index(i)] for r, g in self.ranks.items() if i in g.outputs}
        if self.inferred.base(value) in self.inferred.loose:
            return parts[self.engine.rank]
        at = lay_at(self.inferred.layout_of(value))
        return assemble(Spec(value.shape, value.dtype), at, parts, None, identity and identity + 1 + i)

    # ---- reports
    @property
    def bytes(self) -> int:
        """The bytes that one step moves between ranks."""
        return self.inferred.bytes

    def memory(self) -> dict:
        """Return the bytes that each owned rank needs."""
        return extensions.rank_memory(self)

    def explain(self) -> str:
        """Return the table of costs, op by op."""
        return "\n".join([*([self.found.describe()] if self.found else []), self.inferred.describe()])


def _describe(global_layout) -> str:
    return ("a local tensor" if global_layout is None
            else f"{global_layout.placement}, sbp={global_layout.sbp}")
