"""GlobalView: a graph of global tensors. The logical graph that build described becomes one graph for each rank.

After the trace: casts for ZeRO, the order of a pipeline, the layouts of all values (core/sbp/infer.py), the ranks' graphs
(lower.py) and their plans (run.py). A step runs the plans of all ranks this thread owns at once.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import RLock

import numpy as np

from flowedu.core.graph.ir import GraphValue
from flowedu.core.graph.passes import cse
from flowedu.core.graph.plan import Plan
from flowedu.core.graph.program import Program
from flowedu.core.graph.rewrite import dead
from flowedu.core.layers.parameter import Parameter
from flowedu.core.ops.arrays import copy_of
from flowedu.core.ops.dispatch import labelled, take_parts
from flowedu.core.ops.tensor import Tensor
from flowedu.core.sbp.graph.lower import lower
from flowedu.core.sbp.graph.placing import laid, lay_at, world
from flowedu.core.sbp.graph.run import Memory, RankPrograms
from flowedu.core.sbp.infer import Inference, places, unread
from flowedu.core.sbp.ranks import current
from flowedu.core.sbp.sbp import pretty
from flowedu.core.sbp.tensor.interpreter import assembled, parts_of
from flowedu.core.shelves import shelf
from flowedu.core.values.spec import Spec
from flowedu.errors import GraphError


class GlobalView:
    """What runs a Compiled of nn.Graph with global tensors, as a Program runs others (see there for link and run).

    Attributes: inferred, the layouts of all values; ranks, {rank: RankGraph} of the owned ones; programs; report and plan,
    those of `first`.
    """

    def __init__(self, compiled):
        self.owner, self.tracer, self.graph = compiled.owner, compiled.tracer, compiled.graph
        tracer, graph = self.tracer, self.graph
        placing, config = tracer.placing, self.owner.config
        strict = set(graph.nodes[:graph.forward])
        for f in (cse, dead):
            if f.__name__ not in config.off:
                f(graph)
        unread(graph)
        self.lays = dict(placing.sources)
        alone = self._zero(tracer, graph) if config.zero_stage else set()
        sources = {v: lay.layout for v, lay in self.lays.items()}
        if config.accumulation > 1:
            shelf("order of micro-batches")(graph, tracer.passes, places(graph, sources))
        self.found, ways = None, {}
        if config.auto_parallel:
            sources, ways = self._searched(graph, sources, alone)
        self.inferred = Inference(graph, world(), sources, unshared=alone, ways=ways).run(strict)
        self.engine = current()
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
        return self.first.plan

    def _zero(self, tracer, graph) -> set:
        """Casts around the parameters that are split."""
        split = {}
        for name, t in tracer.variables.items():
            home, value = tracer.placing.homes.get(id(t)), graph.variables.get(name)
            if home is not None and value is not None and home is not t.lay:
                split[value] = t.lay.layout
                self.lays[value] = home
        return shelf("ZeRO")(graph, split, self.owner.config.zero_stage, tracer.passes)

    def _searched(self, graph, sources: dict, alone: set) -> tuple[dict, dict]:
        """Layouts and ways that are cheapest together; parameters are laid so when they are linked. ZeRO's stay."""
        config, free = self.owner.config, {}
        if config.auto_parameters and not config.zero_stage:
            free = {w: states for w, states in shelf("trained parameters")(graph).items() if w in self.lays}
        self.found = shelf("search for layouts")(graph, world(), sources, free, unshared=alone, ratio=config.auto_ratio)
        for v, at in self.found.best.sources.items():
            if v in self.lays and at != self.lays[v].layout:
                self.lays[v] = lay_at(at)
        return self.found.best.sources, self.found.best.ways

    # ---- memory
    def link(self, arrays: Mapping[GraphValue, Tensor], counter: Tensor | None = None,
             before: Sequence[Callable[[], None]] = ()) -> None:
        """Plan over the parts of the variables."""
        self.arrays, self.counter, self.before = dict(arrays), counter, tuple(before)
        self.lay_out()

    def lay_out(self) -> None:
        """Every rank's program, over the parts that the variables have now."""
        found: dict[int, dict[str, Tensor]] = {r: {} for r in self.ranks}
        written = {n.inputs[k].name for g in self.ranks.values() for n in g.graph.nodes for k in n.mutates}
        counter = ""
        for value, t in self.arrays.items():
            if value.kind == "host":
                parts = dict.fromkeys(self.ranks, t)
            else:
                parts = self._parts(value.name, t, self.lays.get(value), value.name in written or t is self.counter)
            counter = value.name if t is self.counter else counter
            for r, part in parts.items():
                found[r][value.name] = part
        self.programs.link(found, counter)

    def _parts(self, name: str, t: Tensor, lay, written: bool) -> dict[int, Tensor]:
        """The tensors a variable's ranks work on. What is written, each has for itself."""
        if t.lay is None:                            # the same on every rank
            known = self.own.setdefault(name, {self.engine.rank: t})
            for r in self.engine.owned:
                if r not in known:
                    known[r] = copy_of(t.detach()) if written else t
            return known
        if lay is not None and t.lay is not lay:     # ZeRO, or the automatic choice
            self._become(t, laid(t, lay))
        if t.has_memory:
            return {t.lay.layout.devices[0]: t}
        if written and self.own.get(name) is not t.rare.parts:
            parts = {r: copy_of(p.detach()) for r, p in parts_of(t).items()}
            self._become(t, assembled(t.spec, t.lay, parts))
            self.own[name] = t.rare.parts
        return t.rare.parts

    @staticmethod
    def _become(t: Tensor, z: Tensor) -> None:
        """t lies as z does from here on."""
        take_parts(t, z, False)

    def stale(self) -> bool:
        """Whether a variable was given other memory since the plans were made, or there is another number of threads."""
        variables = self.tracer.variables
        return self.programs.stale() or any(
            variables[n].lay is not None and variables[n].rare.parts is not p for n, p in self.own.items())

    # ---- running
    def run(self, xs: Sequence[Tensor]) -> list[Tensor]:
        """One step: the logical inputs as global tensors -> the outputs."""
        with self.lock:
            if self.stale():
                self.lay_out()
            for write in self.before:
                write()
            found = self.programs.run(self._arguments(xs))
            return [self._output(i, v, found) for i, v in enumerate(self.graph.outputs)]

    def _arguments(self, xs: Sequence[Tensor]) -> dict[int, tuple]:
        """{rank: its parts of the inputs}"""
        arguments: dict[int, list] = {r: [] for r in self.ranks}
        for value, x in zip(self.graph.inputs.values(), xs):
            lay = self.lays.get(value)
            if x.lay is not lay:
                raise GraphError(f"nn.Graph {self.owner.name}: {value.name} lies otherwise than in the first call",
                                 expected=_said(lay), got=_said(x.lay),
                                 fix="x.to_global(placement, sbp) as in the first call")
            parts = dict.fromkeys(self.ranks, x) if lay is None else {lay.layout.devices[0]: x} if x.has_memory else \
                x.rare.parts
            for r in self.ranks:
                if r in parts:
                    part = parts[r]
                    arguments[r].append(part if part.row_major_() else copy_of(part.detach()))
        return {r: tuple(a) for r, a in arguments.items()}

    def _output(self, i: int, value, found: dict[int, list]) -> Tensor:
        parts = {r: found[r][g.outputs.index(i)] for r, g in self.ranks.items() if i in g.outputs}
        if self.inferred.base(value) in self.inferred.loose:
            return parts[self.engine.rank]
        lay = lay_at(self.inferred.own(value))
        if lay.single and parts:
            return labelled(next(iter(parts.values())), lay)
        return assembled(Spec(value.shape, value.dtype), lay, parts)

    # ---- looking
    def ranks_of(self, values: Sequence[GraphValue]) -> list | None:
        """The devices of the first of these values that lies somewhere, as a grid."""
        found = next((self.inferred.own(v) for v in values if v in self.inferred.layouts), None)
        return None if found is None else np.array(found.devices).reshape(found.hierarchy).tolist()

    def sbp_of(self, value: GraphValue) -> str | None:
        """How a value lies, as OneFlow writes it."""
        return ", ".join(map(pretty, self.inferred.own(value).sbp)) if value in self.inferred.layouts else None

    @property
    def bytes(self) -> int:
        """What one step moves between ranks."""
        return self.inferred.bytes

    def memory(self) -> dict[int, Memory]:
        """Bytes each owned rank needs."""
        variables = self.tracer.variables
        parameters = {n for n, t in variables.items() if isinstance(t, Parameter)}
        return self.programs.memory(parameters, {n for n, t in variables.items()
                                                 if n in self.owner._states and t is not self.counter})

    def explain(self) -> str:
        """The bill, op by op."""
        return "\n".join([*([self.found.describe()] if self.found else []), self.inferred.describe()])

    def text(self) -> str:
        """Bytes and memory, rank by rank."""
        lines = [f"moved in one step: {self.bytes:,} bytes"]
        for r, m in self.memory().items():
            lines.append(f"rank {r}: {m.total:,} bytes: arena {m.arena:,}, parameters {m.parameters:,}, states "
                         f"{m.states:,}, other {m.other:,}; sends {self.ranks[r].sent:,} bytes in a step")
        return "\n".join(lines)


def _said(lay) -> str:
    return "a local tensor" if lay is None else f"{lay.placement}, sbp={lay.sbp}"
