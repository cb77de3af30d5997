"""Chapter 4: gradients that are appended to a graph, and a body's calls made again."""
from __future__ import annotations

import numpy as np

from flowedu.learn.laws import Law, Words, case_of, pair, smaller_programs, where_differ

# name: (number of inputs, attributes); all of (2, 3), but for "sum", which is (2, 1)
OPS = {"add": (2, {}), "mul": (2, {}), "sub": (2, {}), "neg": (1, {}), "sin": (1, {}), "square": (1, {}),
       "sum": (1, {"axis": (1,), "keepdims": True})}


def _graphs(rng, size):
    """(number of variables, (name, inputs) of each node, losses, targets): indices of values."""
    leaves = rng.randint(1, 2)
    nodes, n = [], leaves
    for _ in range(rng.randint(1, 2 * size)):
        name = rng.choice(list(OPS))
        nodes.append((name, tuple(rng.randrange(n) for _ in range(OPS[name][0]))))
        n += 1
    losses = {n - 1, rng.randrange(leaves, n)} if rng.random() < 0.3 else {n - 1}
    return leaves, tuple(nodes), tuple(sorted(losses)), tuple(rng.sample(range(leaves), rng.randint(1, leaves)))


def _smaller_graphs(case):
    leaves, nodes, losses, targets = case
    yield from ((leaves, *fewer, targets) for fewer in smaller_programs(nodes, losses, leaves))
    for v in targets if len(targets) > 1 else ():
        yield leaves, nodes, losses, (v,)


def _built(case):
    """(the graph, its values)"""
    from flowedu.core.graph.ir import Graph
    from flowedu.core.ops.define import REGISTRY
    from flowedu.core.values.dtype import float32
    from flowedu.core.values.spec import Spec
    leaves, nodes, _, _ = case
    g = Graph("drawn")
    values = [g.variable("wv"[i], Spec((2, 3), float32)) for i in range(leaves)]
    with g.building():
        for name, ins in nodes:
            values.append(REGISTRY[name](*(values[i] for i in ins), **OPS[name][1]))
    for i, v in enumerate(values[leaves:]):
        v.name = f"y{i}"
    return g, values


def _said(g, values, case):
    calls = [f"{n.outputs[0].name} = {n.op.name}({', '.join(v.name for v in n.inputs)})" for n in g.nodes[:len(case[1])]]
    return [f"  smallest case   {'; '.join(calls)}", f"  losses          {', '.join(values[i].name for i in case[2])}"]


def _eager(case, factor=1.0):
    """(numbers of the variables, their gradients or None)"""
    import flowedu as flow
    from flowedu.core.ops.define import REGISTRY
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
    """The numbers of values, by the NumPy meaning of each node's op."""
    known = dict(zip(g.variables.values(), given))
    for n in g.nodes:
        names = {**dict(zip(n.op.inputs, [known[v] for v in n.inputs])), **dict(zip(n.op.attrs, n.attrs))}
        out = n.op.ask(n.op.ref, names)
        known.update(zip(n.outputs, out if isinstance(out, tuple) else (out,)))
    return [None if v is None else known[v] for v in wanted]


def _compared(case, yours, factor, **more):
    g, values = _built(case)
    targets = [values[i] for i in case[3]]
    got = yours(g, [values[i] for i in case[2]], targets, **more)
    said = _said(g, values, case)
    if len(got) != len(targets):
        return [*said, f"  yours           {len(got)} gradients for {len(targets)} targets"]
    given, right = _eager(case, factor)
    for t, mine, want in zip(targets, _computed(g, given, got), right):
        if (mine is None) != (want is None):
            words = ["nothing" if d is None else "a gradient" for d in (mine, want)]
            return [*said, *pair(f"d{t.name}, should be", *map(Words, words))]
        if want is not None and (lines := where_differ(f"d{t.name}", np.asarray(mine), want)):
            return [*said, *lines]
    return None


def _eager_judged(case, yours):
    return _compared(case, yours, 1.0)


def _seeded_judged(case, yours):
    from flowedu.core.ops.view import constant
    seed = lambda spec: constant(shape=spec.shape, value=8.0, dtype=spec.dtype)
    found = _compared(case, yours, 8.0, seed=seed)
    return None if found is None else ["  seed(spec)      gives eights: a loss that was scaled by 8", *found]


def _told_judged(case, yours):
    g, values = _built(case)
    yours(g, [values[i] for i in case[2]], [values[i] for i in case[3]])
    if g.training is True and g.forward == len(case[1]):
        return None
    return [*_said(g, values, case), *pair("should be", Words(f"training {g.training}, forward {g.forward}"),
                                           Words(f"training True, forward {len(case[1])}")),
            "  the passes and chapter 5 ask the graph where its forward part ends"]


WHOLE = "the loss is int32[2]"


