"""Rank graphs: the ranks of a logical graph together compute the result of one device."""
import numpy as np
import pytest

from flowedu.core.graph.backward import gradients
from flowedu.core.graph.ir import Graph
from flowedu.core.sbp.sbp import layout
from flowedu.core.values.place import Place
from flowedu.ops import REGISTRY

from .rank_graphs import Run, Single, spec

HINT = REGISTRY["distribute_hint"]
R = REGISTRY


def draw_parameters(sizes=(8, 12, 6), seed=0):
    rng = np.random.default_rng(seed)
    made = {}
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        made[f"w{i}"] = rng.standard_normal((b, a)).astype(np.float32) / np.sqrt(a).astype(np.float32)
        made[f"b{i}"] = rng.standard_normal(b).astype(np.float32) / 10
    return made


def build_mlp_graph(params, batch=(6, 8), rule="sgd", casts=None):
    """Build x, t -> loss, y with SGD or Adam updates."""
    g = Graph("mlp")
    n = len(params) // 2
    x, t = g.input("x", spec(np.zeros(batch, np.float32))), g.input("t",
                                                                    spec(np.zeros((batch[0],
                                                                                   len(params[f"b{n - 1}"])),
                                                                                 np.float32)))
    vs = {k: g.variable(k, spec(a)) for k, a in params.items()}
    lr, step = g.host("lr", spec(np.zeros(1, np.float32))), g.variable("step", spec(np.zeros(1, np.int64)))
    with g.building():
        y = x
        for i in range(n):
            y = R["matmul"](y, vs[f"w{i}"], transpose_b=True) + vs[f"b{i}"]
            if casts and i in casts:
                y = HINT(y, forced=True, **casts[i])
            if i < n - 1:
                y = R["relu"](y)
        d = y - t
        loss = R["sum"](d * d, axis=(0, 1)) * (1.0 / batch[0])
    grads = gradients(g, [loss], list(vs.values()))
    states = {}
    with g.building():
        operands = [lr, step]
        for (k, v), dv in zip(vs.items(), grads):
            operands += [v, dv]
            if rule == "adam":
                for s in "mv":
                    states[f"{k}-{s}"] = np.zeros(v.shape, np.float32)
                    operands.append(g.variable(f"{k}-{s}", v.spec))
        R[f"{rule}_update"](*operands, weight_decay=tuple(0.01 * (i % 2) for i in range(len(vs))))
    g.outputs = [loss, y]
    return g, {**params, **states, "step": np.zeros(1, np.int64), "lr": np.full(1, 0.05, np.float32)}


def same_training(make, k, sources, steps=4, batch=(6, 8), off=(), **options):
    """Return the run on k devices, after comparing it with one device."""
    g, variables = make()
    alone = Single(g, variables)
    g, variables = make()
    run = Run(g, k, sources, variables, off, **options)
    rng = np.random.default_rng(1)
    for _ in range(steps):
        x, t = (rng.standard_normal(batch).astype(np.float32),
                rng.standard_normal((batch[0], 6)).astype(np.float32))
        want, got = alone(x, t), run(x, t)
        for a, b in zip(got, want):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5, err_msg=run.inferred.describe())
    for name in g.variables:
        np.testing.assert_allclose(run.variable(name), alone.variable(name), rtol=2e-4, atol=1e-5,
                                   err_msg=name)
    return run


def row(sbp, k):
    return layout(sbp, range(k))


@pytest.mark.parametrize("rule", ["sgd", "adam"])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_data_parallel_training_equals_one_device(k, rule):
    run = same_training(lambda: build_mlp_graph(draw_parameters(), rule=rule), k,
                        {"x": row("S0", k), "t": row("S0", k)})
    if k > 1:
        grads = sum(a.nbytes for a in draw_parameters().values())
        loss = 4
        assert run.inferred.bytes <= 2 * (k - 1) * (grads + loss)


@pytest.mark.parametrize("k", [2, 3])
def test_model_parallel_training_equals_one_device(k):
    sources = {"w0": row("S0", k), "b0": row("S0", k), "w1": row("S1", k), "x": row("B", k), "t": row("B", k)}
    for rule, states in (("sgd", ()), ("adam", "mv")):
        more = {f"{n}-{s}": at for n, at in sources.items() for s in states if n[0] in "wb"}
        run = same_training(lambda rule=rule: build_mlp_graph(draw_parameters(), rule=rule), k,
                            {**sources, **more})
        assert run.arrays[0]["w0"].shape[0] == -(-12 // k)


def grid(sbp, h=(2, 2)):
    return layout(sbp, range(h[0] * h[1]), h)


def test_hybrid_parallel_training_equals_one_device():
    sources = {"x": grid(("S0", "B")), "t": grid(("S0", "B")), "w0": grid(("B", "S0")),
               "b0": grid(("B", "S0")), "w1": grid(("B", "S1")), "b1": grid(("B", "B"))}
    run = same_training(lambda: build_mlp_graph(draw_parameters()), 4, sources)
    assert run.arrays[0]["w0"].shape == (6, 8) and run.arrays[3]["w1"].shape == (6, 6)


def test_a_pipeline_trains_as_one_device():
    """Layer 0 on devices 0 and 1, layer 1 on devices 2 and 3."""
    first, second = Place((0, 1), (2,)), Place((2, 3), (2,))
    sources = {"x": layout("S0", first), "w0": layout("B", first), "b0": layout("B", first),
               "w1": layout("S0", second), "b1": layout("S0", second), "t": layout("B", second)}
    cast = {0: dict(sbp=None, place=second, grad_place=first)}
    run = same_training(lambda: build_mlp_graph(draw_parameters(), casts=cast), 4, sources)
    assert set(run.arrays[0]) >= {"w0", "b0"} and "w1" not in run.arrays[0] and "w0" not in run.arrays[2]
    assert {n.op.name for n in run.ranks[0].graph.nodes} & {"box_out", "box"}


def test_bytes_equal_the_prediction():
    sources = {"x": row("S0", 4), "t": row("S0", 4)}
    run = same_training(lambda: build_mlp_graph(draw_parameters()), 4, sources, steps=1)
    assert sum(g.bytes_sent for g in run.ranks.values()) == run.inferred.bytes > 0
    assert round(run.sent) == run.inferred.bytes
