"""Passes: short functions that rewrite a graph's node list. Each can be switched off and says what it did.

    simplify  identity and no-op nodes go
    cse       the same op on the same values is computed once
    dead      nodes that are not needed go                                            (rewrite.py)

Others register themselves: those that make graphs faster are in fast/passes. inplace and reuse are the planner's
(memory.py). All can be switched off by name.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import nullcontext
from time import perf_counter

from flowedu.core.eager.dispatch import exact
from flowedu.core.extensions import extension
from flowedu.core.graph.ir import Graph, GraphValue
from flowedu.core.graph.rewrite import dead, replace
from flowedu.core.ops.define import Op
from flowedu.core.ops.view import cast, expand, identity, reshape

SAME: set[Op] = {identity, reshape, expand, cast}     # a result of the input's shape and dtype is the input


def run_passes(graph: Graph, off: Iterable[str] = (), last: Callable[[Graph], str] | None = None) -> list[str]:
    """All passes in order, and one of the device; returns one line per pass."""
    report, checks = [], extension("checks of a pass", nullcontext)
    for f in PASSES if last is None else (*PASSES, last):
        if f.__name__ not in off:
            before, parts, start = len(graph.nodes), PARTS.get(f), perf_counter()
            with checks((graph, f)):
                said = f(graph) if parts is None else f(graph, {op for p in parts if p in off for op in parts[p]})
            graph.spent[f"pass {f.__name__}"] = perf_counter() - start
            report.append(f"{f.__name__} {before:4d} -> {len(graph.nodes):4d} nodes  {said}")
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
        key = (node.op, node.inputs, exact(node.attrs))
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


PASSES: list[Callable[..., str]] = [simplify, cse, dead]
PARTS: dict[Callable[..., str], dict[str, Collection[Op]]] = {}              # of a pass: the ops each of its parts is about
NAMES = [*(f.__name__ for f in PASSES), "inplace", "reuse"]                  # what can be switched off


def register_pass(f: Callable[..., str], before: Callable[..., str] | None = None, **parts: Collection[Op]) -> None:
    """Let `f(graph)` rewrite every graph from now on, just before the pass `before` (None: last). It can be switched off by
    its name.

    parts: names that can be switched off, too, and the ops each is about; `f` gets as its second argument those to leave
    alone, as a set.
    """
    at = len(PASSES) if before is None else PASSES.index(before)
    PASSES.insert(at, f)
    NAMES.insert(at, f.__name__)
    if parts:
        PARTS[f] = parts
        NAMES[-2:-2] = parts
