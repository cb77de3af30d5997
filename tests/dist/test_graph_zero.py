"""ZeRO: the same training as plain data parallel, with less memory on every device."""
import numpy as np
import pytest

from flowedu.core.graph.ir import Graph
from flowedu.core.ops.define import REGISTRY as R
from flowedu.core.sbp.sbp import layout
from flowedu.distributed.zero import shard, zero
from flowedu.show.ranks import of_programs

from .rank_graphs import Run, Single, spec
from .test_graph_lower import build_mlp_graph, draw_parameters, row

SIZES = (64, 96, 6)


def zero_run(k, stage, rule, place=row, at="B", batch=(8, 64), min_size=64):
    """Train a data-parallel MLP on k devices; stage 0: without ZeRO."""
    params = draw_parameters(SIZES)
    g, variables = build_mlp_graph(params, batch, rule)
    whole = place(at, k)
    sources = {"x": row("S0", k), "t": row("S0", k)}
    alone = ()
    if stage:
        homes = {n: shard(whole, a.shape, min_size) for n, a in params.items()}
        split = {g.variables[n]: whole for n, h in homes.items() if h != whole}
        alone = zero(g, split, stage, {})
        sources |= homes
        sources |= {f"{n}-{s}": h for n, h in homes.items() for s in ("mv" if rule == "adam" else "")}
    return Run(g, k, sources, variables, unshared=alone)


def collect_losses(run, steps, batch=(8, 64)):
    rng = np.random.default_rng(1)
    losses = []
    for _ in range(steps):
        losses.append(run(rng.standard_normal(batch).astype(np.float32),
                          rng.standard_normal((batch[0], 6)).astype(np.float32))[0])
    return np.array(losses).ravel()


@pytest.mark.parametrize("rule", ["sgd", "adam"])
@pytest.mark.parametrize("k", [2, 4])
def test_the_stages(k, rule):
    g, variables = build_mlp_graph(draw_parameters(SIZES), (8, 64), rule)
    alone = Single(g, variables)
    want = collect_losses(alone, 6)
    need, moved = [], []
    for stage in range(4):
        run = zero_run(k, stage, rule)
        np.testing.assert_allclose(collect_losses(run, 6), want, rtol=2e-4, err_msg=f"stage {stage}")
        for n in g.variables:
            np.testing.assert_allclose(run.variable(n), alone.variable(n), rtol=3e-4, atol=1e-5, err_msg=n)
        states = [n for n in g.variables if "-" in n]
        memory = of_programs(run.programs, list(draw_parameters(SIZES)), states)
        need.append(memory[0])
        moved.append(run.inferred.bytes)
        assert sum(r.bytes_sent for r in run.ranks.values()) == run.inferred.bytes
    for a, b in zip(need[1:], need[2:]):
        assert b.total <= a.total
    assert need[1].states <= 1.05 * need[0].states / k                # shards are uneven
    assert need[1].parameters < need[0].parameters
    assert moved[2] < moved[1]  # reduce-scatter instead of all-reduce and slice


def test_split_parameters():
    assert shard(row("B", 4), (8, 3), 24).sbp == ("S0",)
    assert shard(row("B", 4), (8, 3), 25).sbp == ("B",)
    assert shard(row("B", 4), (3, 8), 1).sbp == ("B",)           # too short for four
    grid = layout(("B", "S1"), range(4), (2, 2))
    assert shard(grid, (8, 8), 1).sbp == ("S0", "S1")
    assert shard(layout(("S0", "S1"), range(4), (2, 2)), (8, 8), 1).sbp == ("S0", "S1")


def transposed(x):
    return R["transpose"](x, perm=(1, 0))


# (parameter, its product): returned in addition to the product
OUTPUTS = {
    "a view": lambda w, y: [transposed(w)],
    "two views": lambda w, y: [R["reshape"](transposed(w), shape=(8 * 6,))],
    "the first of two views": lambda w, y: with_reader(transposed(w),
                                                       lambda view: R["reshape"](view, shape=(8 * 6,)) * 2),
    "a view that is read": lambda w, y: with_reader(transposed(w), lambda view: R["matmul"](y, view)),
    "a view of a view that is read": lambda w, y: with_reader(
        transposed(w), lambda view: R["matmul"](R["matmul"](y, view), transposed(view))),
    "the parameter": lambda w, y: [w],
    "the parameter, read": lambda w, y: [w, R["matmul"](y, w, transpose_b=True)]}


def with_reader(view, read):
    return [view, read(view)]


@pytest.mark.parametrize("case", OUTPUTS)
@pytest.mark.parametrize("k", [2, 4])
def test_outputs_that_are_views_of_a_parameter(k, case):
    """Values and layout are the same as without ZeRO."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((4, 8), (8, 6)))

    def build():
        g = Graph("views")
        v, u = g.input("x", spec(x)), g.variable("w", spec(w))
        with g.building():
            y = R["matmul"](v, u)
            g.outputs = [*OUTPUTS[case](u, y), y]
        return g

    want = Single(build(), {"w": w})(x)
    layouts = []
    for stage in 0, 1, 2, 3:
        g = build()
        before = list(g.outputs)
        alone = zero(g, {g.variables["w"]: row("B", k)}, stage, {}) if stage else ()
        run = Run(g, k, {"x": row("S0", k), "w": row("S0" if stage else "B", k)}, {"w": w}, unshared=alone)
        assert g.outputs == before
        for a, b in zip(run(x), want):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
        layouts.append([run.inferred.layout_of(v).sbp for v in g.outputs if v is not g.variables["w"]])
    assert layouts == layouts[:1] * 4
