"""Laws of chapter 5: passes that merge one op into another.

The NumPy functions of the records run the graph before and after the pass. Later nodes see writes in place.
"""
from __future__ import annotations

import contextlib
import random
import textwrap

import numpy as np

from flowedu.learn.laws import Law, case_of, counted
from flowedu.learn.laws.plans import _own


def _run(graph, given):
    """(values of the outputs, variables afterwards). Views are views: they see what is written into their base."""
    known = {v: given[v.name].copy() for t in (graph.inputs, graph.variables, graph.hosts) for v in t.values()}
    for node in graph.nodes:
        op, xs = node.op, [known[v] for v in node.inputs]
        names = {op.inputs[0]: tuple(xs)} if op.variadic else dict(zip(op.inputs, xs))
        out = op.ask(op.ref, {**names, **dict(zip(op.attrs, node.attrs))})
        if node.mutates:
            for i, new in zip(node.mutates, out):
                xs[i][...] = new
        else:
            known[node.outputs[0]] = out if op.view is not None else np.array(out)
    return [known[v].copy() for v in graph.outputs], {n: known[v] for n, v in graph.variables.items()}


SHORT = {"conv2d_last": "c", "batch_norm_infer": "n", "conv2d_last_norm": "cn", "matmul": "m", "transpose": "t"}


def _program(label, graph, names, most):
    """The calls of a graph in lines of at most 100 columns. names: {value: name}, which learns those that are new."""
    calls = []
    for node in graph.nodes:
        for v in node.outputs:
            names.setdefault(v, SHORT.get(node.op.name, node.op.name[0]) + str(len(names)))
        given = ", ".join(names.get(v, v.name) for v in node.inputs if v.kind != "host")
        calls.append(f"{', '.join(names[v] for v in node.outputs) or 'in place'}: {node.op.name}({given})")
    lines = textwrap.wrap("; ".join(calls) or "nothing", 80)[:most]
    return [f"  {label:16}{lines[0]}", *[f"{'':18}{line}" for line in lines[1:]]]


def _judged(made):
    """A judge: outputs and variables after one run, and after a second with other numbers in them."""
    def judge(case, yours):
        graph, given = made(case)
        names: dict = {}
        said = _program("smallest case", graph, names, 2)
        want = [_run(graph, numbers) for numbers in given]
        if graph.outputs:
            said.append(f"  {'fetched':16}{', '.join(names[v] for v in graph.outputs)}")
        fetched = list(graph.outputs)
        yours(graph)
        said += _program("yours", graph, names, 2)
        for numbers, (outputs, variables) in zip(given, want):
            try:
                got, written = _run(graph, numbers)
            except KeyError as error:
                missing = error.args[0]
                return [*said, f"  {names.get(missing, missing)} is read, and no node in front makes it"]
            if lines := counted(got, [names[v] for v in fetched]):
                return [*said, *lines]
            for v, a, b in zip(fetched, got, outputs):
                if a.shape != b.shape or not np.allclose(a, b, rtol=1e-4, atol=1e-5):
                    return [*said, f"  {names[v]} has other values than before"]
            for name, b in variables.items():
                if not np.allclose(written[name], b, rtol=1e-4, atol=1e-5):
                    stopped = "; step is -1, which means: no update" if numbers.get("step", 0) == -1 else ""
                    return [*said, f"  {name} is {written[name].flat[0]:.4f} ... afterwards, not {b.flat[0]:.4f}{stopped}"]
        return None
    return judge


def _words(made):
    return case_of(lambda case: " ".join(_program("smallest case", made(case)[0], {}, None)))


def _less(case, made):
    """Cases with one reader, or one step, less."""
    for i in range(len(case)):
        rest = case[:i] + case[i + 1:]
        with contextlib.suppress(IndexError, KeyError, ValueError):
            if rest and made(rest)[0].outputs:
                yield rest


# ---- batch norm into the convolution. A case: rows of (what, which value it reads)
LAST = 99                                          # the value that was made last


