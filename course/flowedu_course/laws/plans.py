"""Laws of chapters 4 and 5: buffers in an arena, and passes over a graph, compared by the values of a run."""
from __future__ import annotations

import contextlib
import functools
import random
import time

import numpy as np

from flowedu.core.graph.ir import Graph
from flowedu.core.graph.memory import Buffer, lower_bound
from flowedu.core.graph.passes import cse, simplify
from flowedu.core.graph.rewrite import dead
from flowedu.core.ops.define import REGISTRY, Op
from flowedu.core.ops.record import Effects, Meaning, read
from flowedu.core.values.dtype import float32, int32
from flowedu.core.values.spec import Spec
from flowedu_course.laws import SMALLEST, Law, copy_function, holds, pair, smaller_programs
from flowedu_course.laws.programs import fetched, run_graph

ALIGN = 64
SIZES = (64, 100, 640, 1000, 4096)                 # bytes


# ---- buffers: (bytes, first step, last step, kind)
def _buffers(rng, size):
    steps = 2 + 2 * size
    buffers = []
    for _ in range(rng.randint(1, 2 + 4 * size)):
        first = rng.randint(0, steps)
        kind = "temp" if rng.random() < 0.85 else "variable"
        buffers.append((rng.choice(SIZES) * rng.randint(1, 4), first, min(steps, first + rng.randint(0, 3)),
                        kind))
    return buffers


def _smaller_buffers(case):
    if len(case) > 1:
        yield from (case[:i] + case[i + 1:] for i in range(len(case)))
    early = min(a for _, a, _, _ in case)
    if early:
        yield [(n, a - early, b - early, kind) for n, a, b, kind in case]
    for i, (n, a, b, kind) in enumerate(case):
        for m in ((64, a, b, kind), (n, a, b - 1, kind), (n, a - 1, b - 1, kind)):
            if m != case[i] and m[1] <= m[2] and m[1] >= 0 and m[0] <= n:
                yield [*case[:i], m, *case[i + 1:]]


