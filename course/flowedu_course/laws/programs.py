"""Drawn graphs of several laws: their values by the NumPy references of the ops, and their text."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from flowedu.core.graph.ir import Graph, GraphValue


def evaluate(op: Any, inputs: Sequence, attrs: Sequence) -> tuple:
    """Return the outputs of an op by its NumPy reference."""
    names = {op.inputs[0]: tuple(inputs)} if op.variadic else dict(zip(op.inputs, inputs))
    out = op.ask(op.ref, {**names, **dict(zip(op.attrs, attrs))})
    return out if isinstance(out, tuple) else (out,)


def evaluate_graph(graph: Graph, known: dict[GraphValue, np.ndarray], partly: bool = False) -> dict:
    """Add the results of the nodes to `known`, and return it. partly: leave out nodes with missing inputs."""
    for n in graph.nodes:
        if not partly or all(x in known for x in n.inputs):
            results = evaluate(n.op, [known[x] for x in n.inputs], n.attrs)
            known.update(zip(n.outputs, map(np.asarray, results)))
    return known


def calls_of(nodes: Iterable) -> str:
    """Return the nodes as text: "v0 = add(a, b); v1 = neg(v0)"."""
    return join_calls([f"{n.outputs[0].name} = {n.op.name}({', '.join(v.name for v in n.inputs)})"
                       for n in nodes])


def join_calls(calls: Sequence[str]) -> str:
    """Return calls as one text, with their number if they are many."""
    return (f"{len(calls)} nodes: " if len(calls) > 12 else "") + "; ".join(calls)


def fetched(graph: Graph) -> str:
    """Return the line of a failure that names the outputs."""
    return f"  fetched         {', '.join(v.name for v in graph.outputs)}"


def run_graph(graph: Graph, number: dict[int, int]) -> tuple[list, dict[str, list]]:
    """Run a graph with the NumPy references of its ops, random and mutating ones included.

    number: {id of a node: seed}. Returns (outputs, {name: values that updates and effects wrote}).
    """
    rng = np.random.default_rng(3)
    given = (*graph.inputs.values(), *graph.variables.values())
    known = {v: rng.standard_normal(v.shape).astype(np.float32) for v in given}
    written: dict[str, list] = {}
    for node in graph.nodes:
        xs = [known[v] for v in node.inputs]
        # Reproducible, and different for each node.
        if node.op.random:
            out = [(np.random.default_rng(number.get(id(node), 0)).random(3) < 0.5).astype(np.int8)]
        elif node.mutates:
            written.setdefault(node.inputs[1].name, []).append(xs[0])
            continue
        elif node.op.effect:
            written.setdefault(node.op.name, []).append(xs[0])
            continue
        else:
            with np.errstate(invalid="ignore", divide="ignore"):       # casts of inf
                out = evaluate(node.op, xs, node.attrs)
        if node.op.fresh:
            out = [y + np.float32(number.get(id(node), 0)) for y in out]
        known.update(zip(node.outputs, out))
    return [known[v] for v in graph.outputs], written
