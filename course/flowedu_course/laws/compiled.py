"""Laws of chapter 5: passes that merge one op into another.

Graphs run before and after a pass with the ops' NumPy references. In-place writes are visible to later nodes.
"""
from __future__ import annotations

import contextlib
import random
import textwrap

import numpy as np

from flowedu.core.graph.ir import Graph
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values.dtype import float32, int64
from flowedu.core.values.spec import Spec
from flowedu.fast.ops.matmul_update import matmul_update
from flowedu.fast.passes.fold_norm import fold_norm
from flowedu.fast.passes.update import update
from flowedu_course.laws import Law, become, copy_function, counted, each, fewer, simpler
from flowedu_course.laws.guard import make_plain
from flowedu_course.laws.plans import check_report
from flowedu_course.laws.programs import evaluate


def _run(graph, given):
    """Return (outputs, variables after the run). Views share memory with their base."""
    known = {v: given[v.name].copy() for t in (graph.inputs, graph.variables, graph.hosts)
             for v in t.values()}
    for node in graph.nodes:
        xs = [known[v] for v in node.inputs]
        out = evaluate(node.op, xs, node.attrs)
        if node.mutates:
            for i, new in zip(node.mutates, out):
                xs[i][...] = new
        else:
            known[node.outputs[0]] = out[0] if node.op.view is not None else np.array(out[0])
    return [known[v].copy() for v in graph.outputs], {n: known[v] for n, v in graph.variables.items()}


SHORT = {"conv2d_last": "c", "batch_norm_infer": "n", "conv2d_last_norm": "cn", "matmul": "m",
         "transpose": "t"}


def _program(label, graph, names, most):
    """Return the calls of a graph in lines of at most 100 columns, and add new values to `names`, {value: name}."""
    calls = []
    for node in graph.nodes:
        for v in node.outputs:
            names.setdefault(v, SHORT.get(node.op.name, node.op.name[0]) + str(len(names)))
        given = ", ".join(names.get(v, v.name) for v in node.inputs if v.kind != "host")
        calls.append(f"{', '.join(names[v] for v in node.outputs) or 'in place'}: {node.op.name}({given})")
    lines = textwrap.wrap("; ".join(calls) or "nothing", 80)[:most]
    return [f"  {label:16}{lines[0]}", *[f"{'':18}{line}" for line in lines[1:]]]


def _judged(made):
    """Return a judge that compares outputs and variables on each of the input sets that `made` returns."""
    return lambda case, yours: _changes(*made(case), yours)


def _changes(graph, given, yours):
    """Run a pass. Return the lines of a failure, or None if outputs and variables are unchanged."""
    names: dict = {}
    said = _program("smallest case", graph, names, 2)
    want = [_run(graph, numbers) for numbers in given]
    if graph.outputs:
        said.append(f"  {'fetched':16}{', '.join(names[v] for v in graph.outputs)}")
    fetched = list(graph.outputs)
    before = _unread(graph)
    report = yours(graph)
    make_plain(graph)
    said += _program("yours", graph, names, 2)
    for numbers, (outputs, variables) in zip(given, want):
        try:
            got, written = _run(graph, numbers)
        except KeyError as error:
            missing = error.args[0]
            return [*said, f"  {names.get(missing, missing)} is read, but no earlier node computes it"]
        if lines := counted(got, [names[v] for v in fetched]):
            return [*said, *lines]
        for v, a, b in zip(fetched, got, outputs):
            if a.shape != b.shape or not np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True):
                return [*said, f"  the values of {names[v]} have changed"]
        for name, b in variables.items():
            if not np.allclose(written[name], b, rtol=1e-4, atol=1e-5, equal_nan=True):
                stopped = "; step -1 means no update" if numbers.get("step", 0) == -1 else ""
                return [*said, f"  {name} is {written[name].flat[0]:.4f} ... afterwards, not "
                        f"{b.flat[0]:.4f}{stopped}"]
    return _leftovers(graph, names, before, said) or check_report(report)


def _unread(graph):
    """Return the values that nodes compute, but no node reads and the graph does not return."""
    read = {x for n in graph.nodes for x in n.inputs}.union(graph.outputs)
    return {y for n in graph.nodes for y in n.outputs} - read


def _leftovers(graph, names, before, said):
    """Return the lines of a failure if a node has no name, or is not needed any more."""
    for node in graph.nodes:
        if not isinstance(node.name, str):
            return [*said, f"  the name of a {node.op.name} is {node.name!r}; expected: a text"]
    unread = _unread(graph)
    if len(unread) <= len(before):
        return None
    name = next(name for v, name in names.items() if v in unread - before)       # old values come first
    return [*said, f"  {name} is computed, but no node reads it: remove its node"]


def _describe(made):
    return lambda case: " ".join(_program("", made(case)[0], {}, None)).strip()


