"""Laws of chapter 4: gradients appended to a graph, and calls of a body repeated on other values."""
from __future__ import annotations

import numpy as np

import flowedu as flow
from flowedu.core.graph.ir import Graph
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.view import constant
from flowedu.core.values.dtype import float32, int32
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError, FlowError
from flowedu.oneflow04.job.recording import Call
from flowedu_course.laws import (
    SMALLEST,
    Words,
    become,
    each,
    fewer,
    holds,
    many_programs,
    pair,
    simpler,
    smaller_programs,
    where_differ,
)
from flowedu_course.laws.programs import calls_of, evaluate_graph

# name: (number of inputs, attributes); all results have shape (2, 3) except those of "sum", with shape (2, 1)
OPS = {"add": (2, {}), "mul": (2, {}), "sub": (2, {}), "neg": (1, {}), "sin": (1, {}), "square": (1, {}),
       "sum": (1, {"axis": (1,), "keepdims": True})}


def _graphs(rng, size):
    """Draw (number of variables, (name, inputs) of each node, losses, targets); values are given by index."""
    leaves = rng.randint(1, 2)
    nodes, n = [], leaves
    for _ in range(rng.randint(1, 2 * size)):
        name = rng.choice(list(OPS))
        nodes.append((name, tuple(rng.randrange(n) for _ in range(OPS[name][0]))))
        n += 1
    losses = {n - 1, rng.randrange(leaves, n)} if rng.random() < 0.3 else {n - 1}
    return (leaves, tuple(nodes), tuple(sorted(losses)), tuple(rng.sample(range(leaves),
                                                                          rng.randint(1, leaves))))


def _smaller_graphs(case):
    leaves, nodes, losses, targets = case
    yield from ((leaves, *fewer, targets) for fewer in smaller_programs(nodes, losses, leaves))
    for v in targets if len(targets) > 1 else ():
        yield leaves, nodes, losses, (v,)


def _build_graph(case):
    """Return (graph, its values)."""
    leaves, nodes, _, _ = case
    g = Graph("drawn")
    values = [g.variable("wv"[i], Spec((2, 3), float32)) for i in range(leaves)]
    with g.building():
        for name, ins in nodes:
            values.append(REGISTRY[name](*(values[i] for i in ins), **OPS[name][1]))
    for i, v in enumerate(values[leaves:]):
        v.name = f"y{i}"
    return g, values


def _case_lines(g, values, case):
    return [calls_of(g.nodes[:len(case[1])]), f"  losses          "
            f"{', '.join(values[i].name for i in case[2])}"]


def _eager(case, factor=1.0):
    """Return (arrays of the variables, their gradients or None), computed eagerly."""
    leaves, nodes, losses, targets = case
    rng = np.random.default_rng(6)
    given = [rng.standard_normal((2, 3)).astype(np.float32) for _ in range(leaves)]
    values = [flow.tensor(a, requires_grad=True) for a in given]
    for name, ins in nodes:
        values.append(REGISTRY[name](*(values[i] for i in ins), **OPS[name][1]))
    total = values[losses[0]].sum()
    for i in losses[1:]:
        total = total + values[i].sum()
    grads = flow.autograd.grad(total * factor, [values[i] for i in targets], allow_unused=True)
    return given, [None if d is None else d.numpy() for d in grads]


def _computed(g, given, wanted):
    """Compute the wanted values with the NumPy reference of each node's op."""
    known = evaluate_graph(g, dict(zip(g.variables.values(), given)))
    return [None if v is None else known[v] for v in wanted]


_describe = lambda case: _case_lines(*_build_graph(case), case)


