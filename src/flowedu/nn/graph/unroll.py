"""Gradient accumulation and activation checkpointing: two ways of running a part of a graph again.

Accumulation traces build on one micro-batch, then appends the same nodes for each of the others, every time followed by
their backward pass: only one micro-batch's activations are alive at a time. Checkpointing forgets what a module computed
and appends its nodes again where the backward pass needs them.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from flowedu.errors import ShapeError
from flowedu.graph.ir import GraphValue, Node
from flowedu.ops import axes
from flowedu.ops.define import REGISTRY, define

recompute = define("recompute(x) -> y", lambda x: "{0}->{0}".format(axes.same(x.ndim)), linear=["x"], ref=lambda x: x,
                   view=lambda strides: (strides, 0), grad={"x": lambda dy: dy},
                   doc="x, which the passes take for another value: what is computed from it is computed anew.")
recompute.fresh = True


class Recomputed:
    """A record as the backward pass wants it: the node's op and attributes, over values computed again."""

    def __init__(self, node: Node, inputs: tuple, outputs: tuple):
        self.op, self.attrs, self.inputs, self.outputs = node.op, node.attrs, inputs, outputs


class Checkpoint:
    """One call of a module with activation_checkpointing. `again(node)` appends the module's nodes once more, the first
    time it is asked."""

    def __init__(self, tracer):
        self.tracer, self.nodes, self.copies = tracer, [], None

    def again(self, node: Node) -> Recomputed:
        if self.copies is None:
            self.copies, table, entered = {}, {}, {}
            for old in self.nodes:
                inputs = tuple(table[x] if x in table else self._enter(x, entered) for x in old.inputs)
                outputs = self.tracer.append(old.op, inputs, old.attrs, name=f"Sys-Checkpointing-Fake-Fw-Op_{old.name}",
                                             reseed=False)
                table.update(zip(old.outputs, outputs))
                self.copies[old] = Recomputed(old, inputs, outputs)
        return self.copies[node]

    def _enter(self, x: GraphValue, entered: dict) -> GraphValue:
        if x not in entered:
            entered[x] = x if x.kind not in ("node", "input") else self.tracer.append(recompute, (x,), ())[0]
        return entered[x]


def micro_slices(tracer, value: GraphValue, k: int, name: str) -> list[GraphValue]:
    """`value` cut into k equal parts along axis 0."""
    if not value.shape or value.shape[0] % k:
        raise ShapeError(f"set_gradient_accumulation_steps({k}): {name} cannot be cut into {k} equal parts along axis 0",
                         expected=f"a batch whose size is a multiple of {k}", got=f"shape {value.shape}",
                         fix="another batch size, or number of steps")
    op, n, rest = REGISTRY["slice"], value.shape[0] // k, value.shape[1:]
    zeros, step = (0,) * len(rest), (1,) * len(value.shape)
    return [tracer.append(op, (value,), op.complete(dict(start=(i * n, *zeros), stop=((i + 1) * n, *rest), step=step)))[0]
            for i in range(k)]


def repeat_forward(tracer, nodes: Sequence[Node], table: dict[GraphValue, GraphValue]) -> list[Node]:
    """Append `nodes` again with their inputs looked up in `table`, which learns the outputs. Returns the new nodes."""
    made, checkpoints = [], {}
    for old in nodes:
        tracer.scope[:] = [tracer.owner[old]] if tracer.owner.get(old) else []
        outputs = tracer.append(old.op, tuple(table.get(x, x) for x in old.inputs), old.attrs)
        new = tracer.graph.nodes[-1]
        if old in tracer.frozen:
            tracer.frozen.add(new)
        if old in tracer.checkpoints:
            again = checkpoints.setdefault(tracer.checkpoints[old], Checkpoint(tracer))
            again.nodes.append(new)
            tracer.checkpoints[new] = again
        made.append(new)
        table.update(zip(old.outputs, outputs))
    tracer.scope.clear()
    return made


def over_micro_batches(tracer, cuts: Sequence[Sequence[GraphValue]], differentiate: Callable, k: int) -> list[tuple]:
    """[(table, gradients)] of each micro-batch; a table maps values of the first to those of this one.

    Args:
        cuts: the slices of every input; build was traced on the first of each.
        differentiate: (nodes, table) -> gradients.
    """
    cut_nodes = {v.node for slices in cuts for v in slices}
    first = [n for n in tracer.graph.nodes if n not in cut_nodes]
    found = [({}, differentiate(first, {}))]
    written = dict(tracer.written)
    for i in range(1, k):
        before = found[-1][0]
        table = {slices[0]: slices[i] for slices in cuts}
        table.update({variable: before.get(value, value) for variable, value in written.items()})
        nodes = repeat_forward(tracer, first, table)
        found.append((table, differentiate(nodes, table)))
    last = found[-1][0]
    tracer.written = {variable: last.get(value, value) for variable, value in written.items()}
    return found


def joined(tracer, parts: Sequence[GraphValue]) -> GraphValue:
    """The micro-batches' values as one: numbers side by side, batches one after the other."""
    if len(parts) == 1:
        return parts[0]
    if not parts[0].shape:
        op = REGISTRY["reshape"]
        parts = [tracer.append(op, (p,), op.complete(dict(shape=(1,))))[0] for p in parts]
    op = REGISTRY["concat"]
    return tracer.append(op, tuple(parts), op.complete(dict(axis=0)))[0]
