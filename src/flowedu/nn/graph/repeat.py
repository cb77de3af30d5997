"""Compiled graphs with micro-batches and activation checkpointing, which run parts again (unroll.py)."""
from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import isclose
from typing import Any

import numpy as np

from flowedu.core.eager.tensor import Tensor
from flowedu.core.graph.ir import GraphValue
from flowedu.core.ops.reverse import reverse
from flowedu.core.ops.view import constant
from flowedu.core.trace import io
from flowedu.core.trace.blocks import ModuleBlock
from flowedu.core.trace.tracer import check_seed, grad_name
from flowedu.errors import UnsupportedError
from flowedu.nn.graph.logs import LoggingCompiled, LoggingTracer
from flowedu.nn.graph.reduced import LossSplit
from flowedu.nn.graph.state import give_to_optimizers, load_free_tensors
from flowedu.nn.graph.steps import Steps
from flowedu.nn.graph.unroll import Checkpoint, joined, micro_slices, over_micro_batches
from flowedu.ops.terms import add_known
from flowedu.tensor.construction.generator import fork_rng


class ForgetfulTracer(LoggingTracer):
    """Tracer that supports modules with activation_checkpointing, and flow.autograd.grad in build."""

    def __init__(self, *args):
        super().__init__(*args)
        self.checkpoint: Checkpoint | None = None        # the checkpointed call that is being traced

    def append(self, op, values, attrs: tuple, name: str | None = None,
               reseed: bool = True) -> tuple[GraphValue, ...]:
        outputs = super().append(op, values, attrs, name, reseed)
        if self.checkpoint is not None:
            node = self.graph.nodes[-1]
            self.checkpoint.nodes.append(node)
            self.checkpoints[node] = self.checkpoint
        return outputs

    def forward(self, block: ModuleBlock, args: tuple, kwargs: dict):
        if self.checkpoint is not None or not block.activation_checkpointing:
            return super().forward(block, args, kwargs)
        self.checkpoint = Checkpoint(self)
        try:
            return super().forward(block, args, kwargs)
        finally:
            self.checkpoint = None

    def grad(self, outputs: list, inputs: list, gradients: list, create_graph: bool) -> list:
        """Compute `flow.autograd.grad` in build: append the backward nodes immediately.

        Inputs on which the outputs do not depend get None.
        """
        seeds = []
        for y, g in zip(outputs, gradients):
            check_seed("grad", y, g)
            seeds.append((self.value_of(y), self.value_of(g) if g is not None else self.append(
                constant, (), constant.complete(dict(shape=tuple(y.shape), value=1.0, dtype=y.dtype)))[0]))
        targets, before = [self.value_of(x) for x in inputs], len(self.graph.nodes)
        nodes = [n for n in self.graph.nodes if n not in self.frozen]
        with self.raw():
            found = reverse(nodes, seeds, targets, self._recompute)
        if not create_graph:
            self.frozen.update(self.graph.nodes[before:])
        names = [grad_name(g.node) if g is not None and g.node else "" for g in found]
        return [None if g is None else self.lazy(g, create_graph, name) for g, name in zip(found, names)]


