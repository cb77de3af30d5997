"""Laws of chapters 4 and 5: buffers in an arena, and passes over a graph, compared by the values of a run."""
from __future__ import annotations

import contextlib
import random
import time

import numpy as np

from flowedu.core.graph.memory import Buffer, lower_bound, rounded
from flowedu.core.graph.passes import cse, simplify
from flowedu.core.graph.rewrite import dead
from flowedu_course.laws import SMALLEST, Law, copy_function, holds, many_programs, pair, smaller_programs
from flowedu_course.laws.drawn import TWINS, build_graph, describe_graph, draw_graph, text
from flowedu_course.laws.guard import make_plain, plain
from flowedu_course.laws.programs import run_graph

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
    if len(case) > 20:
        yield from (case[:len(case) // 2], case[len(case) // 2:])
    if len(case) > 1:
        yield from (case[:i] + case[i + 1:] for i in range(len(case)))
    early = min(a for _, a, _, _ in case)
    if early:
        yield [(n, a - early, b - early, kind) for n, a, b, kind in case]
    for i, (n, a, b, kind) in enumerate(case):
        for m in ((64, a, b, kind), (n, a, b - 1, kind), (n, a - 1, b - 1, kind)):
            if m != case[i] and m[1] <= m[2] and m[1] >= 0 and m[0] <= n:
                yield [*case[:i], m, *case[i + 1:]]


EDGES = ([(0, 0, 0, "temp")], [(64, 0, 1, "variable")], [(64, 0, 1, "temp"), (65, 1, 1, "temp")],
         [(64, 0, 0, "temp"), (64, 1, 1, "temp"), (128, 0, 1, "temp")])
# As many buffers as LeNet's training step has.
LARGE = [(SIZES[i % 5] * (1 + i % 3), i // 3, i // 3 + i * 7 % 11, "temp" if i % 9 else "variable")
         for i in range(400)]


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


@holds("no two live results overlap", _buffers, _smaller_buffers, cases=150, told=_describe, edges=EDGES,
       large=[LARGE])
def no_overlap(case, yours):
    buffers = _make_buffers(case)
    return _overlaps(case, buffers, yours(buffers))


def _overlaps(case, buffers, arena):
    for b, told in zip(buffers, case):
        b.offset = plain(b.offset)
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


@holds("every offset is a multiple of 64", _buffers, _smaller_buffers, cases=60, told=_describe, edges=EDGES,
       large=[LARGE])
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
        no_overlap.accept(case, _overlaps(case, buffers, own))
        arena += own
        bound += lower_bound(_make_buffers(case), 20)
    return {"arena": arena, "bound": bound}


# ---- lower bound of the arena
@holds("the largest number of live bytes of a step", _buffers, _smaller_buffers, cases=100, told=_describe,
       edges=EDGES, large=[LARGE])
def bound(case, yours):
    buffers = _make_buffers(case)
    last = max(b.last for b in buffers)
    want = max(sum(rounded(b.nbytes) for b in buffers if b.in_arena and b.first <= t <= b.last)
               for t in range(last + 1))
    for steps in (last + 1, last):                 # fetched values outlive the last step of a plan
        got = yours(buffers, steps)
        if got != want:
            why = ["  a fetched buffer is live at the step after the last one"] if steps == last else []
            return [f"{_case_line(buffers)}; lower_bound(buffers, {steps})", *pair("should be", got, want),
                    *why]
    return None


def _describe_count(case):
    return f"{case:,} buffers"


@holds("7,000 buffers take little time", lambda rng, size: 7_000, cases=1,
       told=lambda case: f"{case:,} buffers", label="case")
def bound_fast(case, yours):
    """Compare with the time for as many buffers over four steps, which has the same constant costs."""
    def seconds(steps):
        buffers = _make_buffers([(64, i % steps, i % steps + 3, "temp") for i in range(case)])
        return _seconds(lambda: yours(buffers, steps + 4))
    if _is_fast(lambda: (seconds(case), 2 * seconds(4))):              # a loop per step takes seconds
        return None
    return ["  yours           takes seconds: it visits every buffer at every step"]


def _seconds(call):
    """Return the CPU seconds of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def _is_fast(times):
    """Return True if one of two tries is fast, because other processes may use the machine.

    times() returns (CPU seconds, CPU seconds that are allowed besides 0.2).
    """
    return any(now < 0.2 + most for now, most in (times() for _ in range(2)))


# ---- passes over drawn graphs
def _run_pass(graph, yours):
    """Run a pass. Return the lines of a failure, or None if outputs and variables are unchanged."""
    nodes = list(graph.nodes)                      # alive, so that ids are not used again
    number = {id(n): i for i, n in enumerate(nodes)}
    want, wrote = run_graph(graph, number)
    report = yours(graph)
    make_plain(graph)
    if len(graph.outputs) != len(want):
        return [f"  yours           fetches {', '.join(v.name for v in graph.outputs) or 'nothing'}"]
    try:
        got, written = run_graph(graph, number)
    except KeyError as error:
        return [f"  yours           {text(graph) or 'nothing'}",
                f"  {error.args[0].name} is read, but no node computes it"]
    for v, a, b in zip(graph.outputs, got, want):
        with contextlib.suppress(ValueError):
            if np.allclose(a, b, rtol=1e-5, equal_nan=True):
                continue
        return [f"  yours           {text(graph) or 'nothing'}", f"  the values of {v.name} have changed"]
    for k in sorted({*written, *wrote}):
        if not np.array_equal(written.get(k, ()), wrote.get(k, ()), equal_nan=True):
            return [f"  yours           {text(graph) or 'nothing'}",
                    "  calls of ops with a side effect (node.op.effect) have changed" if k == "told" else
                    f"  the update of {k} has changed"]
    return check_report(report)


def check_report(report):
    """Return the lines of a failure unless a pass returned a text, which the report of a plan contains."""
    return None if isinstance(report, str) else pair("should be", report, "")


same_values = Law("outputs and variables are unchanged", draw_graph,
                  lambda case, yours: _run_pass(build_graph(case), yours),
                  lambda case: smaller_programs(*case), cases=300, told=describe_graph,
                  edges=[(((a, (0,)), (b, (0,)), ("sub", (2, 3))), (4,)) for a, b in TWINS],
                  large=[many_programs(draw_graph, 300)])


@holds("4,000 nodes take little time", lambda rng, size: 4_000, cases=1, told=lambda case: f"{case:,} nodes",
       label="case")
def pass_fast(case, yours):
    """Compare with the time for an eighth of the nodes, all of which are different and needed."""
    def seconds(many):
        # Each node reads the two values before it, so a pass may visit a node once for each path to it.
        graph = build_graph((tuple(("add", (i, 1 + i)) for i in range(many)), (1 + many,)))
        return _seconds(lambda: yours(graph))
    # 8 times for one visit of each node, 64 times for all pairs. The first of the short calls is slower.
    if _is_fast(lambda: (seconds(case), 12 * min(seconds(case // 8) for _ in range(3)))):
        return None
    return ["  yours           takes seconds: for each node, it visits all other nodes"]


def _all_fetched(g):
    """Fetch all unread values, so that removing dead nodes earns nothing."""
    read = {x for n in g.nodes for x in n.inputs}
    g.outputs = [*g.outputs, *(y for n in g.nodes for y in n.outputs if y not in read and y not in g.outputs)]
    return g


def _with_identities(case):
    """Return a case in which every third node is an identity."""
    nodes, outs = case
    return tuple(("identity", ins[:1]) if i % 3 == 0 else (name, ins)
                 for i, (name, ins) in enumerate(nodes)), outs


def _count(pick, made=build_graph, change=lambda case: case):
    def stars(yours, seed=0):
        rng, mine, best, given = random.Random(seed + 11), 0, 0, 0
        for _ in range(100):
            case = change(draw_graph(rng, 4))
            a, b = made(case), made(case)
            given += len(a.nodes)
            same_values.accept(case, _run_pass(a, yours))
            pick(b)
            mine, best = mine + len(a.nodes), best + len(b.nodes)
        return {"nodes": mine, "library": best, "given": given}
    return stars


dead_stars = _count(copy_function(dead))
cse_stars = _count(copy_function(cse), lambda case: _all_fetched(build_graph(case)))
simplify_stars = _count(copy_function(simplify), lambda case: _all_fetched(build_graph(case)),
                        _with_identities)
