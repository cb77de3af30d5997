"""Passes: short functions that rewrite a graph's node list and return a line for the report.

    simplify  removes identity and no-op nodes
    cse       computes equal ops on equal values once
    dead      removes nodes whose results are not used                                (rewrite.py)

Fusions and other optimizations (fast/passes) register themselves. The planner implements `inplace`
and `reuse` (plan.py). Each pass can be switched off by name.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import nullcontext
from time import perf_counter

from flowedu.core import extensions
from flowedu.core.eager.dispatch import make_key
from flowedu.core.graph.ir import Graph, GraphValue
from flowedu.core.graph.rewrite import dead, replace
from flowedu.core.ops.define import Op
from flowedu.core.ops.view import cast, expand, identity, reshape

SAME: set[Op] = {identity, reshape, expand, cast}     # no-ops if the output has the same Spec


def run_passes(graph: Graph, off: Iterable[str] = (),
               last: Callable[..., str] | None = None) -> list[str]:
    """Run all passes in order, then `last`, a pass for the device. Returns one line per pass."""
    report, checks = [], extensions.check_pass or nullcontext
    for f in PASSES if last is None else (*PASSES, last):
        if f.__name__ not in off:
            before, parts, start = len(graph.nodes), PARTS.get(f), perf_counter()
            with checks((graph, f)):
                note = f(graph) if parts is None else f(graph, {op for p in parts if p in off
                                                                for op in parts[p]})
            graph.spent[f"pass {f.__name__}"] = perf_counter() - start
            report.append(f"{f.__name__} {before:4d} -> {len(graph.nodes):4d} nodes  {note}")
    return report


def simplify(graph: Graph) -> str:
    """Remove identities, and each reshape, expand, or cast that does not change the Spec."""
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
    """Eliminate common subexpressions, except random ops and writes of variables."""
    seen: dict = {}
    table: dict[GraphValue, GraphValue] = {}
    kept = []
    for node in graph.nodes:
        node.inputs = tuple(table.get(x, x) for x in node.inputs)
        key = (node.op, node.inputs, make_key(node.attrs))
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
PARTS: dict[Callable[..., str], dict[str, Collection[Op]]] = {}      # {pass: {part: its ops}}
NAMES = [*(f.__name__ for f in PASSES), "inplace", "reuse"]                  # accepted by `off`


def register_pass(f: Callable[..., str], before: Callable[..., str] | None = None,
                  **parts: Collection[Op]) -> None:
    """Register `f(graph)` as a pass that runs just before the pass `before` (None: last).

    The pass can be switched off by the name of `f`. `parts` are further names that can be switched
    off, each with its ops. A pass with parts is called as f(graph, set of ops to leave unchanged).
    """
    at = len(PASSES) if before is None else PASSES.index(before)
    PASSES.insert(at, f)
    NAMES.insert(at, f.__name__)
    if parts:
        PARTS[f] = parts
        NAMES[-2:-2] = parts
