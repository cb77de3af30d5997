"""Compiled: what a graph's first call makes: build traced, backward and updates appended, passes, plan, executor."""
from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from math import prod
from threading import RLock
from typing import NamedTuple

from flowedu.blob.spec import Spec
from flowedu.errors import JobBuildAndInferError, told_line
from flowedu.graph.backward import seeded_gradients
from flowedu.graph.executor import Executor, scratch_bytes
from flowedu.graph.ir import GraphValue, Node
from flowedu.graph.passes import run_passes
from flowedu.graph.plan import Plan, make_plan
from flowedu.nn import trace
from flowedu.nn.graph import io
from flowedu.nn.graph.blocks import GraphModule
from flowedu.nn.graph.calls import bound, unpacked
from flowedu.nn.graph.effects import attributes_kept, check_aliases
from flowedu.nn.graph.errors import GraphError
from flowedu.nn.graph.state import load_free_tensors
from flowedu.nn.graph.tracer import Tracer, meta
from flowedu.nn.graph.unroll import joined, micro_slices, over_micro_batches
from flowedu.nn.graph.update import STEP, append_updates, check_members
from flowedu.ops.core import get_num_threads, interpreter
from flowedu.ops.define import REGISTRY
from flowedu.tensor import Tensor


class Operator(NamedTuple):
    """A node as it was traced, before passes change it."""

    node: Node
    inputs: tuple[GraphValue, ...]
    block: GraphModule | None


