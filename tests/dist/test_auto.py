"""The automatic choice of layouts: its cost equals that of the inference; it is optimal where it claims
to be, never worse than greedy, deterministic, and changes no value.
"""
import itertools
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import flowedu as flow
from common import HANGS
from flowedu.core.graph.backward import gradients
from flowedu.core.graph.ir import Graph
from flowedu.core.sbp.choose import cheapest
from flowedu.core.sbp.sbp import layout
from flowedu.core.values.place import Place
from flowedu.core.values.spec import Spec
from flowedu.distributed.auto import automatic, search, trained
from flowedu.distributed.auto.model import Model, allowed, routed
from flowedu.distributed.auto.solve import Problem, Table
from flowedu.distributed.graph.infer import Inference
from flowedu.ops import REGISTRY
from laws.test_modes import evaluate, expression

from .rank_graphs import Run, Single
from .test_graph_laws import place, sbp
from .test_graph_lower import build_mlp_graph, draw_parameters

R = REGISTRY
HINT = R["distribute_hint"]
few = settings(max_examples=max(8, settings().max_examples // 3))


# ---- the minimum sum
@st.composite
def problems(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    number = st.integers(0, 9) | st.just(math.inf)
    tables = []
    for scope in draw(st.lists(st.sets(st.integers(0, len(sizes) - 1), min_size=1, max_size=3), max_size=8)):
        scope = tuple(sorted(scope))
        of = [draw(st.lists(st.integers(0, 2), min_size=sizes[u], max_size=sizes[u])) for u in scope]
        costs = np.array(draw(st.lists(number, min_size=3 ** len(scope), max_size=3 ** len(scope))), float)
        costs = costs.reshape((3,) * len(scope))
        costs[tuple(o[0] for o in of)] = 7.0                         # option 0 is always possible
        tables.append(Table(scope, costs, tuple(map(np.array, of))))
    return [draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)) for n in sizes], tables


def total(alone, tables, numbers):
    return sum(a[n] for a, n in zip(alone, numbers)) + sum(t.full[tuple(numbers[u] for u in t.scope)]
                                                           for t in tables)


@given(problems(), st.booleans())
def test_elimination_finds_the_minimum_sum(problem, prune):
    alone, tables = problem
    want = min(total(alone, tables, n) for n in itertools.product(*map(range, map(len, alone))))
    p = Problem(alone, tables)
    if prune:
        p.prune()
    start = p.present([0] * len(alone))
    # a dominated option is replaced by the option that dominates it
    assert p.cost(start) <= total(alone, tables, [0] * len(alone))
    found, exact = p.solve(start)
    assert exact and p.cost(found) == want == total(alone, tables, p.original(found))


@given(problems())
def test_small_tables_are_never_worse_than_the_start(problem):
    alone, tables = problem
    p = Problem(alone, tables)
    found, exact = p.solve([0] * len(alone), largest=16)
    assert p.cost(found) <= total(alone, tables, [0] * len(alone))
    if exact:
        assert p.cost(found) == p.cost(p.solve([0] * len(alone))[0])


# ---- cost
@given(st.integers(1, 4), st.lists(st.integers(1, 17), min_size=1, max_size=3), st.data())
def test_evenly_split_shapes_cost_the_same_as_small_ones(k, shape, data):
    spec = Spec(tuple(n * data.draw(st.sampled_from([1, 4, 12])) for n in shape), flow.float32)
    src, dst = (layout(sbp(data.draw, p, spec.shape), p) for p in (data.draw(place(k)), data.draw(place(k))))
    assume(max(*src.sbp, *dst.sbp) < f"S{spec.ndim}" and src.fits(spec.shape) and dst.fits(spec.shape))
    assert routed(spec, src, dst) == cheapest((src,), dst, spec).bytes


@st.composite
def programs(draw, most=8):
    """Draw (a graph with gradients, its placement, layouts of its inputs, casts whose result has one
    reader).
    """
    steps, shape, k = (draw(expression()), draw(st.sampled_from([(4, 4), (6, 6), (5, 5)])),
                       draw(st.integers(2, 4)))
    at = draw(place(k))
    assume(len(at.devices) > 1)
    g = Graph("law")
    x, b = g.variable("x", Spec(shape, flow.float64)), g.input("b", Spec(shape[1:], flow.float64))
    alone = set()
    with g.building():
        y = x
        if draw(st.booleans()):
            y = HINT(y * 1.0, sbp=sbp(draw, at, shape), forced=draw(st.booleans()))
            alone |= {n for n in g.nodes if n.op is HINT and draw(st.booleans())}
        out = evaluate(steps[:most], y, b)
    g.outputs = list(out) + [d for d in gradients(g, [out[0]], [x, b]) if d is not None]
    lays = {x: layout(sbp(draw, at, shape, False), at),
            b: layout(tuple("B" if s == "S1" else s for s in sbp(draw, at, shape[1:] * 2, False)), at)}
    return g, Place(tuple(range(k)), (k,)), lays, alone


def world(k):
    return Place(tuple(range(k)), (k,))


@few
@given(programs(), st.data())
def test_the_cost_equals_that_of_the_inference(program, data):
    g, everywhere, lays, alone = program
    free = {v: [] for v in lays if data.draw(st.booleans())}
    m = Model(g, everywhere, lays, free, alone)
    numbers = [data.draw(st.integers(0, len(o) - 1)) for o in m.options]
    sources = lays | {v: m.options[u][numbers[u]].layouts[0] for v, u in m.kept.items()}
    bill = sum(m.bill(t, numbers) for t in m.traffic.values())
    if math.isfinite(bill):
        ways = {n: m.options[u][numbers[u]].way for n, u in m.nodes.items()}
        assert bill == Inference(g, everywhere, sources, unshared=alone, ways=ways).run(()).bytes


@few
@given(programs(), st.sampled_from([0.0, 0.5, 1.0]), st.data())
def test_never_worse_than_greedy(program, ratio, data):
    g, everywhere, lays, alone = program
    free = {v: [] for v in lays if data.draw(st.booleans())}
    found = automatic(g, everywhere, lays, free, unshared=alone, ratio=ratio)
    greedy = Inference(g, everywhere, lays, unshared=alone).run(())
    assert found.greedy.bytes == greedy.bytes
    assert found.best.cost <= found.greedy.cost + 1e-3
    if ratio == 0:
        assert found.best.bytes <= greedy.bytes
    assert all(found.best.sources[v] == lays[v] for v in lays if v not in free)
    again = automatic(g, everywhere, lays, free, unshared=alone, ratio=ratio)
    assert (again.best.sources, again.best.ways) == (found.best.sources, found.best.ways)
    assert again.describe() == found.describe()


def tiny(name):
    """Draw (graph, sources that may change)."""
    g = Graph(name)
    x, w = g.input("x", Spec((4, 6), flow.float32)), g.variable("w", Spec((6, 8), flow.float32))
    with g.building():
        if name == "chain":
            out = [R["sum"](R["relu"](R["matmul"](x, w)), axis=(0, 1))]
        elif name == "shared":                             # one value with three readers
            y = R["matmul"](x, w)
            out = [R["relu"](y), R["softmax"](y), R["sum"](y, axis=(0,))]
        elif name == "square":
            out = [R["matmul"](x, x, transpose_b=True), R["transpose"](x, perm=(1, 0))]
        else:                                              # forward and backward
            out = [R["relu"](R["matmul"](x, w))]
    g.outputs = list(out)
    if name == "gradient":
        g.outputs += gradients(g, g.outputs, [w])
    return g, x, w


@pytest.mark.parametrize("name", ["chain", "shared", "square", "gradient"])
@pytest.mark.parametrize("ratio", [0.0, 1.0])
def test_brute_force_finds_nothing_cheaper(name, ratio):
    g, x, w = tiny(name)
    everywhere = world(2)
    lays = {x: layout("S0", [0, 1]), w: layout("B", [0, 1])}
    m = Model(g, everywhere, lays, {w: []})
    best = math.inf
    assert math.prod(map(len, m.options)) <= 4000
    for numbers in itertools.product(*map(range, map(len, m.options))):
        ways = {n: m.options[u][numbers[u]].way for n, u in m.nodes.items()}
        sources = lays | {w: m.options[m.kept[w]][numbers[m.kept[w]]].layouts[0]}
        inferred = Inference(g, everywhere, sources, ways=ways).run(())
        if all(allowed(inferred.layout_of(v), at.plain) for r in inferred.rows
               for v, at in zip(r.node.inputs, r.reads)):
            best = min(best, inferred.bytes + ratio * sum(o[n].work for o, n in zip(m.options, numbers)))
    found = automatic(g, everywhere, lays, {w: []}, ratio=ratio)
    assert found.exact and found.best.cost == best


def test_large_tables_are_never_worse_than_greedy(monkeypatch):
    params = draw_parameters((16, 32, 6))
    g, _ = build_mlp_graph(params, (16, 16), "adam")
    at = Place((0, 1, 2, 3), (2, 2))
    lays = {v: layout(("S0", "B"), at) for v in g.inputs.values()}
    lays |= {v: layout("B", at) for n, v in g.variables.items() if n != "step"}
    exact = automatic(g, at, lays, trained(g))
    assert exact.exact
    monkeypatch.setattr(search, "MOST", 1)
    for largest in (1 << 22, 1 << 8):
        found = automatic(g, at, lays, trained(g), largest=largest)
        assert not found.exact and exact.best.cost <= found.best.cost < found.greedy.cost / 2
    late = automatic(g, at, lays, trained(g), seconds=0)
    assert not late.exact and exact.best.cost <= late.best.cost <= late.greedy.cost


# ---- training
@pytest.mark.parametrize("sizes, batch, shape", [((8, 12, 6), (6, 8), (2,)), ((64, 128, 6), (64, 64), (4,)),
                                                 ((16, 512, 6), (16, 16), (2, 2)),
                                                 ((8, 16, 16, 6), (8, 8), (3,))])
@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_an_mlp_trains_as_on_one_device(sizes, batch, shape, rule):
    params = draw_parameters(sizes)
    at = Place(tuple(range(int(np.prod(shape)))), shape)
    g, variables = build_mlp_graph(params, batch, rule)
    sources = {g.inputs[n]: layout(("S0", *["B"] * (len(shape) - 1)), at) for n in "xt"}
    sources |= {g.variables[n]: layout("B", at) for n in variables if n in g.variables and n != "step"}
    assert trained(g) == {g.variables[n]: [g.variables[f"{n}-{s}"] for s in "mv" if rule == "adam"]
                          for n in params}
    found = automatic(g, at, sources, trained(g))
    assert found.exact and found.best.cost < found.greedy.cost
    names = {v: n for n, v in (g.inputs | g.variables).items()}
    run = Run(g, len(at.devices), {names[v]: x for v, x in found.best.sources.items()}, variables,
              ways=found.best.ways)
    assert run.inferred.bytes == found.best.bytes
    g2, variables = build_mlp_graph(params, batch, rule)
    alone = Single(g2, variables)
    rng = np.random.default_rng(1)
    for _ in range(3):
        x, t = (rng.standard_normal(batch).astype(np.float32),
                rng.standard_normal((batch[0], 6)).astype(np.float32))
        for a, b in zip(run(x, t), alone(x, t)):
            np.testing.assert_allclose(a, b, rtol=3e-3, atol=3e-3)         # Adam amplifies small gradients
    assert round(run.sent) == 3 * found.best.bytes


MLPS = {"large batch": ((16, 16, 16), 4096), "large weights": ((256, 1024, 256), 16),
        "between": ((128, 512, 128), 1024)}
# Manual plans on 2x2: (x and t, the first weight, its bias, the second, its bias).
BY_HAND = {"data": (("S0", "S0"), ("B", "B"), ("B", "B"), ("B", "B"), ("B", "B")),
           "model": (("B", "B"), ("S0", "S0"), ("S0", "S0"), ("S1", "S1"), ("B", "B")),
           "hybrid": (("S0", "B"), ("B", "S0"), ("B", "S0"), ("B", "S1"), ("B", "B"))}


def planned(kind):
    """Return ({manual plan: its greedy Assignment}, the search result with free parameters and inputs,
    graph).
    """
    sizes, rows = MLPS[kind]
    at, params = Place((0, 1, 2, 3), (2, 2)), draw_parameters(sizes)
    g, _ = build_mlp_graph(params, (rows, sizes[0]))
    found = {}
    for name, (data, *lays) in BY_HAND.items():
        sources = {g.inputs[n]: layout(data, at) for n in "xt"}
        sources |= {g.variables[n]: layout(s, at) for n, s in zip(("w0", "b0", "w1", "b1"), lays)}
        found[name] = automatic(g, at, sources, {})
    sources = {g.inputs[n]: layout(("S0", "B"), at) for n in "xt"} | {g.variables[n]: layout("B", at)
                                                                      for n in params}
    return found, automatic(g, at, sources, {**trained(g), **{g.inputs[n]: [] for n in "xt"}}), g


@pytest.mark.parametrize("kind", MLPS)
def test_no_manual_plan_is_cheaper(kind):
    by_hand, found, g = planned(kind)
    assert found.exact
    for plan in by_hand.values():
        assert found.best.cost <= plan.best.cost <= plan.greedy.cost
    x, w = next(r.reads for r in found.best.inferred.rows if r.op == "matmul")
    stored = [set(found.best.sources[g.variables[n]].sbp) for n in ("w0", "w1")]
    if kind == "large batch":  # data parallel: rows are split, the weights are broadcast
        assert x.sbp == ("S0", "S0") and w.sbp == ("B", "B")
    if kind == "large weights":  # model parallel: every device has a part of the weights
        assert (x.sbp == ("B", "B") and all("S0" in at or "S1" in at for at in stored)
                and "B" not in stored[0] | stored[1])
    if kind == "between":                                  # both at once, each along one axis of the grid
        assert sorted(x.sbp) == ["B", "S0"] and sorted(w.sbp) == ["B", "S0"] and x.sbp != w.sbp
        assert 1.4 * found.best.cost < min(p.greedy.cost for n, p in by_hand.items() if n != "hybrid")


# ---- layouts requested by the user
def test_hints_and_casts_are_respected():
    g = Graph("wishes")
    x = g.input("x", Spec((8, 8), flow.float32))
    with g.building():
        wished = R["relu"](HINT(x, sbp="B", forced=False))
        cast = R["relu"](HINT(R["relu"](x), sbp="S1", forced=True))
    g.outputs = [wished, cast]
    found = automatic(g, world(2), {x: layout("S0", [0, 1])}, ratio=100.0)
    assert found.best.inferred.layout_of(wished).sbp == ("B",)
    assert found.best.inferred.layout_of(cast.node.inputs[0]).sbp == ("S1",)


def test_a_value_moved_to_another_placement_keeps_its_layout():
    """to_global(placement) without an sbp keeps the layout of the source, which may be chosen
    automatically.
    """
    g = Graph("there")
    x, w = g.input("x", Spec((8, 8), flow.float32)), g.variable("w", Spec((8, 8), flow.float32))
    here, there = Place((0, 1), (2,)), Place((2, 3), (2,))
    with g.building():
        y = R["matmul"](x, w)
        z = HINT(y, sbp=None, place=there, forced=True)
        out = R["relu"](z)
    g.outputs = [out]
    found = automatic(g, world(4), {x: layout("B", here), w: layout("B", here)}, {w: []})
    own = found.best.inferred.layout_of
    assert own(z).sbp == own(y).sbp and own(z).devices == own(out).devices == (2, 3)
    assert found.exact and found.best.cost <= found.greedy.cost


def test_the_report_lists_moved_bytes():
    params = draw_parameters((64, 4096, 6))
    at = Place((0, 1, 2, 3), (4,))
    g, _ = build_mlp_graph(params, (16, 64))
    sources = {g.inputs[n]: layout("S0", at) for n in "xt"} | {g.variables[n]: layout("B", at)
                                                               for n in params}
    found = automatic(g, at, sources, trained(g))
    said = found.describe(most=3)
    lines = said.splitlines()
    assert lines[0] == f"{found.unknowns} unknowns, solved exactly"
    assert lines[1] == f"automatic: {found.best.bytes:,} bytes, {found.best.work:,} of work done twice"
    assert lines[2].startswith(f"greedy: {found.greedy.bytes:,} bytes")
    assert "all-reduce" in said and "what lies otherwise" in said and "what runs otherwise" in said
    assert any(line.split() == ["w0", "B", "S(0)"] for line in lines) and "more" in lines[-1]
    kinds = lines[4:lines.index("what lies otherwise") - 1]
    assert sum(int(line.split()[-1].replace(",", "")) for line in kinds) == found.best.bytes


def test_every_process_chooses_equally():
    """Ranks search independently, and Python's string hashes differ between processes."""
    script = ("from dist.test_auto import planned; print([p.describe(99) + repr(sorted(map(str, "
              "p.best.sources.values()))) for p in planned('between')[0].values()])")
    tests = str(Path(__file__).parent.parent)
    how = dict(cwd=tests, check=True, capture_output=True, text=True, timeout=HANGS)
    said = [subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": seed},
                           **how).stdout
            for seed in "12"]
    assert len(said[0]) > 1000 and len(set(said)) == 1
