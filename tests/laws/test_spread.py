"""Law: a graph spread over virtual devices has the values of one device, under every signature.

Every op of the registry: under the chosen signature, and under every legal one, forced by hints, on 2 and 3
devices, with sizes that the devices divide and sizes that they do not.
"""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu.core.graph.backward import gradients
from flowedu.core.graph.ir import Graph
from flowedu.core.sbp.local import logical_call, split_call
from flowedu.core.sbp.sbp import fits
from flowedu.core.sbp.signature import signatures
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec
from flowedu.distributed.spread import spread
from flowedu.errors import JobBuildAndInferError
from flowedu.ops import REGISTRY

from .calls import attributes, cases, draw_arrays, label, resized, thin
from .graphs import run_graph
from .test_modes import evaluate, expression

HINT = REGISTRY["distribute_hint"]
CALLS = [(op, e) for op, e in cases(lambda op: op.ref is not None and not op.mutates)]


def arrays_of(op, example, seed=0):
    rng = np.random.default_rng(seed)
    arrays = draw_arrays(op, example, np.float64, rng)
    return arrays, tuple(flow.float64 if a is flow.float32 else a for a in attributes(op, example))


def sizes(op, example):
    """Return the example, and with axes of 5 where they can be split: (3, 2) rows on two devices, (2, 2, 1)
    on three.
    """
    other = resized(op, example, lambda c, n: n - 1 if n > 3 else n)
    return [example] if other is example or other == example else [example, other]


def build(op, arrays, attrs, forced=None, backward=False):
    g = Graph("law")
    xs = [g.input(f"x{i}", Spec(a.shape, as_dtype(a.dtype))) for i, a in enumerate(arrays)]
    with g.building():
        ys = xs
        if forced is not None:
            ys = [HINT(HINT(x, sbp=s, forced=True), sbp=s) for x, s in zip(xs, forced)]
        out = op.call(tuple(ys), attrs)
    out = list(out) if isinstance(out, tuple) else [out]
    g.outputs = list(out)
    if backward:
        learned = [x for x in xs if x.dtype.is_floating_point]
        g.outputs += [d for d in gradients(g, [y for y in out if y.dtype.is_floating_point], learned)
                      if d is not None]
    return g


def assert_close_arrays(got, want, what):
    assert len(got) == len(want)
    for a, b in zip(got, want):
        assert a.shape == b.shape and a.dtype == b.dtype, what
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * max(1.0, float(np.max(np.abs(b), initial=0))),
                                   err_msg=what)


def divides(op, specs, attrs, sig, k):
    """Return True if a signature is possible on k devices: every split axis is long enough, and the shards of
    inputs and outputs match.
    """
    outs = op.infer(specs, attrs)
    if not all(fits((s,), v.shape, (k,)) for s, v in zip(sig, [*specs, *outs])):
        return False
    return set(sig) <= {"B"} or split_call(logical_call(op, specs, attrs), sig, k) is not None


@pytest.mark.parametrize("case", thin(CALLS), ids=label)
def test_the_spread_graph_computes_the_same(case):
    op, example = case
    for e in sizes(op, example):
        arrays, attrs = arrays_of(op, e)
        specs = [Spec(a.shape, as_dtype(a.dtype)) for a in arrays]
        g = build(op, arrays, attrs)
        want = run_graph(g, arrays)
        for k in (2, 3):
            g = build(op, arrays, attrs)
            s = spread(g, k)
            assert_close_arrays(run_graph(g, arrays), want, s.describe())
            for sig in sorted(signatures(op, specs, attrs)) if arrays else ():
                ways = {t for t in signatures(op, specs, attrs) if t[:len(arrays)] == sig[:len(arrays)]}
                g = build(op, arrays, attrs, sig[:len(arrays)])
                if any(divides(op, specs, attrs, t, k) for t in ways):
                    s = spread(g, k)
                    choice = next(r.choice for r in s.rows if r.node is not None and r.node.op is op)
                    assert choice is None or tuple(s for s, in choice.signature) in ways
                    assert_close_arrays(run_graph(g, arrays), want, s.describe())
                else:
                    with pytest.raises(JobBuildAndInferError):
                        spread(g, k)