def _compared(case, yours, factor, **more):
    g, values = _build_graph(case)
    targets = [values[i] for i in case[3]]
    got = yours(g, [values[i] for i in case[2]], targets, **more)
    if len(got) != len(targets):
        return [f"  yours           {len(got)} gradients for {len(targets)} targets"]
    given, right = _eager(case, factor)
    for t, mine, want in zip(targets, _computed(g, given, got), right):
        if (mine is None) != (want is None):
            words = ["nothing" if d is None else "a gradient" for d in (mine, want)]
            return pair(f"d{t.name}, should be", *map(Words, words))
        if want is not None and (lines := where_differ(f"d{t.name}", np.asarray(mine), want)):
            return lines
    return None


def _with_two_variables(rng, size):
    return next(case[1:3] for case in iter(lambda: _graphs(rng, size), None) if case[0] == 2)


@holds("the gradients equal those of backward()", _graphs, _smaller_graphs, cases=120, told=_describe,
       large=[(2, *many_programs(_with_two_variables, 150), (0, 1))])
def as_eager(case, yours):
    return _compared(case, yours, 1.0)


@holds("the gradients start from seed's values", _graphs, _smaller_graphs, cases=20, told=_describe)
def seeded(case, yours):
    seed = lambda spec: constant(shape=spec.shape, value=8.0, dtype=spec.dtype)
    found = _compared(case, yours, 8.0, seed=seed)
    calls, losses = _describe(case)
    return found and ["  seed(spec)      is 8 in every element, for a loss scaled by 8", SMALLEST + calls,
                      losses, *found]


@holds("the graph records where backward begins", _graphs, _smaller_graphs, cases=20, told=_describe)
def told(case, yours):
    g, values = _build_graph(case)
    yours(g, [values[i] for i in case[2]], [values[i] for i in case[3]])
    if g.training is True and g.forward == len(case[1]):
        return None
    return [*pair("should be", Words(f"training {g.training}, forward {g.forward}"),
                                           Words(f"training True, forward {len(case[1])}")),
            "  the passes and chapter 5 read where the forward part of the graph ends"]


WHOLE = "the loss is int32[2]"


@holds("gradients run on the devices of their ops", _graphs, _smaller_graphs, cases=40, told=_describe)
def placed(case, yours):
    """Check that a gradient is computed on the device of its op; node number i is on device i."""
    g, values = _build_graph(case)
    for i, n in enumerate(g.nodes):
        n.placement = (i,)
    loss = values[case[2][-1]]
    made = next((i for i, n in enumerate(g.nodes) if loss in n.outputs), None)
    got = yours(g, [loss], [values[i] for i in case[3]])
    rules = [REGISTRY[name] for name in ("mul", "square", "sin")]
    if all(v is None for v in got) or made is None or g.nodes[made].op not in rules:
        return None
    where = [n.placement for n in g.nodes[len(case[1]):]]
    if (made,) in where:
        return None
    return [f"  {loss.name} is computed on device {made}, but its gradient is not",
            f"  yours           nodes on {sorted({str(p) for p in where})}: visit(node) sets graph.placement"]


@holds("an integer loss raises an error", lambda rng, size: 0, cases=1, told=lambda case: WHOLE)
def refuses(case, yours):
    g = Graph("drawn")
    loss = g.variable("counts", Spec((2,), int32))
    before = vars(g).copy()
    try:
        yours(g, [loss], [loss])
    except FlowError:
        changed = [n for n, v in before.items() if getattr(g, n) is not v]
        return changed and [f"  yours           sets graph.{changed[0]} before the error",
                            "  test the losses first, because a caller may go on with the graph"]
    return ["  yours           no error: raise JobBuildAndInferError", "  an integer loss has no derivative"]


# ---- a repeated call
def _calls(rng, size):
    """Draw the arguments of a call: ("v", i) is value i of the body, ("c", x) a constant; lists may nest."""
    def one(depth):
        kind = rng.random()
        if kind < 0.55:
            return "v", rng.randint(0, 2)
        if kind < 0.75 or depth > 1:
            return "c", rng.choice((3, 0.5, "SAME", None, True))
        return rng.choice(("list", "tuple")), tuple(one(depth + 1) for _ in range(rng.randint(1, 2)))

    args = tuple(one(0) for _ in range(rng.randint(1, size)))
    keys = tuple((k, one(0)) for k in ("axis", "name")[:rng.randint(0, min(2, size))])
    return args, keys, rng.randint(1, 2)


