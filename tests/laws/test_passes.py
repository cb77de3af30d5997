"""Laws of the general passes: each rewrites the calls it is for, leaves similar calls alone, and changes no
value. (test_passes_*.py: passes for images, pooling, and attention.)
"""
import numpy as np
import pytest

import flowedu as flow
from flowedu.core.graph import passes
from flowedu.core.graph.backward import gradients
from flowedu.core.graph.ir import Graph
from flowedu.core.graph.passes import PASSES, cse, dead, run_passes, simplify
from flowedu.core.values.spec import Spec
from flowedu.fast.passes import fuse, update
from flowedu.ops import REGISTRY

from .graphs import op_names, run_graph

R = REGISTRY
X = np.arange(12.0).reshape(3, 4) / 7


def traced(f, *specs):
    """Build the graph of f, which returns its outputs, on inputs of these Specs."""
    g = Graph("law")
    inputs = [g.input(f"x{i}", s) for i, s in enumerate(specs)]
    with g.building():
        g.outputs = list(f(*inputs))
    return g


def same_numbers(f, after, arrays=(X,)):
    """Assert that the graph of f has the same results with all passes and with none, and the nodes `after`
    with passes.
    """
    specs = [Spec(a.shape, flow.core.values.dtype.as_dtype(a.dtype)) for a in arrays]
    plain, made = traced(f, *specs), traced(f, *specs)
    want = run_graph(plain, arrays, passes=False)
    run_passes(made)
    assert op_names(made) == after
    for a, b in zip(run_graph(made, arrays, passes=False), want, strict=True):
        np.testing.assert_array_equal(a, b)


F64 = Spec((3, 4), flow.float64)


@pytest.mark.parametrize("call", [lambda x: R["identity"](x), lambda x: R["reshape"](x, shape=(3, 4)),
                                  lambda x: R["expand"](x, shape=(3, 4)),
                                  lambda x: R["cast"](x, dtype=flow.float64),
                                  lambda x: R["distribute_hint"](x, sbp="S0")], ids=range(5))
def test_identity_calls_are_removed(call):
    g = traced(lambda x: [R["exp"](call(call(x)))], F64)
    simplify(g)
    assert op_names(g) == ["exp"] and g.nodes[0].inputs == (g.inputs["x0"],)
    g = traced(lambda x: [call(x)], F64)
    simplify(g)
    assert op_names(g) == [] and g.outputs == [g.inputs["x0"]]


@pytest.mark.parametrize("call", [lambda x: R["reshape"](x, shape=(4, 3)),
                                  lambda x: R["expand"](x, shape=(2, 3, 4)),
                                  lambda x: R["cast"](x, dtype=flow.float32),
                                  lambda x: R["transpose"](x, perm=(0, 1)),
                                  lambda x: R["contiguous"](x)], ids=range(5))
def test_calls_with_an_effect_stay(call):
    g = traced(lambda x: [call(x)], F64)
    simplify(g)
    assert len(g.nodes) == 1


def test_equal_calls_are_merged():
    def f(x):
        return [R["sum"](R["exp"](x), axis=(0,)) * R["sum"](R["exp"](x), axis=(0,))]
    g = traced(f, F64)
    cse(g)
    assert op_names(g) == ["exp", "sum", "mul"]
    assert g.nodes[2].inputs[0] is g.nodes[2].inputs[1]
    same_numbers(f, ["exp", "sum", "mul"])


@pytest.mark.parametrize("a, b", [
    (lambda x: R["sum"](x, axis=(0,), keepdims=True), lambda x: R["sum"](x, axis=(1,), keepdims=True)),
    (lambda x: R["sub"](x, R["exp"](x)), lambda x: R["sub"](R["exp"](x), x)),
    (lambda x: R["max"](x, axis=(0,), keepdims=True), lambda x: R["min"](x, axis=(0,), keepdims=True)),
], ids=["attributes", "order", "op"])
def test_calls_that_differ_are_not_merged(a, b):
    g = traced(lambda x: [R["add"](a(x), b(x))], F64)
    cse(g)
    last = g.nodes[-1]
    assert last.inputs[0] is not last.inputs[1] and last.inputs[0].node.op is not R["exp"]