class RepeatingCompiled(LoggingCompiled):
    """Compiled graph that cuts the batch into micro-batches (config.set_gradient_accumulation_steps).

    Attributes:
        cuts: micro-batches of every input.
        parts: for each micro-batch, {value of the first micro-batch: its value}, and its gradients.
        batch_parts: number of devices over which the batch is split.
    """

    tracer_type = ForgetfulTracer
    # True while build is traced on the whole batch, for comparison
    is_whole = False

    def __init__(self, owner, args: tuple, kwargs: dict):
        give_to_optimizers(owner)                    # for optimizers added after the load
        self.steps = Steps(owner._optimizers)
        super().__init__(owner, args, kwargs)

    def _enter(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        xs = [x for _, x in io.leaves("", args, kwargs) if isinstance(x, Tensor)]
        self.batch_parts = self.tracer.placing.batch_parts(xs, self.owner.config.accumulation)
        self.cuts: list[list[GraphValue]] = []
        self.call: Any = (args, kwargs, get_seeds())      # None after differentiate
        return super()._enter(args, kwargs)

    def prepare_input(self, value: GraphValue) -> GraphValue:
        k = self.owner.config.accumulation
        if k == 1 or self.is_whole:
            return value
        self.cuts.append(micro_slices(self.tracer, value, k, value.name, self.batch_parts))
        return self.cuts[-1][0]

    def differentiate(self, targets: Sequence[GraphValue],
                      watched: Sequence[GraphValue]) -> tuple[Sequence, Sequence]:
        """Append a backward pass for every micro-batch and return the sums of the gradients."""
        wanted = [*targets, *watched]
        k = self.owner.config.accumulation
        self.made: list[GraphValue] = []
        self.parts = over_micro_batches(self.tracer, self.cuts, self._part_of_loss(targets, wanted),
                                        k) if k > 1 else [
                                            ({}, self._once(wanted))]
        self.call = None                                  # the graph does not keep the batch alive
        loss = self.tracer.goal[0] if self.tracer.goal else None
        self.fetched = [self._losses() if self.made and v is loss else self.gather_batch(v)
                        for v in self.fetched]
        with self.tracer.raw():
            total = self.parts[0][1][:len(targets)]
            for _, grads in self.parts[1:]:
                total = [add_known(terms) for terms in zip(total, grads)]
        diffs = [[grads[i] for _, grads in self.parts] for i in range(len(targets), len(wanted))]
        return (total, [None if None in values else joined(self.tracer, values, self.batch_parts)
                        for values in diffs])

    def _part_of_loss(self, targets: Sequence[GraphValue],
                      wanted: Sequence[GraphValue]) -> Callable[..., list]:
        """Return the backward pass of a micro-batch: (nodes, table) -> gradients.

        self.scale converts its gradients to those of the loss of the whole batch (reduced.py).
        """
        loss, gradient = self.tracer.goal or (None, None)

        def plain(nodes, table):
            return self.backward(nodes, table, wanted)

        def anew(nodes, table):
            before = len(self.graph.nodes)
            with self.tracer.raw():
                self.made.append(split.make_part(loss, table))
            return self.tracer.gradients([*nodes, *self.graph.nodes[before:]], self.made[-1], gradient,
                                         [table.get(v, v) for v in wanted])

        k = self.owner.config.accumulation
        if loss is None or not self.cuts:
            self.scale = 1.0 / k
            return plain
        nodes: list[Any] = self.graph.nodes
        last_cut = max(nodes.index(v.node) for slices in self.cuts for v in slices)
        split = LossSplit(self, nodes[last_cut + 1:], self._trace_whole(), targets)
        scale, self.scale = split.scale(loss), split.seed_scale(loss, gradient)
        if scale is None or loss.spec.size == 1 and not isclose(scale, 1.0) and not isclose(scale, 1.0 / k):
            return anew
        self.scale *= scale
        return plain

    def _trace_whole(self) -> RepeatingCompiled:
        """Trace build once more, on the whole batch.

        Only the trace is used; it leaves no marks on the owner.
        """
        args, kwargs, seeds = self.call
        current = get_seeds()
        whole = object.__new__(type(self))
        whole.__dict__.update(self.__dict__, is_whole=True, inputs=[], outputs=[], entrances=[], exits=[],
                              rebound=[])
        whole.tracer = self.tracer_type(self.owner.name, self.owner._blocks, self.owner._paths(),
                                        lambda *line: None)
        whole.tracer.called = set(self.tracer.called)             # modules are reported once
        whole.graph = whole.tracer.graph
        parts = [p for block in self.owner._blocks.values() for p in block.walk()]
        counts = [len(p.nodes) for p in parts]
        try:
            # So that build draws the same random values again.
            set_seeds(seeds)
            with fork_rng():
                whole._trace(*whole._enter(args, kwargs))
        except Exception as e:
            raise UnsupportedError(
                f"set_gradient_accumulation_steps({self.owner.config.accumulation}): build fails on the "
                f"whole batch, so there is no step to compare with",
                expected="a build that takes a micro-batch and the whole batch",
                got=f"{type(e).__name__}: {e}".splitlines()[0], at=getattr(e, "at", self._build_line()),
                fix="take sizes from the input: x.shape[0]") from e
        finally:
            set_seeds(current)
            for part, count in zip(parts, counts):
                del part.nodes[count:]
        return whole

    def _losses(self) -> GraphValue:
        """Return the losses of the micro-batches, scaled so that their mean is the loss of the batch."""
        with self.tracer.raw():
            return joined(self.tracer, [y * float(len(self.made)) for y in self.made], self.batch_parts)

    def _once(self, wanted: Sequence[GraphValue]) -> list:
        """Return the gradients of a batch that is not cut."""
        nodes = self.graph.nodes
        many = len(nodes)
        grads = self.backward([*nodes], {}, wanted)
        self.tracer.passes = {node: (0, i >= many) for i, node in enumerate(nodes)}
        return grads

    def gather_batch(self, value: GraphValue) -> GraphValue:
        return joined(self.tracer, [table.get(value, value) for table, _ in self.parts], self.batch_parts)

    def link(self) -> None:
        load_free_tensors(self.owner._states, self.tracer.variables)
        super().link()
        if self.owner._optimizers:
            self.program.run = self.steps.around(self.program)


def get_seeds() -> tuple:
    """Return the states of the global generators of Python and NumPy."""
    return random.getstate(), np.random.get_state()  # noqa: NPY002 (the generator that build may use)


def set_seeds(states: tuple) -> None:
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002