def _images(rng, size):
    rows = []
    for i in range(rng.randint(2, 2 + 3 * size)):
        before = rows[-1][0] if rows else ""
        if before.startswith("conv") and rng.random() < 0.5:
            rows.append(("norm", LAST))
        elif before == "norm" and rng.random() < 0.4:
            rows.append((rng.choice(("relu", "relu6")), LAST))
        else:
            what = rng.choice(("conv", rng.choice(("conv", "conv 3")), "norm", "norm 1", "relu", "relu6", "sum", "fetch"))
            rows.append((what, rng.choice((LAST, LAST, rng.randint(0, i)))))
    return tuple(rows)


def _image_graph(case):
    """(graph, two sets of numbers). Every value is (2, 3, 3, 3): any may be read by any op."""
    from flowedu.core.graph.ir import Graph
    from flowedu.core.ops.define import REGISTRY
    from flowedu.core.values.dtype import float32
    from flowedu.core.values.spec import Spec
    g = Graph("drawn")
    x = g.input("x", Spec((2, 3, 3, 3), float32))
    values, fetched, given = [x], [], {"x": (2, 3, 3, 3)}

    def variable(name, shape):
        given[name] = shape
        return g.variable(name, Spec(shape, float32))

    with g.building():
        for n, (what, i) in enumerate(case):
            y = values[min(i, len(values) - 1)]
            if what.startswith("conv"):                                # "conv 3": its attributes are not the defaults
                k = 3 if what == "conv 3" else 1
                y = REGISTRY["conv2d_last"](y, variable(f"w{n}", (3, 3, k, k)), strides=(1, 1), pads=(k // 2,) * 4,
                                            dilations=(1, 1), groups=1)
            elif what.startswith("norm"):
                numbers = [variable(f"{p}{n}", (3,)) for p in ("gamma", "beta", "mean", "var")]
                y = REGISTRY["batch_norm_infer"](y, *numbers, axis=1 if what == "norm 1" else 3, epsilon=0.1)
            elif what == "sum":
                y = REGISTRY["add"](y, values[-1])
            elif what == "fetch":
                fetched.append(y)
                continue
            else:
                y = REGISTRY[what](y)
            values.append(y)
    g.outputs = list(dict.fromkeys(v for v in (*fetched, values[-1]) if v.node is not None))
    sets = []
    for seed in (1, 2):                                                # statistics may change between two runs
        rng = np.random.default_rng(seed)
        sets.append({n: (rng.random(s) + 0.5 if n.startswith("var") else rng.standard_normal(s) * 2).astype(np.float32)
                     for n, s in given.items()})
    return g, sets


folded = Law("values as before, with any statistics", _images, _judged(_image_graph),
             lambda case: _less(case, _image_graph), cases=200, told=_words(_image_graph))
_FOLD = _own("fold_norm", "flowedu.fast.passes.fold_norm")


def fold_norm_stars(yours, seed=0):
    """Nodes of 100 graphs."""
    rng, mine, best, given = random.Random(seed + 4), 0, 0, 0
    for _ in range(100):
        case = _images(rng, 3)
        a, b = _image_graph(case)[0], _image_graph(case)[0]
        given += len(b.nodes)
        yours(a)
        _FOLD(b)
        mine, best = mine + len(a.nodes), best + len(b.nodes)
    return {"nodes": mine, "library": best, "given": given}


# ---- the update inside the product. A case: the gradients, who else reads them, how the updates are written
def _updates(rng, size):
    """[(left, right factor of the gradient of weight i, transposed?, "read" or "fetched" elsewhere, weight decay, the
    gradient before again?)], one update or many, whether the step may be left out, whether w0 is read afterwards. Factors:
    "x", "t", "w0", "w1" ..., "w0 as a view"."""
    count = rng.randint(1, 1 + size)
    factors = ["x", "t", *(f"w{i}" for i in range(count)), "w0 as a view"]
    rows = tuple((rng.choice(factors[:2]) if rng.random() < 0.6 else rng.choice(factors), rng.choice(factors[:2]),
                  rng.random() < 0.4, rng.choice(("",) * 8 + ("read", "fetched")), rng.choice((0.0, 0.0, 0.0, 0.1)),
                  rng.random() < 0.1)
                 for _ in range(count))
    return rows, rng.random() < 0.5, rng.random() < 0.15, rng.random() < 0.15


def _update_graph(case):
    from flowedu.core.graph.ir import Graph
    from flowedu.core.ops.define import REGISTRY
    from flowedu.core.values.dtype import float32, int64
    from flowedu.core.values.spec import Spec
    rows, together, may_stop, afterwards = case
    g = Graph("drawn")
    square = Spec((3, 3), float32)
    known = {n: g.input(n, square) for n in ("x", "t")}
    known |= {f"w{i}": g.variable(f"w{i}", square) for i in range(len(rows))}
    rate, step = g.host("rate", Spec((1,), float32)), g.input("step", Spec((1,), int64))
    g.outputs, grads = [], []
    with g.building():
        if any(row[0] == "w0 as a view" for row in rows):
            known["w0 as a view"] = REGISTRY["transpose"](known["w0"], perm=(1, 0))
        if may_stop:
            step = REGISTRY["identity"](step)
        for left, right, transposed, elsewhere, _, again in rows:
            known_left = known.get(left, known["w0"])
            grads.append(grads[-1] if again and grads else REGISTRY["matmul"](known_left, known[right],
                                                                              transpose_a=transposed))
            if elsewhere:
                g.outputs.append(REGISTRY["neg"](grads[-1]) if elsewhere == "read" else grads[-1])
        pairs = [(known[f"w{i}"], grad) for i, grad in enumerate(grads)]
        for at in [range(len(rows))] if together else [[i] for i in range(len(rows))]:
            REGISTRY["sgd_update"](rate, step, *[v for i in at for v in pairs[i]], scale=0.5,
                                   weight_decay=tuple(rows[i][4] for i in at))
        if afterwards:
            g.outputs.append(REGISTRY["neg"](known["w0"]))
    rng, sets = np.random.default_rng(6), []
    for stopped in ([0, -1] if may_stop else [0]):
        sets.append({n: rng.standard_normal((3, 3)).astype(np.float32) for n in known if " " not in n})
        sets[-1] |= {"rate": np.array([0.1], np.float32), "step": np.array([stopped], np.int64)}
    return g, sets


def _smaller_updates(case):
    rows, *how = case
    if len(rows) > 1:
        yield from ((rows[:i] + rows[i + 1:], *how) for i in range(len(rows)))
    yield from ((rows, *how[:i], False, *how[i + 1:]) for i in (1, 2) if how[i])
    for i, row in enumerate(rows):
        for j, plain in ((5, False), (4, 0.0), (3, ""), (2, False), (0, "x")):
            if row[j] != plain:
                yield ((*rows[:i], (*row[:j], plain, *row[j + 1:]), *rows[i + 1:]), *how)


updated = Law("weights and outputs as before", _updates, _judged(_update_graph), _smaller_updates, cases=300,
              told=_words(_update_graph))
_UPDATE = _own("update", "flowedu.fast.passes.update")


def update_stars(yours, seed=0):
    """Of 100 graphs, gradients that go straight into their weights, and nodes that are left."""
    from flowedu.fast.ops.matmul_update import matmul_update
    rng, counts, nodes = random.Random(seed + 8), [0, 0], [0, 0]
    for _ in range(100):
        case = _updates(rng, 3)
        for i, f in enumerate((yours, _UPDATE)):
            graph = _update_graph(case)[0]
            f(graph)
            counts[i] += sum(n.op is matmul_update for n in graph.nodes)
            nodes[i] += len(graph.nodes)
    return {"inside": counts[0], "library": counts[1], "nodes": nodes[0], "fewest": nodes[1]}
