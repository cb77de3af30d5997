"""Laws of chapter 4: last reads, and memory that a result may reuse. Graphs have 2 x 2 matrices and views."""
from __future__ import annotations

import functools
import types

import numpy as np

from flowedu.learn.laws import Law, case_of, pair, smaller_programs, where_differ


@functools.cache
def _mixed():
    """An op that lets its first input go, and not the second, which it reads to the end."""
    from flowedu.core.ops.define import Op
    from flowedu.core.ops.record import Kernel, Meaning, read
    return Op(read("mixed(x, y) -> z"), Meaning("ab,ab->ab", lambda x, y: x - 2 * y[::-1]), Kernel(inplace=["x"]))


# name: (number of inputs, op, attributes)
OPS = {"add": (2, "add", {}), "mul": (2, "mul", {}), "neg": (1, "neg", {}), "relu": (1, "relu", {}),
       "transposed": (1, "transpose", {"perm": (1, 0)}), "product": (2, "matmul", {}), "mixed": (2, "mixed", {}),
       "to int": (1, "cast", {"dtype": "int32"}), "to float": (1, "cast", {"dtype": "float32"})}
COMMON = ("add", "neg", "mul", "transposed", "transposed")


def _graphs(rng, size):
    """((name, inputs) of each node, fetched values); values 0 and 1 are the inputs a and b. Ints are read by few."""
    nodes, ints = [], set()
    for i in range(rng.randint(1, 3 * size)):
        name = rng.choice(list(OPS) if rng.random() < 0.5 else COMMON)
        known = range(2 + i)
        pool = [v for v in known if (v in ints) == (name == "to float")] or [v for v in known if v not in ints]
        name = "neg" if name == "to float" and pool[0] not in ints else name
        late = pool[-3:]
        nodes.append((name, tuple(rng.choice(late if rng.random() < 0.7 else pool) for _ in range(OPS[name][0]))))
        if name == "to int":
            ints.add(2 + i)
    n = 2 + len(nodes)
    return tuple(nodes), tuple(sorted(rng.sample(range(2, n), rng.randint(1, min(2, n - 2)))))


def _smaller_graphs(case):
    return smaller_programs(*case, may=lambda gone, other: _is_int(case[0], gone) == _is_int(case[0], other))


def _is_int(nodes, v):
    return v >= 2 and nodes[v - 2][0] == "to int"


def _graph(case):
    from flowedu.core.graph.ir import Graph
    from flowedu.core.ops.define import REGISTRY
    from flowedu.core.values.dtype import as_dtype, float32
    from flowedu.core.values.spec import Spec
    g = Graph("drawn")
    values = [g.input(n, Spec((2, 2), float32)) for n in "ab"]
    with g.building():
        for name, ins in case[0]:
            _, op, attrs = OPS[name]
            attrs = {k: as_dtype(v) if k == "dtype" else v for k, v in attrs.items()}
            op = _mixed() if op == "mixed" else REGISTRY[op]
            values.append(op.call(tuple(values[i] for i in ins), op.complete(attrs)))
    for i, v in enumerate(values[2:]):
        v.name = f"v{i}"
    g.outputs = [values[i] for i in case[1]]
    return g


def _text(graph):
    calls = [f"{n.outputs[0].name} = {n.op.name}({', '.join(v.name for v in n.inputs)})" for n in graph.nodes]
    return [f"  smallest case   {'; '.join(calls)}", f"  fetched         {', '.join(v.name for v in graph.outputs)}"]


_words = case_of(lambda case: _text(_graph(case)))


def _needed(graph):
    """{value that is no view: the number of the last node that needs its memory, or -1}, counted one by one."""
    home = {}
    for node in graph.nodes:
        if node.op.view is not None:
            home[node.outputs[0]] = home.get(node.inputs[0], node.inputs[0])
    last = {v: -1 for v in (*graph.inputs.values(), *(y for n in graph.nodes for y in n.outputs)) if v not in home}
    for number, node in enumerate(graph.nodes):
        for x in node.inputs:
            last[home.get(x, x)] = number
    for v in graph.outputs:
        last[home.get(v, v)] = len(graph.nodes)
    return last, home


