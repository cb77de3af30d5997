"""CompiledGraph: a traced `build` with its backward pass, updates, and Program."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

from flowedu.core import extensions
from flowedu.core.eager.arrays import copy_of
from flowedu.core.eager.tensor import Tensor
from flowedu.core.graph.ir import GraphValue, Node
from flowedu.core.graph.program import Program
from flowedu.core.ops.call import interpreter
from flowedu.core.ops.define import REGISTRY
from flowedu.core.trace import io
from flowedu.core.trace.blocks import ModuleBlock
from flowedu.core.trace.tracer import Tracer
from flowedu.core.trace.update import STEP, append_updates
from flowedu.core.values import thread_state as ambient
from flowedu.core.values.spec import Spec
from flowedu.core.values.thread_state import during
from flowedu.errors import format_location
from flowedu.errors import graphs as errors


class Operator(NamedTuple):
    """A node as it was traced, before passes change it."""

    node: Node
    inputs: tuple[GraphValue, ...]
    block: ModuleBlock | None


class CompiledGraph:
    """A graph that is compiled for one set of input shapes.

    Attributes: tracer; operators, the graph before the passes; program, which runs it; spread, the
    program if it uses global tensors (distributed/graph/view.py), else None; plain, True if a call
    passes its arguments to the program unchanged; alone, True if a call returns a single output;
    stamp, the value of `thread_state.changes` when the trace was last found to be valid.
    """

    tracer_type = Tracer
    scale = 1.0                                           # factor for the gradients

    def __init__(self, owner: Any, args: tuple, kwargs: dict):
        self.owner, self.stamp = owner, ambient.changes
        for part in (p for block in owner._blocks.values() for p in block.walk()):
            part.inputs, part.outputs, part.nodes = [], [], []        # left by a failed build
        with self._stage("building graph builders of parameters and buffers"):
            self.tracer = self.tracer_type(owner.name, owner._blocks, owner._paths(), owner._say)
            self.graph = self.tracer.graph
        self._trace(*self._enter(args, kwargs))
        with self._stage("building graph with compile passes"):
            self._complete()
            several = self.tracer.placing.active
            self.program = extensions.global_graph(self) if several else Program(
                self.graph, owner.config.off, place=self.tracer.placing.place)
            self.spread = self.program if several else None
            for line in self.program.report:
                owner._say(1, f"[{owner.name}] pass {line}")
        with self._stage("re-building graph outputs for optimization"):
            full = all(spec is not None for _, spec in self.specs)
            self.plain = not several and full and self.tree_is_flat
            self.alone = not several and self.single and len(self.where) == 1 and self.tree[0] == 0

    @contextmanager
    def _stage(self, title: str) -> Iterator[None]:
        """Print the start and the end of a stage of compilation in debug mode."""
        self.owner._say(1, f"start {title}.")
        yield
        self.owner._say(1, f"end {title}.")

    def _enter(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """Return the arguments of the call with lazy tensors in place of eager ones."""
        placing, config = self.tracer.placing, self.owner.config
        self.specs: list[tuple[str, Spec | None]] = []
        self.tree_is_flat = not kwargs and all(isinstance(x, Tensor) for x in args)
        with self._stage("building graph inputs"):
            lazy = io.map_leaves(f"_{self.owner.name}_input", args, kwargs, self._input)
        placing.keep([p for optimizer, _ in self.owner._optimizers for g in optimizer.param_groups
                      for p in g["params"]], config)
        return lazy

    def _trace(self, args: tuple, kwargs: dict) -> None:
        owner, tracer = self.owner, self.tracer
        self.fetched: list[GraphValue] = []
        with during(tracer=tracer), interpreter(tracer), self.effects():
            with self._stage("building graph modules"), owner.config.computing():
                out = owner.build(*args, **kwargs)
            with self._stage("building graph outputs"):
                self.single = type(out) is not tuple
                out = (out,) if self.single else out
                self.tree, _ = io.map_leaves(f"_{owner.name}_output", out, {}, self._output)

    def effects(self) -> AbstractContextManager:
        """Return a context manager that handles writes to outside tensors (nn/graph/effects.py)."""
        return nullcontext()

    def _complete(self) -> None:
        """Append the backward pass, the updates, and the writes to tensors outside the graph."""
        graph, tracer = self.graph, self.tracer
        self._check_goal()
        graph.forward = len(graph.nodes)
        (self.rates, self.hosts), self.watchers = self._train()
        for target, value in tracer.written.items():
            tracer.append(REGISTRY["assign"], (value, target), ())
        wanted = [*self.fetched, *(v for v, _ in self.watchers)]
        at = {v: i for i, v in enumerate(dict.fromkeys(wanted))}
        graph.outputs, self.where = list(at), [at[v] for v in wanted]
        self.operators = [Operator(n, n.inputs, tracer.owner.get(n)) for n in graph.nodes]

    # ---- building
    def _input(self, name: str, x: Tensor | None) -> Tensor | None:
        io.check_leaf(self.owner, "INPUT", name, x)
        self.report_value("INPUT", name, x)
        self.specs.append((name, None if x is None else x.spec))
        if x is None:
            return None
        value = self.graph.input(name, x.spec)
        self.tracer.placing.enter(value, x)
        return self.tracer.lazy(self.prepare_input(value), x.requires_grad)

    def report_value(self, kind: str, name: str, x: Tensor | None) -> None:
        """Report an input or output of build (nn/graph/logs.py)."""

    def prepare_input(self, value: GraphValue) -> GraphValue:
        """Return the value that build receives for an input, such as the first micro-batch."""
        return value

    def _output(self, name: str, x: Tensor | None) -> int | None:
        io.check_leaf(self.owner, "OUTPUT", name, x)
        if x is not None:
            self.fetched.append(self.tracer.value_of(x))
        self.report_value("OUTPUT", name, x)
        return None if x is None else len(self.fetched) - 1       # index in `fetched`

    def _build_line(self) -> str:
        """Return the file and line where build is defined."""
        code = getattr(type(self.owner).build, "__code__", None)
        return "" if code is None else format_location((code.co_filename, code.co_firstlineno))

    def _check_goal(self) -> None:
        """Raise an error for an optimizer without backward, or a backward without optimizer."""
        goal, entries, name = self.tracer.goal, self.owner._optimizers, self.owner.name
        if goal is None and entries:
            raise errors.no_backward(name, self._build_line())
        if goal is not None and not entries and not any(w.gradient for w in self.tracer.watches):
            raise errors.no_optimizer(name, self._build_line())

    def _train(self) -> tuple[tuple, list[tuple[GraphValue, Callable]]]:
        """Append backward and updates. Returns the result of append_updates, and the watchers."""
        tracer, entries = self.tracer, self.owner._optimizers
        members = [p for optimizer, _ in entries for g in optimizer.param_groups
                   for p in g["params"] if p.requires_grad]
        leaves = {id(t): self.graph.variables[n] for n, t in tracer.variables.items()}
        trained = [p for p in members if id(p) in leaves]
        grads, diffs = self.differentiate([leaves[id(p)] for p in trained],
                                          [w.value for w in tracer.watches if w.gradient])
        following = iter(diffs)
        watched = [(next(following) if w.gradient else self.gather_batch(w.value), w.handler)
                   for w in tracer.watches]
        watchers = [(value, handler) for value, handler in watched if value is not None]
        if not entries:
            return ([], {}), watchers
        gradients = {id(p): g for p, g in zip(trained, grads) if g is not None}
        return append_updates(tracer, entries, gradients, self.owner._states, self.scale,
                              self.owner.config.one_update), watchers

    def differentiate(self, targets: Sequence[GraphValue],
                      watched: Sequence[GraphValue]) -> tuple[Sequence, Sequence]:
        """Append the backward pass. Returns the gradients of `targets` and of `watched`."""
        grads = self.backward([*self.graph.nodes], {}, [*targets, *watched])
        return grads[:len(targets)], grads[len(targets):]

    def backward(self, nodes: Sequence[Node], table: dict[GraphValue, GraphValue],
                 wanted: Sequence[GraphValue]) -> list:
        """Append the backward pass of `nodes`; return the gradients. table: {value: its copy}."""
        loss, gradient = self.tracer.goal or (None, None)
        if loss is None:
            return [None] * len(wanted)
        return self.tracer.gradients(nodes, table.get(loss, loss), gradient,
                                     [table.get(v, v) for v in wanted])

    def gather_batch(self, value: GraphValue) -> GraphValue:
        """Return a value for the full batch, which joins the values of all micro-batches."""
        return value

    # ---- running
    def link(self) -> None:
        """Make the plan of the graph, which uses the memory of its variables."""
        tracer = self.tracer
        arrays = {self.graph.variables[n]: t for n, t in tracer.variables.items()
                  if n in self.graph.variables}
        arrays.update(self.hosts)
        self.program.link(arrays, tracer.variables.get(STEP), [rate.write for rate in self.rates])

    def make_result(self, out: list[Tensor], args: tuple, kwargs: dict) -> Any:
        """Return the result of a call, and pass the watched values to their handlers."""
        for i, (_, handler) in enumerate(self.watchers, len(self.fetched)):
            handler([out[self.where[i]]._on_host().numpy()])
        taken: set[int] = set()

        def leaf(_: str, position: int | None) -> Tensor | None:
            if position is None:
                return None
            i = self.where[position]
            y = out[i].clone() if i in taken else out[i]      # a repeated value is copied
            taken.add(i)
            return y

        tree, _ = io.map_leaves("", self.tree, {}, leaf)
        return tree[0] if self.single else tree

    def bind(self, args: tuple, kwargs: dict) -> tuple:
        """Check arguments against the first call, and return their tensors, made contiguous."""
        self.owner._refuse_nested_call(args, kwargs)
        graph, place = self.owner.name, self.tracer.placing.place
        inputs = io.leaves(f"_{graph}_input", args, kwargs)
        if len(inputs) != len(self.specs):
            raise errors.wrong_number_of_inputs(self, inputs)
        arrays = []
        for (name, x), (expected, spec) in zip(inputs, self.specs):
            if name != expected:
                raise errors.other_names(graph, expected, name)
            if spec is None and x is None:
                continue
            if spec is None or not isinstance(x, Tensor) or x.spec != spec:
                raise errors.other_input(name, spec, place, x)
            if x.global_layout is not None and self.spread is None:
                raise errors.global_input(graph, name, x.global_layout.placement)
            if x.global_layout is None and x._device != place:
                raise errors.other_device(graph, name, place, x._device)
            dense = x.global_layout is not None or x._is_row_major()
            arrays.append(x if dense else copy_of(x.detach()))
        return tuple(arrays)
