"""Laws of chapter 4: ops that may be fused into one kernel.

Values have the shapes (2, 3), (1, 3), and (3,).
"""
from __future__ import annotations

import importlib
import random

import numpy as np

from flowedu.core.graph.ir import Graph
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values.dtype import float32
from flowedu.core.values.spec import Spec
from flowedu.fast.ops.fused import fused
from flowedu.swap import elsewhere, inside, swapped
from flowedu_course.laws import SMALLEST, Law, copy_function, counted, holds, many_programs, smaller_programs
from flowedu_course.laws.guard import make_plain
from flowedu_course.laws.programs import evaluate_graph, fetched, join_calls

OPS = {"add": (2, {}), "mul": (2, {}), "neg": (1, {}), "exp": (1, {}), "relu": (1, {}),
       "sum": (1, {"axis": (0,)}), "cumsum": (1, {"axis": 0})}
INPUTS = (("a", (2, 3)), ("b", (1, 3)))


def _graphs(rng, size):
    nodes = []
    for i in range(rng.randint(2, 2 + 2 * size)):
        name = rng.choice(list(OPS) if rng.random() < 0.5 else ("add", "mul", "neg", "relu"))
        late = list(range(2 + i))[-2:]
        pick = lambda i=i, late=late: rng.choice(late) if rng.random() < 0.6 else rng.randrange(2 + i)
        nodes.append((name, tuple(pick() for _ in range(OPS[name][0]))))
    n = 2 + len(nodes)
    return tuple(nodes), tuple(sorted({n - 1, rng.randrange(2, n)} if rng.random() < 0.4 else {n - 1}))


def _graph(case):
    g = Graph("drawn")
    values = [g.input(name, Spec(shape, float32)) for name, shape in INPUTS]
    with g.building():
        for name, ins in case[0]:
            if not values[ins[0]].shape and OPS[name][1]:                # a scalar has no axis
                name = "neg"
            values.append(REGISTRY[name](*(values[i] for i in ins), **OPS[name][1]))
    for i, v in enumerate(values[2:]):
        v.name = f"v{i}"
    g.outputs = [values[i] for i in case[1]]
    return g


def _values(g):
    """Return {graph value: array}, without the results of nodes whose inputs no node computes."""
    rng = np.random.default_rng(8)
    known = {v: rng.standard_normal(v.shape).astype(np.float32) for v in g.inputs.values()}
    return evaluate_graph(g, known, partly=True)


def _text(g):
    calls = [f"{n.outputs[0].name} = "
             f"{n.name if n.op is fused else n.op.name}({', '.join(x.name for x in n.inputs)})"
             for n in g.nodes]
    return join_calls(calls)


def _describe(case):
    g = _graph(case)
    return [_text(g), fetched(g)]


def _changes(before, g, yours):
    """Fuse the graph g, which is the same as `before`. Return the lines of a failure, or None."""
    shapes = {n.outputs[0].name: n.outputs[0].shape for n in before.nodes}
    try:
        _pass().fuse(g)
        make_plain(g)
        got = _values(g)
    except Exception as error:
        if elsewhere(error) or inside(error, yours):
            raise
        sizes = ", ".join(f"{k} {v}" for k, v in shapes.items())
        return ([f"  yours           fuses a node that does not fit into the kernel "
                 f"({type(error).__name__})", f"  shapes          {sizes}"])
    want = _values(before)
    after = f"  yours           {_text(g) or 'nothing'}"
    if lines := counted(g.outputs, [v.name for v in before.outputs]):
        return [after, *lines]
    for old, new in zip(before.outputs, g.outputs):
        if new not in got:
            missing = next((x.name for n in g.nodes for x in n.inputs if x not in got), new.name)
            who = ("it was fused into the kernel of another reader" if missing != new.name
                   else "it was fused into the kernel of a reader")
            return [after, f"  {missing} is read here, but no node computes it: {who}"]
        if (got[new].shape != want[old].shape or not np.allclose(got[new], want[old], rtol=1e-3, atol=1e-4,
                                                                 equal_nan=True)):
            sizes = ", ".join(f"{k} {v}" for k, v in shapes.items())
            return [after, f"  the values of {new.name} have changed; shapes: {sizes}"]
    return None


same_values = Law("fetched values are unchanged", _graphs,
                  lambda case, yours: _changes(_graph(case), _graph(case), yours),
                  lambda case: smaller_programs(*case), cases=250, told=_describe,
                  large=[many_programs(_graphs, 150)])


@holds("ops that may not be fused stay separate", _graphs, lambda case: smaller_programs(*case), cases=100,
       told=_describe)
def left_alone(case, yours):
    """Check that ops in `alone`, which the device of chapter 8 does not fuse, stay separate nodes."""
    before, g = _graph(case), _graph(case)
    left = [REGISTRY[case[0][len(case[0]) // 2][0]], REGISTRY["relu"]]
    _pass().fuse(g, left)
    needed = set(before.outputs)
    for n in reversed(before.nodes):
        needed |= set(n.inputs) if n.outputs[0] in needed else set()
    many = [sum(n.op in left and n.outputs[0] in needed for n in before.nodes),
            sum(n.op in left for n in g.nodes)]
    if many[0] <= many[1]:
        return None
    names = " and ".join(dict.fromkeys(op.name for op in left))
    return [f"{SMALLEST}{_text(before)}", f"  alone           {names}", f"  yours           {_text(g)}",
            f"  {many[0] - many[1]} of {many[0]} nodes that should stay separate were fused: pass `alone` to "
            f"fusible"]


@holds("nothing is computed more often", _graphs, lambda case: smaller_programs(*case), cases=150,
       told=_describe)
def no_more_work(case, yours):
    """Check that fusion does not recompute a small value for each row of a larger result."""
    before, g = _graph(case), _graph(case)
    _pass().fuse(g)
    sizes = lambda graph: sum((len(n.attrs[0].instrs) if n.op is fused else 1) * n.outputs[0].spec.size
                              for n in graph.nodes)
    if sizes(g) <= sizes(before):
        return None
    small = ", ".join(f"{n.outputs[0].name} {n.outputs[0].shape}" for n in before.nodes)
    return [f"  yours           {_text(g) or 'nothing'}",
            f"  {sizes(g)} elements are computed, {sizes(before)} before; shapes: {small}"]


def _pass():
    """Return the module `fuse`; the attribute `fuse` of the package is the function of the same name."""
    return importlib.import_module("flowedu.fast.passes.fuse")


_own = copy_function(_pass().joins)


def joins_stars(yours, seed=0):
    """Count the kernel calls of 100 graphs."""
    rng = random.Random(seed + 3)
    cases = [_graphs(rng, 4) for _ in range(100)]

    def count():
        total = 0
        for case in cases:
            graph = _graph(case)
            same_values.accept(case, _changes(_graph(case), graph, yours))
            total += len(graph.nodes)
        return total

    kernels = count()
    with swapped(_pass().joins, _own):
        library = count()
    with swapped(_pass().joins, _nothing_joins):
        return {"kernels": kernels, "library": library, "given": count()}


def _nothing_joins(value, shape, readers, outputs, alone=()):
    return False
