"""Gradient accumulation and activation checkpointing, which run a part of a graph again.

Accumulation traces build on one micro-batch, and then appends the same nodes for each of the others. The
backward pass of a micro-batch follows its forward nodes, so that the activations of only one micro-batch are
alive at a time. Checkpointing drops the values of a module and appends its nodes again where the backward
pass needs them.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from flowedu.core.graph.ir import GraphValue, Node
from flowedu.core.ops import axes
from flowedu.core.ops.concat import concat
from flowedu.core.ops.concat import slice as slice_op
from flowedu.core.ops.define import Op, define
from flowedu.core.ops.record import Effects, Meaning, Split, View
from flowedu.core.ops.view import reshape
from flowedu.errors import ShapeError

recompute = define("recompute(x) -> y", Meaning(lambda x: "{0}->{0}".format(axes.same(x.ndim)), lambda x: x),
                   View(lambda strides: (strides, 0)), Split(linear=["x"]), Effects(fresh=True),
                   grad={"x": lambda dy: dy},
                   doc="x, which the passes take for another value: what is computed from it is "
                   "computed anew.")


class Recomputed:
    """Record of a call for the backward pass, with the node's op and attributes and recomputed values."""

    def __init__(self, node: Node, inputs: tuple, outputs: tuple):
        self.op, self.attrs = node.op, node.attrs
        self.inputs, self.outputs = inputs, outputs


class Checkpoint:
    """One call of a module with activation_checkpointing.

    The first call of `again(node)` appends the module's nodes a second time.
    """

    def __init__(self, tracer):
        self.tracer = tracer
        self.nodes: list[Node] = []
        self.copies: dict[Node, Recomputed] | None = None

    def again(self, node: Node) -> Recomputed:
        if self.copies is None:
            self.copies = {}
            table: dict[GraphValue, GraphValue] = {}
            entered: dict[GraphValue, GraphValue] = {}
            for old in self.nodes:
                inputs = tuple(table[x] if x in table else self._enter(x, entered) for x in old.inputs)
                outputs = self.tracer.append(old.op, inputs, old.attrs,
                                             name=f"Sys-Checkpointing-Fake-Fw-Op_{old.name}", reseed=False)
                table.update(zip(old.outputs, outputs))
                self.copies[old] = Recomputed(old, inputs, outputs)
        return self.copies[node]

    def _enter(self, x: GraphValue, entered: dict) -> GraphValue:
        if x not in entered:
            entered[x] = x if x.kind not in ("node", "input") else self.tracer.append(recompute, (x,), ())[0]
        return entered[x]


def micro_slices(tracer, value: GraphValue, k: int, name: str, devices: int = 1) -> list[GraphValue]:
    """Cut a value into k equal parts along axis 0.

    If a batch is split over `devices` devices, each device cuts its own rows, so that no row moves. With 8
    rows on two devices, the first of two micro-batches has rows 0, 1, 4, 5.
    """
    if not value.shape or value.shape[0] % k:
        raise ShapeError(f"set_gradient_accumulation_steps({k}): {name} cannot be cut into {k} equal parts "
                         f"along axis 0",
                         expected=f"a batch whose size is a multiple of {k}", got=f"shape {value.shape}",
                         fix="another batch size, or number of steps")
    rest = value.shape[1:]
    if devices > 1:
        rows = value.shape[0] // devices
        value = _call(tracer, reshape, value, shape=(devices, rows, *rest))
        parts = [_rows(tracer, value, 1, rows // k, i) for i in range(k)]
        return [_call(tracer, reshape, p, shape=(devices * rows // k, *rest)) for p in parts]
    return [_rows(tracer, value, 0, value.shape[0] // k, i) for i in range(k)]


def _call(tracer, op: Op, *values: GraphValue, **attrs) -> GraphValue:
    return tracer.append(op, values, op.complete(attrs))[0]


def _rows(tracer, value: GraphValue, axis: int, n: int, i: int) -> GraphValue:
    """Return the i-th n elements along an axis."""
    start = tuple(i * n if d == axis else 0 for d in range(value.ndim))
    stop = tuple((i + 1) * n if d == axis else size for d, size in enumerate(value.shape))
    return _call(tracer, slice_op, value, start=start, stop=stop, step=(1,) * value.ndim)


def repeat_forward(tracer, nodes: Sequence[Node], table: dict[GraphValue, GraphValue]) -> list[Node]:
    """Append `nodes` again with inputs from `table`, add their outputs to it, and return the new nodes."""
    made = []
    checkpoints: dict[Checkpoint, Checkpoint] = {}       # of the first forward pass -> of this one
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


def over_micro_batches(tracer, cuts: Sequence[Sequence[GraphValue]], differentiate: Callable,
                       k: int) -> list[tuple]:
    """Return [(table, gradients)], where a table maps values of the first micro-batch to those of another.

    Args:
        cuts: the slices of every input, which come before the nodes of build. Build was traced on the first
            slices.
        differentiate: function (nodes, table) -> gradients.
    """
    nodes = tracer.graph.nodes

    def passed(i: int, forward: Sequence[Node], table: dict) -> tuple:
        before = len(nodes)
        grads = differentiate(forward, table)
        tracer.passes.update(dict.fromkeys(forward, (i, False)))
        tracer.passes.update(dict.fromkeys(nodes[before:], (i, True)))
        return table, grads

    last_cut = max((nodes.index(v.node) for slices in cuts for v in slices), default=-1)
    first = nodes[last_cut + 1:]
    found = [passed(0, first, {})]
    written = dict(tracer.written)
    for i in range(1, k):
        before = found[-1][0]
        table = {slices[0]: slices[i] for slices in cuts}
        table.update({variable: before.get(value, value) for variable, value in written.items()})
        found.append(passed(i, repeat_forward(tracer, first, table), table))
    last = found[-1][0]
    final = {value: last.get(value, value) for value in written.values()}
    tracer.written = {variable: final[value] for variable, value in written.items()}
    tracer.values.update({key: final[value] for key, value in tracer.values.items() if value in final})
    return found


def joined(tracer, parts: Sequence[GraphValue], devices: int = 1) -> GraphValue:
    """Join the values of the micro-batches: scalars become a vector, batches are concatenated.

    `devices` is as in micro_slices.
    """
    if len(parts) == 1:
        return parts[0]
    shape = parts[0].shape
    if not shape:
        parts = [_call(tracer, reshape, p, shape=(1,)) for p in parts]
    elif devices > 1 and shape[0] % devices == 0:
        parts = [_call(tracer, reshape, p, shape=(devices, shape[0] // devices, *shape[1:])) for p in parts]
        whole = _call(tracer, concat, *parts, axis=1)
        return _call(tracer, reshape, whole, shape=(shape[0] * len(parts), *shape[1:]))
    return _call(tracer, concat, *parts, axis=0)