def _make_buffers(case):
    return [Buffer("abcdefghijklmnopqrstuvwxyz"[i % 26] + str(i // 26 or ""), kind, *b)
            for i, (*b, kind) in enumerate(case)]


def _describe_buffers(buffers):
    outside = {True: "", False: ", not in_arena"}
    return "   ".join(f"{b.name}: {b.nbytes} bytes, steps {b.first} to {b.last}{outside[b.in_arena]}"
                      for b in buffers[:3])


def _case_line(buffers):
    return SMALLEST + _describe_buffers(buffers)


_describe = lambda case: _describe_buffers(_make_buffers(case))


@holds("no two live results overlap", _buffers, _smaller_buffers, cases=150, told=_describe)
def no_overlap(case, yours):
    buffers = _make_buffers(case)
    return _overlaps(case, buffers, yours(buffers))


def _overlaps(case, buffers, arena):
    for b, told in zip(buffers, case):
        if (b.nbytes, b.first, b.last) != told[:3] or b.in_arena != (told[3] == "temp"):
            return [_case_line([b]), "  yours           changes more of a buffer than its offset"]
    for b in buffers:
        if not b.in_arena and b.offset != -1:
            return [_case_line([b]), f"  yours           {b.name} at {b.offset}, but it is not in the arena"]
    buffers = [b for b in buffers if b.in_arena]
    for i, a in enumerate(buffers):
        if a.offset < 0:
            return [_case_line([a]), f"  yours           {a.name} has no offset"]
        if a.offset + a.nbytes > arena:
            return [_case_line([a]), f"  yours           {a.name} ends at {a.offset + a.nbytes}, the arena "
                    f"at {arena}"]
        for b in buffers[:i]:
            both = max(a.first, b.first)
            if (both <= min(a.last, b.last) and a.offset < b.offset + b.nbytes and b.offset < a.offset
                + a.nbytes):
                return [_case_line([b, a]), f"  yours           {b.name} at {b.offset}, {a.name} at "
                        f"{a.offset}",
                        f"  both are alive at step {both}: a kernel would overwrite what it is reading"]
    return None


@holds("every offset is a multiple of 64", _buffers, _smaller_buffers, cases=60, told=_describe)
def aligned(case, yours):
    buffers = _make_buffers(case)
    yours(buffers)
    for b in buffers:
        if b.in_arena and b.offset % ALIGN:
            return [_case_line([b]),
                    f"  yours           {b.name} at {b.offset}, not a multiple of {ALIGN}, which vector "
                    f"loads need"]
    return None


def place_stars(yours, seed=0):
    """Return the arena size and the lower bound, summed over 200 plans."""
    rng, arena, bound = random.Random(seed + 7), 0, 0
    for _ in range(200):
        case = [(rng.choice(SIZES) * rng.randint(1, 6), a := rng.randint(0, 20),
                 min(20, a + rng.randint(0, 6)), "temp")
                for _ in range(40)]
        buffers = _make_buffers(case)
        own = yours(buffers)
        arena += sum(b.nbytes for b in buffers) if _overlaps(case, buffers, own) else own
        bound += lower_bound(_make_buffers(case), 20)
    return {"arena": arena, "bound": bound}


# ---- lower bound of the arena
@holds("the largest number of live bytes of a step", _buffers, _smaller_buffers, cases=100, told=_describe)
def bound(case, yours):
    buffers = _make_buffers(case)
    last = max(b.last for b in buffers)
    want = max(sum(-(-b.nbytes // ALIGN) * ALIGN for b in buffers if b.in_arena and b.first <= t <= b.last)
               for t in range(last + 1))
    for steps in (last + 1, last):                 # fetched values outlive the last step of a plan
        got = yours(buffers, steps)
        if got != want:
            return [_case_line(buffers) + f"; lower_bound(buffers, {steps})", *pair("should be", got, want)]
    return None


def _describe_count(case):
    return f"{case:,} buffers"


@holds("7,000 buffers take little time", lambda rng, size: 7_000, cases=1, told=_describe_count, label="case")
def bound_fast(case, yours):
    """Compare with the time for as many buffers over four steps, which has the same constant costs.

    One of two tries must be fast, because other processes may use the machine.
    """
    for _ in range(2):
        if _seconds(yours, case, case) < 2 * _seconds(yours, case, 4) + 0.2:  # a loop per step takes seconds
            return None
    return ["  yours           takes seconds: it visits every buffer at every step"]


def _seconds(yours, many, steps):
    """Return the CPU seconds for `many` buffers whose first steps are below `steps`."""
    buffers = _make_buffers([(64, i % steps, i % steps + 3, "temp") for i in range(many)])
    start = time.process_time()
    yours(buffers, steps + 4)
    return time.process_time() - start


# ---- passes: drawn graphs of small ops. A node: (name of the op, inputs); values 0 and 1 are the inputs a
# and b "low" and "high" are two results of one op, "told" has a side effect, and "again" differs from call to
# call
OPS = {"add": 2, "mul": 2, "sub": 2, "neg": 1, "relu": 1, "identity": 1, "exp": 1, "dropout": 1, "update": 1,
       "sums": 1, "sums back": 1, "whole": 1, "low": 1, "high": 1, "told": 1, "again": 1}


@functools.cache
def _own_ops():
    """Return {name: op} of ops that are not in the registry."""
    return {"halves": Op(read("halves(x) -> low, high"),
                         Meaning("a->a,a", lambda x: (np.minimum(x, 0), np.maximum(x, 0)))),
            "again": Op(read("again(x) -> y"), Meaning("a->a", lambda x: x), Effects(fresh=True)),
            "told": Op(read("told(x) ->"), Meaning("a->", lambda x: ()), Effects(fresh=True, effect=True))}


def _graphs(rng, size):
    nodes = []
    for i in range(rng.randint(1, 3 * size)):
        name = rng.choice(list(OPS) if rng.random() < 0.6
                          else ["add", "mul", "sub", "sub", "neg", "identity", "sums"])
        if nodes and rng.random() < 0.4:
            name, ins = nodes[rng.randrange(len(nodes))]
            ins = ins[::-1] if rng.random() < 0.3 else ins                   # a - b is not b - a
            nodes.append((rng.choice(("sums", "sums back")) if name.startswith("sums") else name, ins))
        else:
            nodes.append((name, tuple(rng.randrange(2 + i) for _ in range(OPS[name]))))
    n = 2 + len(nodes)
    outs = sorted(rng.sample(range(2, n), rng.randint(1, min(2, n - 2))))
    return tuple(nodes), tuple(outs)


def _graph(case):
    """Return the graph of a case."""
    g = Graph("drawn")
    spec = Spec((3,), float32)
    values = [g.input("a", spec), g.input("b", spec)]
    state = None
    with g.building():
        for name, ins in case[0]:
            xs = tuple(values[i] for i in ins)
            if name == "update":
                if state is None:
                    state = g.variable("w", spec)
                REGISTRY["assign"](xs[0], state)
                values.append(xs[0])
            elif name == "dropout":
                # Equal seeds; a pass must not rely on them.
                mask = REGISTRY["random_mask_like"]
                mask = g.append(mask, xs, mask.complete({"rate": 0.5, "seed": 7}), reseed=False)[0]
                values.append(REGISTRY["dropout"](xs[0], mask, scale=2.0))
            elif name == "told":
                _own_ops()["told"].call(xs, ())
                values.append(xs[0])
            elif name in ("low", "high"):
                values.append(_own_ops()["halves"].call(xs, ())[name == "high"])
            elif name == "whole":
                values.append(REGISTRY["cast"](REGISTRY["cast"](xs[0], dtype=int32), dtype=float32))
            elif name == "again":
                values.append(_own_ops()["again"].call(xs, ()))
            elif name in ("sums", "sums back"):
                values.append(REGISTRY["cumsum"](xs[0], axis=0, backwards=name == "sums back"))
            else:
                values.append(REGISTRY[name].call(xs, REGISTRY[name].complete({})))
    g.outputs = [values[i] for i in case[1]]
    return g


def _text(graph):
    calls = [(", ".join(v.name for v in n.outputs) or ("w" if n.mutates else ""), n.op.name,
              ", ".join(v.name for v in n.inputs)) for n in graph.nodes]
    return "; ".join(f"{out} = {op}({given})" if out else f"{op}({given})" for out, op, given in calls)


def _describe_graph(case):
    graph = _graph(case)
    return [_text(graph), fetched(graph)]


def _values_judged(case, yours):
    graph = _graph(case)
    nodes = list(graph.nodes)                      # alive, so that ids are not used again
    number = {id(n): i for i, n in enumerate(nodes)}
    want, wrote = run_graph(graph, number)
    yours(graph)
    if len(graph.outputs) != len(want):
        return [f"  yours           fetches {', '.join(v.name for v in graph.outputs) or 'nothing'}"]
    try:
        got, written = run_graph(graph, number)
    except KeyError as error:
        return [f"  yours           {_text(graph) or 'nothing'}",
                f"  {error.args[0].name} is read, but no node computes it"]
    for v, a, b in zip(graph.outputs, got, want):
        with contextlib.suppress(ValueError):
            if np.allclose(a, b, rtol=1e-5, equal_nan=True):
                continue
        return [f"  yours           {_text(graph) or 'nothing'}", f"  the values of {v.name} have changed"]
    for k in sorted({*written, *wrote}):
        if not np.array_equal(written.get(k, ()), wrote.get(k, ()), equal_nan=True):
            return [f"  yours           {_text(graph) or 'nothing'}",
                    "  calls of ops with a side effect (node.op.effect) have changed" if k == "told" else
                    f"  the update of {k} has changed"]
    return None


same_values = Law("outputs and variables are unchanged", _graphs, _values_judged,
                  lambda case: smaller_programs(*case), cases=300, told=_describe_graph)


def _all_fetched(g):
    """Fetch all unread values, so that removing dead nodes earns nothing."""
    read = {x for n in g.nodes for x in n.inputs}
    g.outputs = [*g.outputs, *(y for n in g.nodes for y in n.outputs if y not in read and y not in g.outputs)]
    return g


def _count(pick, made=_graph):
    def stars(yours, seed=0):
        rng, mine, best, given = random.Random(seed + 11), 0, 0, 0
        for _ in range(100):
            case = _graphs(rng, 4)
            a, b = made(case), made(case)
            before = len(a.nodes)
            yours(a)
            pick(b)
            mine += before if _values_judged(case, yours) else len(a.nodes)
            best, given = best + len(b.nodes), given + before
        return {"nodes": mine, "library": best, "given": given}
    return stars


dead_stars = _count(copy_function(dead))
cse_stars = _count(copy_function(cse), lambda case: _all_fetched(_graph(case)))
simplify_stars = _count(copy_function(simplify), lambda case: _all_fetched(_graph(case)))
