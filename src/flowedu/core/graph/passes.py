"""Passes: short functions that rewrite a graph's node list. Each can be switched off and says what it did.

    simplify  identity and no-op nodes go
    cse       the same op on the same values is computed once
    dead      nodes nobody needs go                                            (rewrite.py)
    fuse      chains of elementwise ops become one kernel                      (fuse.py)
    update    plain SGD goes into the matrix product that makes the gradient

Others register themselves, and say before which of these they run: those that know special kernels are in fast/passes.
fuse_add and fuse_scale are parts of fuse; inplace and reuse are the planner's (memory.py). All can be switched off by name.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable

from flowedu.core.graph.fuse import fuse
from flowedu.core.graph.ir import Graph, GraphValue, Node, base
from flowedu.core.graph.rewrite import attributes, dead, replace
from flowedu.core.ops.define import Op
from flowedu.core.ops.elementwise import add, div, mul
from flowedu.core.ops.matmul import matmul, matmul_update
from flowedu.core.ops.update import number_of, sgd_update
from flowedu.core.ops.view import cast, expand, identity, reshape
from flowedu.core.values.dtype import float32

SAME: set[Op] = {identity, reshape, expand, cast}     # a result of the input's shape and dtype is the input


def run_passes(graph: Graph, off: Iterable[str] = ()) -> list[str]:
    """All passes in order; returns one line per pass."""
    report = []
    for f in PASSES:
        if f.__name__ not in off:
            before = len(graph.nodes)
            alone = {op for part, ops in FUSE_PARTS.items() if part in off for op in ops}
            said = fuse(graph, alone) if f is fuse else f(graph)
            report.append(f"{f.__name__:9s} {before:4d} -> {len(graph.nodes):4d} nodes  {said}")
    return report


def simplify(graph: Graph) -> str:
    """x for identity(x), for reshape or expand to the same shape, and for a cast to the same dtype."""
    table, kept = {}, []
    for node in graph.nodes:
        if node.op in SAME and node.inputs[0].spec == node.outputs[0].spec:
            table[node.outputs[0]] = node.inputs[0]
        else:
            kept.append(node)
    graph.nodes = kept
    replace(graph, table)
    return ""


def cse(graph: Graph) -> str:
    """Common subexpressions. Nodes that draw random numbers or write variables stay."""
    seen: dict = {}
    table: dict[GraphValue, GraphValue] = {}
    kept = []
    for node in graph.nodes:
        node.inputs = tuple(table.get(x, x) for x in node.inputs)
        key = (node.op, node.inputs, node.attrs)
        if node.op.random or node.mutates or node.op.fresh:
            kept.append(node)
        elif key in seen:
            table.update(zip(node.outputs, seen[key].outputs))
        else:
            seen[key] = node
            kept.append(node)
    graph.nodes = kept
    replace(graph, table)
    return ""


def update(graph: Graph) -> str:
    """w -= lr * (a @ b), where a @ b is the gradient of w and nothing else reads it: one BLAS call with beta = 1.

    The gradient, as large as the weights, is neither written nor read back.
    """
    readers, outputs = graph.consumers(), set(graph.outputs)
    kept, absorbed = [], set()
    for node in graph.nodes:
        if node.op is not sgd_update:
            kept.append(node)
            continue
        attrs, rate = attributes(node), node.inputs[0]
        left, decay = list(node.inputs[:2]), {n: [] for n in DECAYS}
        for i, (w, g) in enumerate(zip(node.inputs[2::2], node.inputs[3::2])):
            own = {n: number_of(attrs[n], i) for n in DECAYS}
            alone = len(readers[g]) == 1 and g not in outputs
            if alone and not any(own.values()) and _goes_into(node, w, g.node):
                values = matmul_update.complete({**attributes(g.node), "scale": attrs["scale"]})
                kept.append(Node(matmul_update, (*g.node.inputs, rate, w), values, (), f"{w.name}-update", node.line))
                absorbed.add(g.node)
            else:
                left += [w, g]
                for n, v in own.items():
                    decay[n].append(v)
        if len(left) > 2:
            kept.append(Node(node.op, left, node.op.complete({**attrs, **decay}), (), node.name, node.line))
    graph.nodes = [n for n in kept if n not in absorbed]
    return f"{len(absorbed)} gradients go straight into their weights" if absorbed else ""


DECAYS = ("weight_decay", "l1", "l2")


def _goes_into(node: Node, w: GraphValue, made: Node | None) -> bool:
    """Whether `made`, which makes the gradient of w, can make the update `node` of it."""
    rate, step = node.inputs[:2]
    return (made is not None and made.op is matmul and len(w.shape) == 2 and rate.dtype is float32
            and step.kind != "node"                                        # an update that may be left out
            and all(base(x).kind != "variable" for x in made.inputs))      # it may have been updated by then


PASSES: list[Callable[[Graph], str]] = [simplify, cse, dead, fuse, update]
FUSE_PARTS = {"fuse_add": (add,), "fuse_scale": (cast, mul, div)}
NAMES = [*(f.__name__ for f in PASSES), *FUSE_PARTS, "inplace", "reuse"]     # what can be switched off


def register_pass(f: Callable[[Graph], str], before: Callable[[Graph], str]) -> None:
    """Let `f` rewrite every graph from now on, just before the pass `before`. It can be switched off by its name."""
    at = PASSES.index(before)
    PASSES.insert(at, f)
    NAMES.insert(at, f.__name__)