class Compiled:
    """One graph, compiled for one set of input shapes.

    Attributes: tracer; inputs and outputs, [(name, repr or None)] of the leaves; operators, the graph as it was traced;
    plan, executor, report (after `link`). spread: where global tensors take part, the GlobalView that plans and runs.
    """

    def __init__(self, owner, args: tuple, kwargs: dict):
        self.owner, config = owner, owner.config
        check_members(owner._optimizers, owner._paths())
        for part in (p for block in owner._blocks.values() for p in block.walk()):
            part.inputs, part.outputs, part.nodes = [], [], []        # of a build that failed
        self.tracer = tracer = Tracer(owner.name, owner._blocks, owner._paths(), owner._say)
        self.graph = graph = tracer.graph
        say = owner._say
        say(1, "start building graph builders of parameters and buffers.")
        say(1, "end building graph builders of parameters and buffers.")
        say(1, "start building graph inputs.")
        self.specs: list[tuple[str, Spec | None]] = []
        self.inputs: list[tuple[str, str]] = []
        self.cuts: list[list[GraphValue]] = []               # every input's micro-batches
        self.devices = self._batch_devices(args, kwargs)
        lazy_args, lazy_kwargs = io.map_leaves(f"_{owner.name}_input", args, kwargs, self._input)
        self.tree_is_flat = not kwargs and all(isinstance(x, Tensor) for x in args)
        say(1, "end building graph inputs.")
        say(1, "start building graph modules.")
        members = [p for optimizer, _ in owner._optimizers for g in optimizer.param_groups for p in g["params"]]
        if any(p.lay is not None for p in members):
            from flowedu.nn.graph.global_view import homes
            tracer.homes = homes(members, config)
        trace.begin(tracer)
        try:
            with interpreter(tracer), attributes_kept(tracer, owner._blocks.values()):
                out = owner.build(*lazy_args, **lazy_kwargs)
                say(1, "end building graph modules.")
                say(1, "start building graph outputs.")
                self.fetched: list[GraphValue] = []
                self.outputs: list[tuple[str, str | None]] = []
                self.single = type(out) is not tuple
                self.tree, _ = io.map_leaves(f"_{owner.name}_output", (out,) if self.single else out, {}, self._output)
                say(1, "end building graph outputs.")
        finally:
            trace.end()
        check_aliases(tracer)
        say(1, "start building graph with compile passes.")
        self._check_goal()
        graph.forward = len(graph.nodes)
        self.rates, self.watchers = self._train()
        for target, value in tracer.written.items():
            self._raw("assign", value, target)
        wanted = [*self.fetched, *(v for v, _ in self.watchers)]
        unique = list(dict.fromkeys(wanted))
        self.where = [unique.index(v) for v in wanted]
        graph.outputs = unique
        self.operators = [Operator(n, n.inputs, tracer.owner.get(n)) for n in graph.nodes]
        self.spread = None
        if tracer.placing.active:
            from flowedu.nn.graph.global_view import GlobalView
            self.spread = GlobalView(self)
        self.report = run_passes(graph, config.off) if self.spread is None else self.spread.report
        for line in self.report:
            say(1, f"[{owner.name}] pass {line}")
        say(1, "end building graph with compile passes.")
        say(1, "start re-building graph outputs for optimization.")
        say(1, "end re-building graph outputs for optimization.")

    # ---- building
    def _input(self, name: str, x):
        io.check_leaf(self.owner, "INPUT", name, x)
        if x is None:
            self.specs.append((name, None))
            self.inputs.append((name, None))
            return None
        self.specs.append((name, x.spec))
        text = meta(x)
        self.inputs.append((name, text))
        self.owner._say(1, io.line("INPUT", name, text))
        value, k = self.graph.input(name, x.spec), self.owner.config.accumulation
        self.tracer.placing.enter(value, x)
        if k > 1:
            self.cuts.append(micro_slices(self.tracer, value, k, name, self.devices))
            value = self.cuts[-1][0]
        return self.tracer.lazy(value, x.requires_grad)

    def _batch_devices(self, args: tuple, kwargs: dict) -> int:
        """In how many parts the batch lies on its devices, where all of it can be cut into micro-batches so."""
        xs = [x for _, x in io.leaves("", args, kwargs) if isinstance(x, Tensor)]
        d = 1
        for at in (x.lay.layout for x in xs if x.lay is not None):
            d = max(d, prod(k for s, k in zip(at.sbp, at.hierarchy) if s == "S0"))
        return d if all(x.ndim and x.shape[0] % (d * self.owner.config.accumulation) == 0 for x in xs) else 1

    def _output(self, name: str, x):
        io.check_leaf(self.owner, "OUTPUT", name, x)
        if x is None:
            self.outputs.append((name, None))
            return None
        self.fetched.append(self.tracer.value_of(x))
        text = meta(x)
        self.outputs.append((name, text))
        self.owner._say(1, io.line("OUTPUT", name, text))
        return len(self.fetched) - 1                          # where in `fetched`

    def _raw(self, op: str, *values, **attrs):
        op = REGISTRY[op]
        return self.tracer.append(op, values, op.complete(attrs))

    def _build_line(self) -> str:
        """Where build is defined."""
        code = getattr(type(self.owner).build, "__code__", None)
        return "" if code is None else told_line((code.co_filename, code.co_firstlineno))

    def _check_goal(self) -> None:
        """An optimizer needs a backward, and the other way round."""
        goal, entries, name = self.tracer.goal, self.owner._optimizers, self.owner.name
        if goal is None and entries:
            raise JobBuildAndInferError(f"nn.Graph {name}: an optimizer was added, but build calls no backward",
                                        expected="loss.backward() in build", got="none", at=self._build_line(),
                                        fix="call loss.backward() in build, or leave add_optimizer out")
        if goal is not None and not entries and not any(w.gradient for w in self.tracer.watches):
            raise JobBuildAndInferError(f"nn.Graph {name}: build calls backward, but there is no optimizer",
                                        expected="self.add_optimizer(...) in __init__", got="none",
                                        at=self._build_line(),
                                        fix="add an optimizer, or leave backward out to predict")

    def _train(self) -> tuple[list, list[tuple[GraphValue, Callable]]]:
        """Append backward passes (one for every micro-batch) and updates: learning rates, and what to hand to whom."""
        tracer, entries, k = self.tracer, self.owner._optimizers, self.owner.config.accumulation
        members = [p for optimizer, _ in entries for g in optimizer.param_groups for p in g["params"] if p.requires_grad]
        leaves = {id(t): self.graph.variables[n] for n, t in tracer.variables.items()}
        trained = [p for p in members if id(p) in leaves]
        targets = [leaves[id(p)] for p in trained]
        differentiated = [w.value for w in tracer.watches if w.gradient]
        loss, gradient = tracer.goal or (None, None)

        def differentiate(nodes, table):
            wanted = [*targets, *(table.get(v, v) for v in differentiated)]
            if loss is None:
                return [None] * len(wanted)
            return seeded_gradients(tracer, nodes, table.get(loss, loss), gradient, wanted)

        parts = over_micro_batches(tracer, self.cuts, differentiate, k)
        self.fetched = [joined(tracer, [table.get(v, v) for table, _ in parts], self.devices) for v in self.fetched]
        diffs = iter(range(len(targets), len(targets) + len(differentiated)))
        watchers = []
        for w in tracer.watches:
            if not w.gradient:
                values = [table.get(w.value, w.value) for table, _ in parts]
            else:
                position = next(diffs)
                values = [grads[position] for _, grads in parts]
            if None not in values:
                watchers.append((joined(tracer, values, self.devices), w.handler))
        if not entries:
            return [], watchers
        with tracer.raw():
            total = parts[0][1][:len(targets)]
            for _, grads in parts[1:]:
                total = [a if b is None else b if a is None else a + b for a, b in zip(total, grads)]
            found = {id(p): g for p, g in zip(trained, total) if g is not None}
            return append_updates(tracer, entries, found, self.owner._states, 1.0 / k,
                                  self.owner.config.one_update), watchers

    # ---- running
    def link(self) -> None:
        """Plan the graph over the memory of its variables."""
        tracer = self.tracer
        if self.spread is not None:
            load_free_tensors(self.owner._states, tracer.variables)
            self.spread.link()
            self.alone, self.lock = False, RLock()
            return
        self.arrays = {self.graph.variables[n]: t for n, t in tracer.variables.items() if n in self.graph.variables}
        load_free_tensors(self.owner._states, tracer.variables)
        self.arrays.update({rate.value: rate.tensor for rate in self.rates})
        self.counter = tracer.variables.get(STEP)
        self.plain = all(spec is not None for _, spec in self.specs) and self.tree_is_flat
        self.alone = self.single and len(self.where) == 1 and self.tree[0] == 0
        written = {n.inputs[k] for n in self.graph.nodes for k in n.mutates}
        self.trained = [t for v, t in self.arrays.items() if v in written and v.kind == "variable"]
        self.nodes, self.kept_outputs = list(self.graph.nodes), list(self.graph.outputs)
        self.executor: Executor | None = None
        self.lay_out()
        guarded = any(s.entry.python for s in self.plan.steps)             # Python kernels: the executor sees to it
        self.lock = nullcontext() if guarded else RLock()

    def lay_out(self) -> None:
        """Plan and executor for the present number of threads."""
        off, runs = self.owner.config.off, self.executor.runs if self.executor else 0
        self.graph.nodes, self.graph.outputs = list(self.nodes), list(self.kept_outputs)
        self.plan: Plan = make_plan(self.graph, self.arrays, scratch_bytes, self.report, inplace="inplace" not in off,
                                    reuse="reuse" not in off)
        self.executor = Executor(self.plan)
        self.executor.as_tensors, self.executor.counter, self.executor.written = True, self.counter, self.trained
        self.executor.runs = runs

    def renewed(self) -> Executor:
        """The executor for another number of threads, or after `parameter.data = ...`."""
        for value, t in self.arrays.items():
            if t.spec != value.spec:
                raise GraphError(f"nn.Graph {self.owner.name}: {value.name} has changed since the graph was compiled",
                                 expected=str(value.spec), got=str(t.spec), fix="convert modules before the first call")
        self.lay_out()
        return self.executor

    def __call__(self, args: tuple, kwargs: dict):
        if self.spread is not None:
            return self._on_ranks(args, kwargs)
        executor = self.executor
        if executor.nt != get_num_threads() or executor.moved():
            executor = self.renewed()
        try:
            if not (self.plain and not kwargs and executor.takes(args)):
                args = self.bind(args, kwargs)
            with self.lock:                              # one arena: one step at a time
                for rate in self.rates:
                    rate.write()
                out = executor.run(args)
        except Exception as e:
            print(f"[ERROR](GRAPH:{self.owner.name}:{self.owner.class_name}) run got error: {type(e).__name__}")
            raise
        return out[0] if self.alone else self._given(out)

    def _on_ranks(self, args: tuple, kwargs: dict):
        """A step of global tensors."""
        try:
            xs = self.bind(args, kwargs)
            with self.lock:
                for rate in self.rates:
                    rate.write()
                out = self.spread.run(xs)
        except Exception as e:
            print(f"[ERROR](GRAPH:{self.owner.name}:{self.owner.class_name}) run got error: {type(e).__name__}")
            raise
        return self._given(out)

    def _given(self, out: list):
        """What the caller gets; watchers get theirs."""
        for i, (_, handler) in enumerate(self.watchers, len(self.fetched)):
            handler([out[self.where[i]].numpy()])
        return unpacked(self, out)

    def bind(self, args: tuple, kwargs: dict) -> tuple:
        """The tensors among the arguments, contiguous, checked against those of the first call."""
        self.owner._outside(args, kwargs)
        return bound(self, args, kwargs)