def _without_one(items):
    return (items[:i] + items[i + 1:] for i in range(len(items)))


def _items(argument):
    """Return the arguments in a list or tuple."""
    return argument[1] if argument[0] in ("list", "tuple") else ()


_smaller_calls = simpler((0, fewer), (1, _without_one), (2, become(1)), (0, each(_items)))


def _with(x, leaf):
    kind, what = x
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(_with(y, leaf) for y in what)
    return leaf(what) if kind == "v" else what


def _format_call(case, before=""):
    """Return the call as source code."""
    args, keys, _ = case
    leaf = lambda i: before + "abc"[i]
    return "f(" + ", ".join([repr(_with(x, leaf)) for x in args] +
                            [f"{k}={_with(x, leaf)!r}" for k, x in keys]).replace("'", "") + ")"


@holds("the call is repeated with the new values", _calls, _smaller_calls, cases=150, told=_format_call,
       edges=[
    ((("v", 0),), (), 1), ((("list", (("v", 0), ("tuple", (("v", 1), ("list", (("v", 0),)))))),), (), 2),
    ((("tuple", ()), ("list", ())), (("axis", ("v", 2)),), 1)])
def replayed(case, yours):
    args, keys, many = case
    g = Graph("body")
    values = [g.input("abc"[i], Spec((8, 4), float32)) for i in range(3)]
    results = tuple(g.input(f"r{i}", Spec((8, 4), float32)) for i in range(many))
    called = []

    def f(*a, **k):
        called.append((a, k))
        return "first result" if many == 1 else ["first result", "second result"]

    call = Call(f, tuple(_with(x, values.__getitem__) for x in args),
                {k: _with(x, values.__getitem__) for k, x in keys}, results, ("op",) * many, None, ())
    table = lambda v: f"new {v.name}"
    yours(call, lambda v: "another value")         # a call is replayed once for each repetition
    called.clear()
    got = yours(call, table)
    want = (tuple(_with(x, lambda i: f"new {'abc'[i]}") for x in args),
            {k: _with(x, lambda i: f"new {'abc'[i]}")
             for k, x in keys})
    if len(called) != 1:
        return [f"  yours           f was called {len(called)} times"]
    if called[0] != want:
        mine = ", ".join([_listed(x) for x in called[0][0]] + [f"{k}={_listed(x)}"
                                                               for k, x in called[0][1].items()])
        return [f"  yours           f({mine})", f"  should be       {_format_call(case, 'new ')}"]
    right = ("first result", "second result")[:many]
    if not isinstance(got, tuple) or got != right:
        return [*pair("should be", got, right), "  return a tuple with one entry per entry of call.results"]
    return None


def _listed(x):
    """Return the argument as text, with values of the old body by name."""
    if isinstance(x, (list, tuple)):
        inner = ", ".join(map(_listed, x))
        return f"[{inner}]" if isinstance(x, list) else f"({inner}{',' * (len(x) == 1)})"
    return getattr(x, "name", x) if not isinstance(x, (int, float, type(None))) else repr(x)


@holds("errors are passed on", lambda rng, size: ValueError, cases=1, edges=[ArgumentError],
       told=lambda case: f"f() raises {case.__name__}")
def errors(case, yours):
    """Check that exceptions of f propagate."""
    node = type("node", (), {"line": "job.py:7", "op": None})()

    def f():
        raise case("of f")

    try:
        got = yours(Call(f, (), {}, (), ("op",), None, (node,)), {}.get)
    except case:
        return None
    return pair("should be", got, Words("the same error"))