def test_random_calls_are_not_merged():
    def f(x):
        def draw():
            return R["random_uniform"](shape=(3, 4), dtype=flow.float64, seed=3)

        def mask():
            return R["random_mask_like"](x, rate=0.5, seed=4)

        return [draw(), draw(), mask(), mask()]
    g = traced(f, F64)
    for a, b in (g.nodes[:2], g.nodes[2:]):
        assert a.attrs != b.attrs                                    # each has a different seed
        b.attrs = a.attrs  # equal attributes, as in recomputed masks
    run_passes(g)
    assert sorted(op_names(g)) == ["random_mask_like"] * 2 + ["random_uniform"] * 2
    assert len(set(g.outputs)) == 4


def test_recomputed_calls_are_not_merged_with_the_originals():
    import flowedu.nn.graph.unroll  # noqa: F401  (enters `recompute` in the registry)
    g = traced(lambda x: [R["exp"](R["recompute"](x)), R["exp"](R["recompute"](x)), R["exp"](x)], F64)
    run_passes(g)
    assert op_names(g).count("exp") == 3 and op_names(g).count("recompute") == 2


def training(out=lambda loss, dw: [loss], twice=False, attrs=None, through=lambda dw: dw):
    """Build one SGD step of x @ w with a loss; through(gradient) is the value used for the update."""
    g = Graph("law")
    x, w = g.input("x", F64), g.variable("w", Spec((4, 5), flow.float64))
    lr, step = g.host("lr", Spec((1,), flow.float32)), g.variable("step", Spec((1,), flow.int64))
    with g.building():
        y = x @ w
        loss = R["sum"](y * y, axis=(0, 1))
    dw, = gradients(g, [loss], [w])
    with g.building():
        used = through(dw)
        R["sgd_update"](lr, step, w, used, **(attrs or {}))
        g.outputs = out(loss, dw)
    return g


def test_dead_calls_are_removed_and_writes_stay():
    g = traced(lambda x: [R["exp"](x), R["tanh"](x)][:1], F64)
    dead(g)
    assert op_names(g) == ["exp"]
    g = training(out=lambda loss, dw: [])
    dead(g)
    assert "sgd_update" in op_names(g) and "sum" not in op_names(g)      # the loss is not an output


def test_a_gradient_is_fused_into_its_update():
    g = training()
    assert update(g) and op_names(g)[-1] == "matmul_update" and "sgd_update" not in op_names(g)
    assert op_names(g).count("matmul") == 1  # x @ w; the gradient's product is part of the update


@pytest.mark.parametrize("case", [
    dict(out=lambda loss, dw: [loss, dw]),                           # the gradient is an output
    dict(out=lambda loss, dw: [loss, R["sum"](dw, axis=(0, 1))]),    # a second reader, such as its norm
    dict(attrs={"weight_decay": (0.1,)}), dict(attrs={"l1": (0.1,)}), dict(attrs={"l2": (0.1,)}),
    dict(through=lambda dw: dw * 0.5),                               # the update's operand is not a product
], ids=["output", "second reader", "weight decay", "l1", "l2", "not a product"])
def test_a_gradient_with_other_uses_is_stored(case):
    g = training(**case)
    before = op_names(g)
    assert not update(g) and op_names(g) == before


def test_a_chain_is_one_kernel():
    def f(x):
        return [R["relu"](R["exp"](x * 0.5) - x) + 1.0]
    same_numbers(f, ["fused"])


def test_a_value_with_two_readers_is_computed_once():
    def f(x):
        y = R["exp"](x * 0.5)
        return [R["tanh"](y), R["relu"](y)]
    g = traced(f, F64)
    fuse(g)
    assert len(g.nodes) == 3                                         # mul+exp, tanh, relu
    same_numbers(f, ["fused", "tanh", "relu"])


def test_fused_outputs_are_still_returned():
    def f(x):
        y = R["exp"](x * 0.5)
        return [y, R["tanh"](y)]
    same_numbers(f, ["fused", "tanh"])


