"""Comparison of the results of one step with and without each pass.

After each pass, a copy of the graph is stored. The first step runs all copies, with copies of the variables
and the same random numbers, and compares the results of consecutive copies.

Passes may change the order of additions, so results may differ by rounding errors. To estimate these
errors, the traced step runs a second time, with every floating point input and variable changed by the
relative rounding error eps. For a graph of n nodes, each of which rounds its results, results may differ by

    FACTOR * n * (eps * largest magnitude of the result + largest change by the rounded inputs)

eps is that of the coarsest dtype in the graph. Integers must be equal, unless the rounded inputs change them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from flowedu.core.eager.arrays import copied, copy_of, detach
from flowedu.core.eager.tensor import Tensor
from flowedu.core.graph import memory
from flowedu.core.graph.executor import Executor
from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.graph.plan import make_plan
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values import dtype as dt
from flowedu.diagnostics.verify.graphs import CORRECT, fault

FACTOR = 32
EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


class Stage(NamedTuple):
    """A copy of a graph. `who` is the pass that created it, or "" for the graph as traced."""

    who: str
    graph: Graph


stages: WeakKeyDictionary[Graph, list[Stage]] = WeakKeyDictionary()


def copy_graph(
    graph: Graph, calls: Sequence[tuple[Node, Sequence[GraphValue]]], outputs: Sequence[GraphValue]
) -> Graph:
    """Return a graph with the sources of `graph` and copies of its nodes, because passes rewrite nodes."""
    new = Graph(graph.name)
    table: dict[GraphValue, GraphValue] = {}
    new.inputs, new.variables, new.hosts = dict(graph.inputs), dict(graph.variables), dict(graph.hosts)
    new.training, new.keeps = graph.training, graph.keeps
    for node, inputs in calls:
        copy = Node(
            node.op,
            [table.get(x, x) for x in inputs],
            node.attrs,
            [y.spec for y in node.outputs],
            node.name,
            node.line,
            node.placement,
        )
        table.update(zip(node.outputs, copy.outputs))
        new.nodes.append(copy)
    new.outputs = [table.get(v, v) for v in outputs]
    return new


def remember(graph: Graph, who: str = "") -> None:
    """Store a copy of the graph after the pass `who`, or as traced (no `who`) if no copy exists yet."""
    kept = stages.setdefault(graph, [])
    if who or not kept:
        kept.append(Stage(who, copy_graph(graph, [(n, n.inputs) for n in graph.nodes], graph.outputs)))


class ComparingExecutor(Executor):
    """An executor whose first run compares the stages of its graph."""

    def run(self, arguments: tuple) -> list:
        kept = stages.pop(self.plan.graph, None)
        if kept is not None:
            compare_stages(self, kept, arguments)
        return super().run(arguments)


def compare_stages(
    executor: Executor, kept: Sequence[Stage], arguments: tuple, make: Callable = Executor
) -> None:
    """Run one step of each stage and compare its results with the previous stage.

    Args:
        executor: executor of the last stage. Its variables and run number do not change.
        kept: the graph as traced, and after each pass.
        arguments: arguments of the step.
        make: class of the executors.

    Raises:
        GraphError: a pass, or the planner, changed the results.
    """
    if any(node.op.effect for node in kept[0].graph.nodes):
        return  # other ranks and devices would see each run
    step = Step(executor, arguments, make)
    eps = max(
        [EPS[spec.dtype.name] for stage in kept for spec in _specs(stage.graph) if spec.dtype.name in EPS],
        default=0.0,
    )
    traced = step.run(kept[0].graph)
    rounded = step.run(kept[0].graph, eps)
    factor, before = FACTOR * len(kept[0].graph.nodes), traced
    bounds = {}
    for name, value in traced.items():
        bounds[name] = factor * (eps * _largest(value) + _largest_change(value, rounded[name]))
    last = Stage(f'planner "{memory.place.__code__.co_name}"', kept[-1].graph)
    for stage in (*kept[1:], last):
        now = step.run(stage.graph, memory_passes=stage is last)
        for name, bound in bounds.items():
            _check_close(stage, name, before[name], now[name], bound)
        before = now


class Step:
    """One step of a program that can run each stage. See `compare_stages`."""

    def __init__(self, executor: Executor, arguments: tuple, make: Callable):
        self.executor, self.arguments, self.make = executor, arguments, make
        plan = executor.plan
        count: Any = executor.counter
        self.runs = executor.runs if count is None else int(count.numpy()[0])
        self.arrays = {
            v: plan.where[v].buffer.array
            for t in (plan.graph.variables, plan.graph.hosts)
            for v in t.values()
        }
        self.written = {n.inputs[k] for n in plan.graph.nodes for k in n.mutates}

    def run(self, graph: Graph, eps: float = 0.0, memory_passes: bool = False) -> dict[str, np.ndarray]:
        """Return {output or variable: its value after the step}.

        `eps` is a relative change of floating point inputs.
        """
        graph = copy_graph(graph, [(n, n.inputs) for n in graph.nodes], graph.outputs)
        arrays = {
            v: t if v.kind == "host" else _perturbed(copy_of(detach(t)), eps) for v, t in self.arrays.items()
        }
        plan = make_plan(graph, arrays, threads=self.executor.nt, inplace=memory_passes, reuse=memory_passes)
        executor = self.make(plan, threads=self.executor.nt)
        executor.as_tensors, executor.runs = self.executor.as_tensors, self.runs
        results = executor.run(tuple([_perturbed(x, eps) for x in self.arguments]))
        values = {f"output {i}": _numbers(x, v.dtype) for i, (x, v) in enumerate(zip(results, graph.outputs))}
        values.update({v.name: _numbers(arrays[v], v.dtype) for v in self.written})
        return values


def _specs(graph: Graph) -> list:
    return [y.spec for n in graph.nodes for y in n.outputs] + [
        v.spec for v in (*graph.inputs.values(), *graph.variables.values())
    ]


def _perturbed(x, eps: float):
    """Return a copy of x whose elements are changed by the factors 1 + eps and 1 - eps, alternately."""
    kind = x.dtype if isinstance(x, Tensor) else None
    if not eps or (kind.name if kind is not None else str(x.dtype)) not in EPS:
        return x
    a = _numbers(x, kind)
    new = (a * (1 + eps * np.where(np.arange(a.size) % 3 == 0, -1.0, 1.0).reshape(a.shape))).astype(a.dtype)
    return new if kind is None else REGISTRY["cast"](copied(new), dtype=kind)


def _numbers(x, kind: dt.dtype | None) -> np.ndarray:
    """Return a tensor or array as an ndarray of a NumPy dtype."""
    if isinstance(x, Tensor):
        y = x if kind is None or kind.numpy is not None else REGISTRY["cast"](detach(x), dtype=dt.float32)
        return y.numpy().copy()
    if kind is not None and kind.numpy is None:  # bfloat16, as its 16 bits
        return (x.astype(np.uint32) << 16).view(np.float32)
    return x


def _largest(a: np.ndarray) -> float:
    return float(np.max(np.abs(a[np.isfinite(a)]), initial=0.0))


def _largest_change(a: np.ndarray, b: np.ndarray) -> float:
    both = np.isfinite(a) & np.isfinite(b)
    return float(np.max(np.abs(a[both].astype(np.float64) - b[both]), initial=0.0))


def _check_close(stage: Stage, name: str, before: np.ndarray, now: np.ndarray, bound: float) -> None:
    exact = not np.issubdtype(before.dtype, np.floating)
    if exact and bound < FACTOR:
        bound = 0.0
    both = np.isfinite(before) & np.isfinite(now)
    same = np.array_equal(before[~both], now[~both], equal_nan=not exact)
    change = _largest_change(before, now)
    if same and change <= bound:
        return
    raise fault(
        stage.who,
        f"{name} has other values than before"
        if stage.who.startswith("pass")
        else f"{name} has other values than with separate buffers",
        fix=CORRECT,
        expected=f"differences up to {bound:.3g}",
        got=f"{change:.3g}" if same else "infinities or NaN in other places",
        line=_line(stage.graph, name),
    )


def _line(graph: Graph, name: str) -> str:
    """Return the line of the node that computes an output or writes a variable."""
    if name.startswith("output "):
        node = graph.outputs[int(name.removeprefix("output "))].node
        return node.line if node is not None else ""
    return next((n.line for n in graph.nodes if any(n.inputs[k].name == name for k in n.mutates)), "")
