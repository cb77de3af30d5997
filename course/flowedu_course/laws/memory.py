"""Laws of chapter 4: the last read of each value, and memory reuse. Graphs have 2 x 2 matrices and views."""
from __future__ import annotations

import functools
import random

import numpy as np

from flowedu.core.graph.ir import Graph
from flowedu.core.graph.passes import NAMES
from flowedu.core.graph.plan import Planner
from flowedu.core.graph.program import Program
from flowedu.core.ops.define import REGISTRY, Op
from flowedu.core.ops.record import Kernel, Meaning, read
from flowedu.core.values.dtype import as_dtype, float32, int32
from flowedu.core.values.spec import Spec
from flowedu.swap import swapped
from flowedu_course.laws import copy_function, holds, many_programs, pair, smaller_programs, where_differ
from flowedu_course.laws.programs import calls_of, evaluate_graph, fetched


@functools.cache
def _mixed():
    """Return an op that may overwrite its first input, but not its second, which it reads until the end."""
    return Op(read("mixed(x, y) -> z"), Meaning("ab,ab->ab", lambda x, y: x - 2 * y[::-1]),
              Kernel(inplace=["x"]))


@functools.cache
def _bits():
    """Return an op whose result has as many bytes as its input, but another dtype."""
    return Op(read("bits(x) -> z"), Meaning("ab->ab", lambda x: x.view(np.int32), dtype=lambda x: int32),
              Kernel(inplace=["x"]))


# name: (number of inputs, op, attributes)
OPS = {"add": (2, "add", {}), "mul": (2, "mul", {}), "neg": (1, "neg", {}), "relu": (1, "relu", {}),
       "transposed": (1, "transpose", {"perm": (1, 0)}), "product": (2, "matmul", {}),
       "mixed": (2, "mixed", {}),
       "to int": (1, "cast", {"dtype": "int32"}), "to float": (1, "cast", {"dtype": "float32"})}
# Ops of the cases `edges`, which are not drawn.
RARE = {"bits": (1, "bits", {}), "first row": (1, "slice", {"start": (0, 0), "stop": (1, 2), "step": (1, 1)})}
OWN = {"mixed": _mixed, "bits": _bits}
COMMON = ("add", "neg", "mul", "transposed", "transposed")


def _graphs(rng, size):
    """Draw ((name, inputs) of each node, fetched values).

    Values 0 and 1 are inputs; only "to float" reads ints.
    """
    nodes, ints = [], set()
    for i in range(rng.randint(1, 3 * size)):
        name = rng.choice(list(OPS) if rng.random() < 0.5 else COMMON)
        known = range(2 + i)
        pool = ([v for v in known if (v in ints) == (name == "to float")]
                or [v for v in known if v not in ints])
        name = "neg" if name == "to float" and pool[0] not in ints else name
        late = pool[-3:]
        nodes.append((name, tuple(rng.choice(late if rng.random() < 0.7 else pool)
                                  for _ in range(OPS[name][0]))))
        if name == "to int":
            ints.add(2 + i)
    n = 2 + len(nodes)
    return tuple(nodes), tuple(sorted(rng.sample(range(2, n), rng.randint(1, min(2, n - 2)))))


def _smaller_graphs(case):
    return smaller_programs(*case, may=lambda gone, other: _is_int(case[0], gone) == _is_int(case[0], other))


def _is_int(nodes, v):
    return v >= 2 and nodes[v - 2][0] == "to int"


def _graph(case):
    g = Graph("drawn")
    values = [g.input(n, Spec((2, 2), float32)) for n in "ab"]
    with g.building():
        for name, ins in case[0]:
            _, op, attrs = OPS.get(name) or RARE[name]
            attrs = {k: as_dtype(v) if k == "dtype" else v for k, v in attrs.items()}
            op = OWN[op]() if op in OWN else REGISTRY[op]
            values.append(op.call(tuple(values[i] for i in ins), op.complete(attrs)))
    for i, v in enumerate(values[2:]):
        v.name = f"v{i}"
    g.outputs = [values[i] for i in case[1]]
    return g


def _describe(case):
    graph = _graph(case)
    return [calls_of(graph.nodes) or "no nodes", fetched(graph)]


def _needed(graph):
    """Return ({value: its last node}, {view: its base}), computed by brute force.

    The first dict has the number of the last node that needs the memory of a value, or -1. It has no views.
    """
    home = {}
    for node in graph.nodes:
        if node.op.view is not None:
            home[node.outputs[0]] = home.get(node.inputs[0], node.inputs[0])
    last = {v: -1 for v in (*graph.inputs.values(), *(y for n in graph.nodes for y in n.outputs))
            if v not in home}
    for number, node in enumerate(graph.nodes):
        for x in node.inputs:
            last[home.get(x, x)] = number
    for v in graph.outputs:
        last[home.get(v, v)] = len(graph.nodes)
    return last, home


# ---- last reads
@holds("the last node that reads a value's memory", _graphs, _smaller_graphs, cases=200, told=_describe,
       edges=[((), (0,))], large=[many_programs(_graphs, 150)])