def test_broadcast_operands_are_fused_only_for_one_shape():
    def f(x, b):
        return [R["add"](x, R["exp"](b))]  # exp of 4 numbers is not computed 12 times
    same_numbers(f, ["exp", "add"], (X, X[0]))


def test_every_pass_is_reported_and_can_be_disabled():
    def f(x):
        return [R["tanh"](R["exp"](R["identity"](x)))]
    for off in ((), ("simplify",), ("fuse",), tuple(p.__name__ for p in PASSES)):
        g = traced(f, F64)
        report = run_passes(g, off)
        assert [line.split()[0] for line in report] == [p.__name__ for p in PASSES if p.__name__ not in off]
        assert ("identity" in op_names(g)) == ("simplify" in off)
        assert ("fused" in op_names(g)) == ("fuse" not in off)


def test_a_pass_may_register_itself(monkeypatch):
    """It runs in the requested position and can be disabled by name; a graph also runs without passes of
    other modules.
    """
    monkeypatch.setattr(passes, "PASSES", [simplify, cse, dead, fuse, update])
    monkeypatch.setattr(passes, "NAMES", [])
    seen = []

    def looks(graph):
        seen.append(op_names(graph))
        return "looked"
    passes.register_pass(looks, before=fuse)
    assert [p.__name__ for p in passes.PASSES] == ["simplify", "cse", "dead", "looks", "fuse", "update"]

    def f(x):
        return [R["tanh"](R["exp"](R["identity"](x)))]
    for off in ((), ("looks",)):
        report = run_passes(traced(f, F64), off)
        assert any("looked" in line for line in report) == (not off)
    assert seen == [["exp", "tanh"]]
    rng = np.random.default_rng(0)
    x, b = rng.standard_normal((2, 6, 6, 6)), rng.standard_normal(6)

    def make():
        return traced(lambda x, b: [R["max_pool2d"](R["relu"](R["bias_add"](x, b, axis=1)), ksize=(2, 2),
                                                    strides=(2, 2))[0]],
                      *[Spec(a.shape, flow.float64) for a in (x, b)])

    np.testing.assert_array_equal(run_graph(make(), (x, b))[0], run_graph(make(), (x, b), passes=False)[0])


@pytest.mark.parametrize("axis, moves", [(1, True), (2, False), (3, False)])
def test_pooling_moves_before_a_per_channel_bias_only(axis, moves):
    """A bias along the pooled rows or columns differs between the elements of a window."""
    rng = np.random.default_rng(0)
    x, b = rng.standard_normal((2, 6, 6, 6)), rng.standard_normal(6) * 3

    def f(x, b):
        return [R["max_pool2d"](R["relu"](R["bias_add"](x, b, axis=axis)), ksize=(2, 2), strides=(2, 2))[0]]
    specs = [Spec(a.shape, flow.float64) for a in (x, b)]
    g = traced(f, *specs)
    report = "\n".join(run_passes(g))
    assert "1 max poolings moved forward" in report
    assert (op_names(g)[0] == "max_pool2d") == moves
    got, = run_graph(g, (x, b), passes=False)
    np.testing.assert_array_equal(got, run_graph(traced(f, *specs), (x, b), passes=False)[0])


@pytest.mark.parametrize("also", ["conv", "norm", None])
def test_a_norm_is_fused_into_its_convolution_only_without_other_readers(also):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s) for s in ((2, 5, 5, 4), (6, 4, 1, 1), (6,), (6,),
                                               (6,))] + [rng.uniform(0.5, 2, 6)]

    def f(x, w, gamma, beta, mean, var):
        y = R["conv2d_last"](x, w)
        z = R["batch_norm_infer"](y, gamma, beta, mean, var, axis=3, epsilon=1e-5)
        return [R["relu"](z), *{"conv": [R["exp"](y)], "norm": [R["exp"](z)], None: []}[also]]
    specs = [Spec(a.shape, flow.float64) for a in arrays]
    g = traced(f, *specs)
    run_passes(g)
    assert (("conv2d_last_norm" in op_names(g)) == (also != "conv")
            and ("relu" in op_names(g)) == (also is not None))
    for a, b in zip(run_graph(g, arrays, passes=False), run_graph(traced(f, *specs), arrays, passes=False),
                    strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
