"""Passes for attention, as it is usually written.

    masked_softmax  softmax(where(mask, fill, x * scale)) is one op, and so is its gradient
    bands           the gradients of slices that together make up a value are concatenated, not padded and added
"""
from __future__ import annotations

from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.graph.rewrite import attributes, rebuilt
from flowedu.core.ops.concat import concat, slice_grad
from flowedu.core.ops.elementwise import add, mul, where
from flowedu.core.ops.view import constant
from flowedu.fast.ops.masked_softmax import masked_softmax as masked
from flowedu.fast.ops.masked_softmax import masked_softmax_grad as masked_grad
from flowedu.fast.passes.substitute import substitute
from flowedu.ops.softmax import softmax, softmax_grad


def number(value: GraphValue) -> float | None:
    """The number a 0-d constant holds; None for anything else."""
    node = value.node
    return attributes(node)["value"] if node is not None and node.op is constant and value.ndim == 0 else None


def masked_softmax(graph: Graph) -> str:
    """where and scale go into the softmax that alone reads them, and into its gradient."""
    readers, outputs = graph.consumers(), set(graph.outputs)

    def alone(value: GraphValue) -> bool:
        return len(readers.get(value, ())) == 1 and value not in outputs

    def scaled(value: GraphValue) -> tuple[GraphValue, float]:
        """(x, scale) where value = x * scale and nothing else reads it; (value, 1) otherwise."""
        node = value.node
        if node is not None and node.op is mul and alone(value):
            for x, factor in (node.inputs, node.inputs[::-1]):
                if number(factor) is not None and x.shape == value.shape:
                    return x, float(number(factor))
        return value, 1.0

    made: dict[Node, Node] = {}
    for node in graph.nodes:
        if node.op is not softmax or attributes(node)["axis"] % node.inputs[0].ndim != node.inputs[0].ndim - 1:
            continue
        chosen = node.inputs[0].node
        if chosen is None or chosen.op is not where or not alone(node.inputs[0]):
            continue
        mask, fill, x = chosen.inputs
        if number(fill) is None or x.shape != node.inputs[0].shape or mask.ndim > x.ndim:
            continue
        x, scale = scaled(x)
        new = rebuilt(masked, (x, mask), {"scale": scale, "fill": float(number(fill))}, node)
        made[node] = new
        for grad in readers.get(node.outputs[0], ()):
            last = _gradient(grad, node, mask, scale, readers, outputs)
            if last is not None:
                back = rebuilt(masked_grad, (grad.inputs[0], node.outputs[0], mask),
                               {"scale": scale}, grad)
                made[last] = back
    substitute(graph, made)
    forward = sum(n.op is softmax for n in made)
    return f"{forward} softmaxes take a mask, {len(made) - forward} gradients with them" if made else ""


def _gradient(grad: Node, forward: Node, mask: GraphValue, scale: float, readers, outputs) -> Node | None:
    """The last node of softmax_grad, where(mask, 0, it), * scale; None where something else reads in between."""
    if grad.op is not softmax_grad or grad.inputs[1] is not forward.outputs[0] or grad.outputs[0] in outputs:
        return None
    found = readers.get(grad.outputs[0], ())
    if len(found) != 1 or found[0].op is not where:
        return None
    chosen = found[0]
    if chosen.inputs[0] is not mask or number(chosen.inputs[1]) != 0 or chosen.inputs[2] is not grad.outputs[0]:
        return None
    if scale == 1.0:
        return chosen
    after = readers.get(chosen.outputs[0], ())
    if len(after) == 1 and chosen.outputs[0] not in outputs and after[0].op is mul \
            and scale in map(number, after[0].inputs):
        return after[0]
    return None


def bands(graph: Graph) -> str:
    """slice_grad(a) + slice_grad(b) + ... = concat(a, b, ...) where the slices cover an axis and do not overlap."""
    readers, outputs = graph.consumers(), set(graph.outputs)

    whole: set[GraphValue] = set()                             # sums of slices' gradients alone, and these themselves
    for node in graph.nodes:
        if node.op is slice_grad or node.op is add and all(x in whole and x.shape == node.outputs[0].shape
                                                           for x in node.inputs):
            whole.add(node.outputs[0])

    def part(value: GraphValue) -> bool:
        """Whether it is a sum that only a larger one reads."""
        found = readers.get(value, ())
        return len(found) == 1 and value not in outputs and found[0].op is add and found[0].outputs[0] in whole

    def terms(value: GraphValue) -> list[GraphValue]:
        """What a tree of additions adds up."""
        found, todo = [], [*value.node.inputs]
        while todo:
            x = todo.pop()
            if x.node.op is add and part(x):
                todo += x.node.inputs
            else:
                found.append(x)
        return found

    made: dict[Node, Node] = {}
    for node in graph.nodes:
        if node.op is not add or node.outputs[0] not in whole or part(node.outputs[0]):
            continue
        leaves = terms(node.outputs[0])
        axis = _joined_axis(leaves)
        if axis is None:
            continue
        leaves.sort(key=lambda v: attributes(v.node)["start"][axis])
        made[node] = rebuilt(concat, [v.node.inputs[0] for v in leaves], {"axis": axis}, node)
    substitute(graph, made)
    return f"{len(made)} sums of slices are joined" if made else ""


def _joined_axis(leaves: list[GraphValue]) -> int | None:
    """The axis along which slice gradients lie side by side and leave nothing out."""
    if len(leaves) < 2 or any(v.node is None or v.node.op is not slice_grad for v in leaves):
        return None
    attrs = [attributes(v.node) for v in leaves]
    shape = leaves[0].shape
    if any(set(a["step"]) != {1} for a in attrs):
        return None
    part = [d for d, n in enumerate(shape) if any((a["start"][d], a["stop"][d]) != (0, n) for a in attrs)]
    if len(part) != 1:
        return None
    ranges = sorted((a["start"][part[0]], a["stop"][part[0]]) for a in attrs)
    ends = [0, *(stop for _, stop in ranges)]
    return part[0] if ends[-1] == shape[part[0]] and all(r[0] == e for r, e in zip(ranges, ends)) else None