def last_reads(case, yours):
    graph = _graph(case)
    want, home = _needed(graph)
    got = yours(graph)
    producers = {y: i for i, n in enumerate(graph.nodes) for y in n.outputs}
    for v, number in want.items():
        mine = got.get(v, -1)
        if mine == number or number == -1 and mine <= producers.get(v, 0):
            continue
        views = " and ".join(w.name for w, b in home.items() if b is v)
        why = ([f"  {views}: a view of {v.name}'s memory that is read later"] if views and mine < number
               else [])
        end = ([f"  {len(graph.nodes)} means after the last node, because it is fetched"]
               if number == len(graph.nodes) else [])
        return [*pair(f"{v.name}, should be", mine, number), *why, *end]
    return None


def _ran(case):
    """Plan and run the graph of a case. Return (plan, lines of a failure or None)."""
    graph = _graph(case)
    rng = np.random.default_rng(5)
    given = [rng.standard_normal((2, 2)).astype(np.float32) for _ in range(2)]
    known = evaluate_graph(graph, dict(zip(graph.inputs.values(), given)))
    want, names = [known[v] for v in graph.outputs], [v.name for v in graph.outputs]
    program = Program(graph, [n for n in NAMES if n not in ("inplace", "reuse")], tensors=False)
    program.link({})
    for name, a, b in zip(names, program.run(tuple(given)), want):
        if lines := where_differ(name, a, b):
            return program.plan, [*lines, "  its memory, or the memory of an input, was reused while it was "
                                  "still needed"]
    return program.plan, None


@holds("the plan computes the same values", _graphs, _smaller_graphs, cases=120, told=_describe,
       large=[many_programs(_graphs, 150)])
def same_numbers(case, yours):
    return _ran(case)[1]


# ---- in place
# The input of the last node is a view of a larger buffer, or has another dtype than the result.
MISFITS = [((("neg", (0,)), ("first row", (2,)), ("relu", (3,))), (4,)),
           ((("neg", (0,)), ("bits", (2,))), (3,))]


@holds("only reusable memory is reused", _graphs, _smaller_graphs, cases=250, told=_describe, edges=MISFITS,
       large=[many_programs(_graphs, 150)])
def may_take(case, yours):
    return _overwritten(_ran(case)[0])


def _overwritten(plan):
    """Return the lines of a failure if the plan reuses memory that it may not overwrite."""
    graph = plan.graph
    needed, home = _needed(graph)
    for number, node in enumerate(graph.nodes):
        step = next((s for s in plan.steps if s.node is node), None)
        if step is None or not step.inplace:
            continue
        y, name = plan.where[node.outputs[0]], node.outputs[0].name
        mine = [(i, x) for i, x in enumerate(node.inputs) if plan.where[x].buffer is y.buffer]
        whose = mine[0][1].name if mine else "none of its inputs"
        said = f"  yours           {name} reuses the memory of {whose}"
        if not mine:
            return [said, "  a result may reuse only the memory of an input"]
        i, x = mine[0]
        region, base = plan.where[x], home.get(x, x)
        if base.kind != "node":
            return [said, f"  {base.name} is not computed by this graph: the caller's values would be "
                    f"overwritten"]
        if needed[base] > number:
            when = "it is fetched" if needed[base] == len(graph.nodes) else \
                f"{graph.nodes[needed[base]].outputs[0].name} reads it later"
            return [said, f"  {base.name} is still needed: {when}"]
        if len(mine) > 1:
            return [said, f"  {name} reads it twice: the second read may find overwritten "
                    f"elements"]
        if region.spec != node.outputs[0].spec:
            return [said, f"  {x.name} is {region.spec}, {name} is {node.outputs[0].spec}"]
        if y.buffer.nbytes != y.spec.nbytes:
            return [said, f"  {x.name} is a view of a buffer of {y.buffer.nbytes} bytes, {name} has "
                    f"{y.spec.nbytes} bytes"]
        if not region.contiguous:
            return [said, f"  {x.name} is a view with strides {region.strides}: its elements are in "
                    f"another order"]
        if node.op.inputs[i] not in node.op.inplace:
            return [said, f"  {node.op.name} cannot work in place: it reads {x.name} again after it began "
                    f"to write"]
    return None


_own = copy_function(Planner.reusable)             # saved before a student's function replaces it


def reusable_stars(yours, seed=0):
    """Count the results that reuse the memory of an input, over 100 graphs."""
    rng = random.Random(seed + 5)
    cases = [_graphs(rng, 4) for _ in range(100)]
    plans = [_ran(c) for c in cases]
    for case, (plan, lines) in zip(cases, plans):
        may_take.accept(case, _overwritten(plan))
        same_numbers.accept(case, lines)
    count = lambda plans: sum(s.inplace for plan, _ in plans for s in plan.steps)
    with swapped(Planner.reusable, _own):
        return {"taken": count(plans), "library": count(map(_ran, cases))}
