"""Passes for the usual formulation of attention.

    masked_softmax  replaces softmax(where(mask, fill, x * scale)) by one op, and its gradient by another
    bands           concatenates the gradients of slices that cover a value, instead of adding padded ones
"""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.graph.rewrite import attributes, rebuilt
from flowedu.core.ops.concat import concat, slice_grad
from flowedu.core.ops.elementwise import add, mul, where
from flowedu.core.ops.view import constant
from flowedu.fast.ops.masked_softmax import masked_softmax as masked
from flowedu.fast.ops.masked_softmax import masked_softmax_grad as masked_grad
from flowedu.fast.passes.substitute import substitute
from flowedu.ops.softmax import softmax, softmax_grad


def number(value: GraphValue) -> float | Any:
    """Return the number in a 0-d constant, or None for other values."""
    node = value.node
    return attributes(node)["value"] if node is not None and node.op is constant and value.ndim == 0 else None


def masked_softmax(graph: Graph) -> str:
    """Merge `where` and the scale into the softmax that is their only reader, and into its gradient."""
    readers, outputs = graph.consumers(), set(graph.outputs)

    def alone(value: GraphValue) -> bool:
        return len(readers.get(value, ())) == 1 and value not in outputs

    def scaled(value: GraphValue) -> tuple[GraphValue, float]:
        """Return (x, scale) if value = x * scale has no other reader, or else (value, 1)."""
        node = value.node
        if node is not None and node.op is mul and alone(value):
            for x, factor in (node.inputs, node.inputs[::-1]):
                if number(factor) is not None and x.shape == value.shape:
                    return x, float(number(factor))
        return value, 1.0

    new_nodes: dict[Node, Node] = {}
    for node in graph.nodes:
        if (node.op is not softmax or attributes(node)["axis"] % node.inputs[0].ndim != node.inputs[0].ndim
            - 1):
            continue
        select = node.inputs[0].node
        if select is None or select.op is not where or not alone(node.inputs[0]):
            continue
        mask, fill, x = select.inputs
        if number(fill) is None or x.shape != node.inputs[0].shape or mask.ndim > x.ndim:
            continue
        x, scale = scaled(x)
        new = rebuilt(masked, (x, mask), {"scale": scale, "fill": float(number(fill))}, node)
        new_nodes[node] = new
        for grad in readers.get(node.outputs[0], ()):
            last = _gradient(grad, node, mask, scale, readers, outputs)
            if last is not None:
                back = rebuilt(masked_grad, (grad.inputs[0], node.outputs[0], mask),
                               {"scale": scale}, grad)
                new_nodes[last] = back
    substitute(graph, new_nodes)
    forward = sum(n.op is softmax for n in new_nodes)
    if not new_nodes:
        return ""
    return f"{forward} softmaxes take a mask, {len(new_nodes) - forward} gradients with them"


def _gradient(grad: Node, forward: Node, mask: GraphValue, scale: float,
              readers: Mapping[GraphValue, Sequence[Node]], outputs: Collection[GraphValue]) -> Node | None:
    """Return the last node of softmax_grad -> where(mask, 0, .) -> * scale, or None (other readers)."""
    if grad.op is not softmax_grad or grad.inputs[1] is not forward.outputs[0] or grad.outputs[0] in outputs:
        return None
    users = readers.get(grad.outputs[0], ())
    if len(users) != 1 or users[0].op is not where:
        return None
    select = users[0]
    if select.inputs[0] is not mask or number(select.inputs[1]) != 0 \
            or select.inputs[2] is not grad.outputs[0]:
        return None
    if scale == 1.0:
        return select
    after = readers.get(select.outputs[0], ())
    if len(after) == 1 and select.outputs[0] not in outputs and after[0].op is mul \
            and scale in map(number, after[0].inputs):
        return after[0]
    return None


def bands(graph: Graph) -> str:
    """Replace slice_grad(a) + slice_grad(b) + ... by concat(a, b, ...) if the slices partition an axis."""
    readers, outputs = graph.consumers(), set(graph.outputs)

    whole: set[GraphValue] = set()                             # gradients of slices, and sums of only these
    for node in graph.nodes:
        if node.op is slice_grad or node.op is add and all(x in whole and x.shape == node.outputs[0].shape
                                                           for x in node.inputs):
            whole.add(node.outputs[0])

    def part(value: GraphValue) -> bool:
        """Return True if the only reader of `value` is a larger sum."""
        users = readers.get(value, ())
        return len(users) == 1 and value not in outputs and users[0].op is add \
            and users[0].outputs[0] in whole

    def terms(value: GraphValue) -> list[GraphValue]:
        """Return the terms of a tree of additions."""
        users, todo = [], [*value.node.inputs]
        while todo:
            x = todo.pop()
            if x.node.op is add and part(x):
                todo += x.node.inputs
            else:
                users.append(x)
        return users

    new_nodes: dict[Node, Node] = {}
    for node in graph.nodes:
        if node.op is not add or node.outputs[0] not in whole or part(node.outputs[0]):
            continue
        leaves = terms(node.outputs[0])
        axis = _joined_axis(leaves)
        if axis is None:
            continue
        leaves.sort(key=lambda v: attributes(v.node)["start"][axis])
        new_nodes[node] = rebuilt(concat, [v.node.inputs[0] for v in leaves], {"axis": axis}, node)
    substitute(graph, new_nodes)
    return f"{len(new_nodes)} sums of slices are joined" if new_nodes else ""


def _joined_axis(leaves: list[GraphValue]) -> int | None:
    """Return the axis that the slices partition, or None."""
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