# ---- last reads
def _last_judged(case, yours):
    graph = _graph(case)
    want, home = _needed(graph)
    got = yours(graph)
    made = {y: i for i, n in enumerate(graph.nodes) for y in n.outputs}
    for v, number in want.items():
        mine = got.get(v, -1)
        if mine == number or number == -1 and mine <= made.get(v, 0):
            continue
        views = " and ".join(w.name for w, b in home.items() if b is v)
        why = [f"  {views}: seen through {v.name}'s memory, and read later"] if views and mine < number else []
        end = [f"  {len(graph.nodes)} means: after the last node, for it is fetched"] if number == len(graph.nodes) else []
        return [*_text(graph), *pair(f"{v.name}, should be", mine, number), *why, *end]
    return None


def _ran(case):
    """(the plan, numbers of the fetched values, what they should be)"""
    from flowedu.core.graph.passes import NAMES
    from flowedu.core.graph.program import Program
    graph = _graph(case)
    rng = np.random.default_rng(5)
    given = [rng.standard_normal((2, 2)).astype(np.float32) for _ in range(2)]
    known = dict(zip(graph.inputs.values(), given))
    for n in graph.nodes:
        names = {**dict(zip(n.op.inputs, [known[v] for v in n.inputs])), **dict(zip(n.op.attrs, n.attrs))}
        known[n.outputs[0]] = np.asarray(n.op.ask(n.op.ref, names))
    want = [known[v] for v in graph.outputs]
    fetched = [v.name for v in graph.outputs]
    program = Program(graph, [n for n in NAMES if n not in ("inplace", "reuse")], tensors=False)
    program.link({})
    return program.plan, program.run(tuple(given)), want, fetched


def _numbers_judged(case, yours):
    _, got, want, names = _ran(case)
    for name, a, b in zip(names, got, want):
        if lines := where_differ(name, a, b):
            return [*_text(_graph(case)), *lines,
                    "  its memory, or that of what it reads, was given to another while it was needed"]
    return None


last_reads = Law("the last node that needs a value's memory", _graphs, _last_judged, _smaller_graphs, cases=200,
                 told=_words)
same_numbers = Law("the plan gives the same numbers", _graphs, _numbers_judged, _smaller_graphs, cases=120, told=_words)


# ---- in place
def _taken_judged(case, yours):
    """Every memory that was taken may be taken."""
    plan, *_ = _ran(case)
    graph = plan.graph
    needed, home = _needed(graph)
    for number, node in enumerate(graph.nodes):
        step = next((s for s in plan.steps if s.node is node), None)
        if step is None or not step.inplace:
            continue
        y, name = plan.where[node.outputs[0]], node.outputs[0].name
        mine = [(i, x) for i, x in enumerate(node.inputs) if plan.where[x].buffer is y.buffer]
        whose = mine[0][1].name if mine else "nobody"
        said = [*_text(_graph(case)), f"  yours           {name} takes the memory of {whose}"]
        if not mine:
            return [*said, "  that is none of the values it reads"]
        i, x = mine[0]
        region, base = plan.where[x], home.get(x, x)
        if base.kind != "node":
            return [*said, f"  {base.name} is no result of this graph: the caller's numbers would be overwritten"]
        if needed[base] > number:
            when = "it is fetched" if needed[base] == len(graph.nodes) else \
                f"{graph.nodes[needed[base]].outputs[0].name} reads it later"
            return [*said, f"  {base.name} is still needed: {when}"]
        if len(mine) > 1:
            return [*said, f"  {name} reads it twice: where one read is written over, the other finds new numbers"]
        if region.spec != node.outputs[0].spec:
            return [*said, f"  {x.name} is {region.spec}, {name} is {node.outputs[0].spec}"]
        if not region.contiguous:
            return [*said, f"  {x.name} is seen through the strides {region.strides}: its elements lie in another order"]
        if node.op.inputs[i] not in node.op.inplace:
            return [*said, f"  {node.op.name} does not allow that: it reads {x.name} again after it began to write"]
    return None


may_take = Law("only memory that may be taken is taken", _graphs, _taken_judged, _smaller_graphs, cases=250, told=_words)


def _library():
    from flowedu.core.graph.plan import Planner
    return types.FunctionType(Planner.reusable.__code__, Planner.reusable.__globals__, "reusable")


_own = _library()                                  # as it is now, before another runs in its place


def reusable_stars(yours, seed=0):
    """Results that took the memory of an input, over 100 graphs."""
    import random

    from flowedu.core.graph.plan import Planner
    from flowedu.learn.swap import swapped
    rng = random.Random(seed + 5)
    cases = [_graphs(rng, 4) for _ in range(100)]
    count = lambda: sum(s.inplace for c in cases for s in _ran(c)[0].steps)
    taken = count()
    with swapped(Planner.reusable, _own):
        return {"taken": taken, "library": count()}