def _placed_judged(case, yours):
    """A gradient is computed where its op is: node number i is on device i."""
    from flowedu.core.ops.define import REGISTRY
    g, values = _built(case)
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
    return [*_said(g, values, case), f"  {loss.name} is made on device {made}, and its gradient on none or another",
            f"  yours           nodes on {sorted({str(p) for p in where})}: visit(node) sets graph.placement"]


def _refusal_judged(case, yours):
    from flowedu.core.graph.ir import Graph
    from flowedu.core.values.dtype import int32
    from flowedu.core.values.spec import Spec
    from flowedu.errors import FlowError
    g = Graph("drawn")
    loss = g.variable("counts", Spec((2,), int32))
    try:
        yours(g, [loss], [loss])
    except FlowError:
        return None
    return [f"  smallest case   {WHOLE}", "  yours           no error: raise JobBuildAndInferError",
            "  a whole number has no derivative"]


_words = case_of(lambda case: _said(*_built(case), case))
as_eager = Law("the gradients that backward() gives", _graphs, _eager_judged, _smaller_graphs, cases=120, told=_words)
seeded = Law("they begin with what seed gives", _graphs, _seeded_judged, _smaller_graphs, cases=20, told=_words)
told = Law("the graph knows that it trains, and where", _graphs, _told_judged, _smaller_graphs, cases=20, told=_words)
placed = Law("a gradient is computed where its op is", _graphs, _placed_judged, _smaller_graphs, cases=40, told=_words)
refuses = Law("a loss of whole numbers is refused", lambda rng, size: 0, _refusal_judged, cases=1, told=lambda case: WHOLE)


# ---- a call made again
def _calls(rng, size):
    """Arguments and keywords of a call: ("v", i) is value i of the body, ("c", x) a constant; lists and tuples nest."""
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


def _smaller_calls(case):
    args, keys, many = case
    if len(args) > 1:
        yield from ((args[:i] + args[i + 1:], keys, many) for i in range(len(args)))
    yield from ((args, keys[:i] + keys[i + 1:], many) for i in range(len(keys)))
    if many > 1:
        yield args, keys, 1
    for i, (kind, what) in enumerate(args):
        if kind in ("list", "tuple"):
            yield from (((*args[:i], x, *args[i + 1:]), keys, many) for x in what)


def _with(x, leaf):
    kind, what = x
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(_with(y, leaf) for y in what)
    return leaf(what) if kind == "v" else what


def _shown(case, before=""):
    """The call, as one would write it."""
    args, keys, _ = case
    leaf = lambda i: before + "abc"[i]
    return "f(" + ", ".join([repr(_with(x, leaf)) for x in args] +
                            [f"{k}={_with(x, leaf)!r}" for k, x in keys]).replace("'", "") + ")"


def _replay_judged(case, yours):
    from flowedu.core.graph.ir import Graph
    from flowedu.core.values.dtype import float32
    from flowedu.core.values.spec import Spec
    from flowedu.oneflow04.job.recording import Call
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
    new = {v: f"new {v.name}" for v in values}
    table = lambda v: new[v]
    said = f"  smallest case   {_shown(case)}"
    got = yours(call, table)
    want = (tuple(_with(x, lambda i: f"new {'abc'[i]}") for x in args), {k: _with(x, lambda i: f"new {'abc'[i]}")
                                                                         for k, x in keys})
    if len(called) != 1:
        return [said, f"  yours           f was called {len(called)} times"]
    if called[0] != want:
        mine = ", ".join([_listed(x) for x in called[0][0]] + [f"{k}={_listed(x)}" for k, x in called[0][1].items()])
        return [said, f"  yours           f({mine})", f"  should be       {_shown(case, 'new ')}"]
    right = ("first result", "second result")[:many]
    if not isinstance(got, tuple) or got != right:
        return [said, *pair("should be", got, right), "  a tuple with an entry for each of call.results"]
    return None


def _listed(x):
    """As the case is written: values of the old body by their names."""
    if isinstance(x, (list, tuple)):
        inner = ", ".join(map(_listed, x))
        return f"[{inner}]" if isinstance(x, list) else f"({inner}{',' * (len(x) == 1)})"
    return getattr(x, "name", x) if not isinstance(x, (int, float, type(None))) else repr(x)


RAISES = "f() raises a ValueError"


def _error_judged(case, yours):
    """What f raises comes through."""
    from flowedu.oneflow04.job.recording import Call
    node = type("node", (), {"line": "job.py:7", "op": None})()

    def f():
        raise ValueError("of f")

    try:
        got = yours(Call(f, (), {}, (), ("op",), None, (node,)), {}.get)
    except ValueError:
        return None
    return [f"  smallest case   {RAISES}", *pair("should be", got, Words("the same error"))]


replayed = Law("the same call, on the new values", _calls, _replay_judged, _smaller_calls, cases=150, told=_shown)
errors = Law("an error comes through", lambda rng, size: 0, _error_judged, cases=1, told=lambda case: RAISES)