TRAINED = cases(lambda op: bool(op.rules) and not op.random)


@pytest.mark.parametrize("case", thin(TRAINED), ids=label)
def test_gradients_are_spread(case):
    op, example = case
    for e in sizes(op, example):
        arrays, attrs = arrays_of(op, e)
        want = run_graph(build(op, arrays, attrs, backward=True), arrays)
        g = build(op, arrays, attrs, backward=True)
        s = spread(g, 3)
        assert_close_arrays(run_graph(g, arrays), want, s.describe())


SBP = ["B", "P", "S0", "S1"]


@given(expression(), st.integers(0, 2**31), st.sampled_from([(5, 5), (6, 6)]), st.integers(2, 4), st.data())
def test_programs_with_gradients(steps, seed, shape, k, data):
    """A random program and its gradients, with forced layouts in between, and some ops on other devices."""
    rng = np.random.default_rng(seed)
    x, b = rng.standard_normal(shape), rng.standard_normal(shape[1])
    casts = data.draw(st.lists(st.tuples(st.sampled_from(SBP), st.sampled_from([None, *SBP])), max_size=3))
    rows = st.lists(st.integers(0, k - 1), min_size=1, unique=True).map(tuple)
    places = data.draw(st.lists(st.none() | rows, min_size=1, max_size=5))

    def make(spread_it):
        g = Graph("law")
        gx, gb = g.input("x", Spec(x.shape, flow.float64)), g.input("b", Spec(b.shape, flow.float64))
        with g.building():
            y = gx
            for sbp, grad_sbp in casts:
                y = HINT(y * 1.0, sbp=sbp, grad_sbp=grad_sbp, forced=True)
            out = evaluate(steps, y, gb)
        for i, node in enumerate(g.nodes):
            node.placement = places[i % len(places)]
        g.outputs = list(out)
        g.outputs += [d for d in gradients(g, [out[0]], [gx, gb]) if d is not None]
        return g, spread(g, k) if spread_it else None

    want = run_graph(make(False)[0], [x, b])
    g, s = make(True)
    assert_close_arrays(run_graph(g, [x, b]), want, s.describe())
    assert make(True)[1].describe() == s.describe()
    assert s.bytes == sum(n for r in s.rows for b in r.boxed for _, _, n in b.route.messages())


def test_wrong_boxing_is_detected(monkeypatch):
    """A boxing that sums too often is detected."""
    from flowedu.core.sbp.boxing import inops
    op, example = next(c for c in CALLS if c[0].name == "matmul")
    arrays, attrs = arrays_of(op, example)
    want = run_graph(build(op, arrays, attrs), arrays)
    monkeypatch.setitem(inops.COMBINE, "sum", "sub")
    g = build(op, arrays, attrs, ("S1", "S0"))
    s = spread(g, 2)
    assert s.rows[2].signature == "a=S(1), b=S(0) -> y=P"
    with pytest.raises(AssertionError):
        assert_close_arrays(run_graph(g, arrays), want, s.describe())


def test_a_dropout_mask_does_not_gather_the_activations():
    """Dropout draws the whole mask and slices it; the activations are not moved."""
    g = Graph("law")
    x = g.input("x", Spec((6, 4), flow.float64))
    with g.building():
        y = REGISTRY["relu"](x)
        g.outputs = [REGISTRY["dropout"](y, REGISTRY["random_mask_like"](y, rate=0.5, seed=7), scale=2.0)]
    s = spread(g, 2)
    assert sum(r.bytes for r in s.rows if r.op != "(fetch)") == 0
    x = 1 + np.random.default_rng(0).random((6, 4))
    got, = run_graph(g, [x])
    assert 0 < np.count_nonzero(got) < 24 and set(np.round(got / x, 9).ravel()) == {0.0, 2.0}