def _less(case, made):
    """Yield the cases with one row removed; a large case is cut in half before."""
    if len(case) > 20:
        yield case[:len(case) // 2]
    for i in range(len(case)):
        rest = case[:i] + case[i + 1:]
        with contextlib.suppress(IndexError, KeyError, ValueError):
            if rest and made(rest)[0].outputs:
                yield rest


# ---- batch norm folded into the convolution. A case has rows of (op, index of the value it reads)
LAST = 99                                          # index of the most recent value


def _images(rng, size):
    rows = []
    for i in range(rng.randint(2, 2 + 3 * size)):
        before = rows[-1][0] if rows else ""
        if before.startswith("conv") and rng.random() < 0.5:
            rows.append(("norm", LAST))
        elif before == "norm" and rng.random() < 0.4:
            rows.append((rng.choice(("relu", "relu6")), LAST))
        else:
            what = rng.choice(("conv", rng.choice(("conv", "conv 3")), "norm", "norm 1", "relu", "relu6",
                               "sum", "fetch"))
            rows.append((what, rng.choice((LAST, LAST, rng.randint(0, i)))))
    return tuple(rows)


def _image_graph(case):
    """Return (graph, two sets of inputs). Every value has shape (2, 3, 3, 3), so any op may read it."""
    g = Graph("drawn")
    x = g.input("x", Spec((2, 3, 3, 3), float32))
    values, fetched, given = [x], [], {"x": (2, 3, 3, 3)}

    def variable(name, shape):
        given[name] = shape
        return g.variable(name, Spec(shape, float32))

    with g.building():
        for n, (what, i) in enumerate(case):
            y = values[min(i, len(values) - 1)]
            if what.startswith("conv"):                                # "conv 3" has non-default attributes
                k = 3 if what == "conv 3" else 1
                y = REGISTRY["conv2d_last"](y, variable(f"w{n}", (3, 3, k, k)), strides=(1, 1),
                                            pads=(k // 2,) * 4, dilations=(1, 1), groups=1)
            elif what.startswith("norm"):
                numbers = [variable(f"{p}{n}", (3,)) for p in ("gamma", "beta", "mean", "var")]
                y = REGISTRY["batch_norm_infer"](y, *numbers, axis=int(what[4:] or 3), epsilon=0.1)
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
    # Statistics may change between two runs.
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        sets.append({n: (rng.random(s) + 0.5 if n.startswith("var")
                         else rng.standard_normal(s) * 2).astype(np.float32)
                     for n, s in given.items()})
    return g, sets


folded = Law("values are unchanged for any statistics", _images, _judged(_image_graph),
             lambda case: _less(case, _image_graph), cases=200, told=_describe(_image_graph),
             edges=[(("conv", LAST), (f"norm {axis}", LAST)) for axis in (-1, -2)],
             large=[_images(random.Random(2), 60)])
_FOLD = copy_function(fold_norm)


def _chains(rng):
    """Draw chains of a convolution, a norm, and perhaps an activation, as they occur in networks."""
    acts = [rng.choice(("", "relu", "relu6")) for _ in range(3)]
    return tuple((what, LAST) for act in acts for what in ("conv", "norm", act) if what)


def fold_norm_stars(yours, seed=0):
    """Count the nodes of 100 graphs."""
    rng, mine, best, given = random.Random(seed + 4), 0, 0, 0
    for _ in range(100):
        case = _images(rng, 3) + _chains(rng)
        (a, numbers), (b, _) = _image_graph(case), _image_graph(case)
        given += len(b.nodes)
        folded.accept(case, _changes(a, numbers, yours))
        _FOLD(b)
        mine, best = mine + len(a.nodes), best + len(b.nodes)
    return {"nodes": mine, "library": best, "given": given}


# ---- the update fused into the matrix product. A case has the gradients, their readers, and the updates
def _updates(rng, size):
    """Draw (rows, one update for all weights?, step may be skipped?, w0 is read afterwards?).

    Row i is (left and right factor of the gradient of weight i, transposed?, "read" or "fetched" elsewhere or
    "", weight decay, same gradient as the row before?). Factors are "x", "t", "w0", ..., and "w0 as a view".
    """
    count = rng.randint(1, 1 + size)
    factors = ["x", "t", *(f"w{i}" for i in range(count)), "w0 as a view"]
    rows = tuple((rng.choice(factors[:2]) if rng.random() < 0.6 else rng.choice(factors),
                  rng.choice(factors[:2]),
                  rng.random() < 0.4, rng.choice(("",) * 8 + ("read", "fetched")),
                  rng.choice((0.0, 0.0, 0.0, 0.1)), rng.random() < 0.1)
                 for _ in range(count))
    return rows, rng.random() < 0.5, rng.random() < 0.15, rng.random() < 0.15


def _update_graph(case):
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


_plainer_row = simpler((5, become(False)), (4, become(0.0)), (3, become("")), (2, become(False)),
                       (0, become("x")))
_smaller_updates = simpler((0, fewer), (2, become(False)), (3, become(False)), (0, each(_plainer_row)))


updated = Law("weights and outputs are unchanged", _updates, _judged(_update_graph), _smaller_updates,
              cases=300, told=_describe(_update_graph), large=[_updates(random.Random(2), 80)])
_UPDATE = copy_function(update)


def update_stars(yours, seed=0):
    """Count the products fused with their update, and the remaining nodes, in 100 graphs."""
    rng, counts, nodes = random.Random(seed + 8), [0, 0], [0, 0]
    for _ in range(100):
        case = _updates(rng, 3)
        for i, f in enumerate((yours, _UPDATE)):
            graph, numbers = _update_graph(case)
            updated.accept(case, _changes(graph, numbers, f))
            counts[i] += sum(n.op is matmul_update for n in graph.nodes)
            nodes[i] += len(graph.nodes)
    return {"inside": counts[0], "library": counts[1], "nodes": nodes[0], "fewest": nodes[1]}