def test_replicated_values_are_computed_once():
    g = Graph("law")
    x, w = g.input("x", Spec((6, 4), flow.float64)), g.variable("w", Spec((4, 5), flow.float64))
    with g.building():
        g.outputs = [x @ (w * w)]
    s = spread(g, 3)
    assert [n.name for n in g.nodes if n.op.name == "mul"] == ["mul_0"]
    assert [n.placement for n in g.nodes if n.op.name == "matmul"] == [(0,), (1,), (2,)]
    assert s.layouts(x)[0].sbp == ("S0",) and s.layouts(w)[0].sbp == ("B",)
    assert s.bytes == 2 * 2 * 5 * 8                            # the result's other rows are sent to device 0
    text = s.describe()
    for word in ("law on 3 devices", "matmul_0 (matmul)", "a=S(0), b=B -> y=S(0)", "copy",
                 "moved in one run: 160 bytes"):
        assert word in text, text


def test_a_hinted_variable_is_split_and_its_gradient_has_its_layout():
    """Tensor parallel: only the data moves, and the update gets the gradient in the layout of its weights."""
    g = Graph("law")
    x, w = g.input("x", Spec((6, 4), flow.float64)), g.variable("w", Spec((5, 4), flow.float64))
    lr, step = g.host("lr", Spec((1,), flow.float32)), g.variable("step", Spec((1,), flow.int64))
    with g.building():
        y = REGISTRY["matmul"](x, HINT(w, sbp="S0"), transpose_b=True)
        loss = REGISTRY["sum"](y * y, axis=(0, 1))
    dw, = gradients(g, [loss], [w])
    with g.building():
        REGISTRY["sgd_update"](lr, step, w, dw)
    g.outputs = [loss]
    s = spread(g, 2)
    assert s.layouts(w)[0].sbp == ("S0",)
    signs = {r.op: r.signature for r in s.rows if r.op == "matmul"}
    assert signs["matmul"].endswith("-> y=S(0)"), signs                  # dw, with w's layout
    moved = {b.value.name: b.route.name for r in s.rows for b in r.boxed if b.route.bytes}
    assert moved == {"x": "all-gather", "sum_0": "reduce"}, s.describe()


def test_an_impossible_hint_names_the_line_and_the_partners():
    g = Graph("law")
    x = g.input("x", Spec((6, 4), flow.float64))
    with g.building():
        g.outputs = [REGISTRY["softmax"](HINT(x, sbp="S1"))]
    with pytest.raises(JobBuildAndInferError) as e:
        spread(g, 2)
    for word in ("softmax_0", "test_spread.py", "x cannot be S(1) here", "x=S(0) -> y=S(0)"):
        assert word in str(e.value)


def test_a_gradient_follows_a_hint_only_if_possible():
    """One op requests x in columns; the gradient of that op reads x as well, and cannot use columns."""
    g = Graph("law")
    x, w = g.input("x", Spec((6, 4), flow.float64)), g.input("w", Spec((6, 4), flow.float64))
    with g.building():
        y = REGISTRY["mul"](HINT(x, sbp="S1"), HINT(w, sbp="S1"))
    g.outputs = [y, *gradients(g, [y], [x, w])]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((6, 4)) for _ in range(2)]
    spread(g, 2)
    assert_close_arrays(run_graph(g, arrays), [arrays[0] * arrays[1], arrays[1], arrays[0]], "")


def test_one_device_drops_the_hints():
    from flowedu.core.graph.passes import simplify
    g = Graph("law")
    x = g.input("x", Spec((6, 4), flow.float64))
    with g.building():
        g.outputs = [REGISTRY["relu"](HINT(HINT(x, sbp="S1"), sbp="S0", forced=True))]
    simplify(g)
    assert [n.op.name for n in g.nodes] == ["relu"]


def test_a_stage_on_each_device():
    """A pipeline: transfers between placements are counted, and an argument costs nothing where it is
    read.
    """
    g = Graph("law")
    x = g.input("x", Spec((6, 4), flow.float64))
    with g.building():
        g.placement = (0,)
        a = REGISTRY["relu"](x)
        g.placement = (1, 2)
        b = REGISTRY["exp"](a)
        g.placement = (3,)
        g.outputs = [b + x]
    s = spread(g, 4)
    x = np.random.default_rng(0).standard_normal((6, 4))
    assert_close_arrays(run_graph(g, [x]), [np.exp(np.maximum(x, 0)) + x], s.describe())
    assert [(r.op, r.bytes) for r in s.rows] == [("relu", 0), ("exp", 192), ("add", 192), ("(fetch)", 0)]
