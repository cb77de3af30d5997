"""Law: calls have the same values eagerly and as a compiled graph, with every pass on or off."""
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import flowedu as flow
from flowedu.core.graph.backward import gradients
from flowedu.core.graph.ir import Graph
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec

from .calls import assert_equal_up_to_rounding, call_inputs, cases, few, label, run_eagerly, thin
from .draws import EXACT, KINDS, assert_equal_or_rounded, most_terms, supported_call_inputs
from .graphs import run_graph

CALLS = cases(lambda op: not op.mutates and not op.random)
TRAINED = cases(lambda op: bool(op.rules) and not op.random)


def build(op, arrays, attrs):
    g = Graph("law")
    values = [g.input(f"x{i}", Spec(a.shape, as_dtype(a.dtype))) for i, a in enumerate(arrays)]
    with g.building():
        out = op.call(tuple(values), attrs)
    g.outputs = list(out) if isinstance(out, tuple) else [out]
    return g, values


@pytest.mark.parametrize("case", thin(CALLS), ids=label)
@few
@given(data=st.data(), kind=st.sampled_from(KINDS))
def test_graph_equals_eager(case, data, kind):
    op, example = case
    arrays, attrs = data.draw(supported_call_inputs(op, example, kind))
    g, _ = build(op, arrays, attrs)
    for a, b in zip(run_graph(g, arrays), run_eagerly(op, [np.asarray(a, order="C") for a in arrays], attrs),
                    strict=True):
        # threads may add in another order
        assert_equal_or_rounded(a, b, op.name in EXACT, most_terms(op, arrays))


@pytest.mark.parametrize("case", thin(TRAINED), ids=label)
@few
@given(data=st.data())
def test_graph_gradients_equal_eager_gradients(case, data):
    op, example = case
    arrays, attrs = data.draw(call_inputs(op, example, dtypes=(np.float64,), resize=False))
    g, values = build(op, arrays, attrs)
    floats = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]
    losses = [y for y in g.outputs if y.dtype.is_floating_point]
    found = gradients(g, losses, [values[i] for i in floats])
    keep = [(i, y) for i, y in zip(floats, found) if y is not None]
    g.outputs = [y for _, y in keep]
    ts = [flow.tensor(a, requires_grad=i in floats) for i, a in enumerate(arrays)]
    out = op.call(tuple(ts), attrs)
    total = None
    for y in out if isinstance(out, tuple) else (out,):
        if y.dtype.is_floating_point:
            total = y.sum() if total is None else total + y.sum()
    total.backward()
    for (i, _), got in zip(keep, run_graph(g, arrays)):
        assert_equal_up_to_rounding(got, ts[i].grad.numpy(), np.float64, scale=10.0)


UNARY = ["relu", "exp", "tanh", "square", "sigmoid", "neg", "gelu", "softsign", "abs"]
BINARY = ["add", "sub", "mul", "maximum", "minimum", "squared_difference"]


@st.composite
def expression(draw):
    """Draw a program of elementwise ops, broadcasts, reductions, reshapes, and transposes over two inputs."""
    return draw(st.lists(st.tuples(st.sampled_from(UNARY + BINARY + ["sum", "transpose", "scale", "bias",
                                                                     "matmul"]),
                                    st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=14))


def evaluate(steps, x, b):
    ops = flow.ops.REGISTRY
    pool = [x, x * 0.5]
    for name, i, j in steps:
        u, v = pool[i % len(pool)], pool[j % len(pool)]
        if name in UNARY:
            y = ops[name](u * 0.3)
        elif name in BINARY:
            y = ops[name](u, v)
        elif name == "sum":
            y = u + ops["sum"](v, axis=(1,), keepdims=True)
        elif name == "transpose":
            y = ops["transpose"](ops["contiguous"](ops["transpose"](u, perm=(1, 0))), perm=(1, 0))
        elif name == "scale":
            y = u * 0.25 + 1
        elif name == "bias":
            y = ops["bias_add"](u, b, axis=j % 2)
        else:
            y = ops["matmul"](u, v, transpose_b=True) * 0.1
        pool.append(ops["tanh"](y))
    return pool[-1], pool[len(pool) // 2]


@given(expression(), st.integers(0, 2**31), st.sampled_from([(), ("fuse",), ("cse",), ("simplify",),
                                                             ("dead",)]))
def test_passes_do_not_change_values(steps, seed, off):
    rng = np.random.default_rng(seed)
    x, b = rng.standard_normal((6, 6)), rng.standard_normal(6)
    want = [t.numpy() for t in evaluate(steps, flow.tensor(x), flow.tensor(b))]
    g = Graph("law")
    gx, gb = g.input("x", Spec(x.shape, flow.float64)), g.input("b", Spec(b.shape, flow.float64))
    with g.building():
        g.outputs = list(evaluate(steps, gx, gb))
    for got, w in zip(run_graph(g, [x, b], off=off), want):
        np.testing.assert_allclose(got, w, rtol=1e-12, atol=1e-12)


@given(expression(), st.integers(0, 2**31))
@example([("relu", 0, 0), ("add", 0, 1), ("add", 2, 3)], 0)  # a gradient that both a leaf and a node need
def test_gradients_of_programs_agree(steps, seed):
    rng = np.random.default_rng(seed)
    x, b = rng.standard_normal((6, 6)), rng.standard_normal(6)
    tx, tb = flow.tensor(x, requires_grad=True), flow.tensor(b, requires_grad=True)
    evaluate(steps, tx, tb)[0].sum().backward()
    g = Graph("law")
    gx, gb = g.input("x", Spec(x.shape, flow.float64)), g.input("b", Spec(b.shape, flow.float64))
    with g.building():
        loss = evaluate(steps, gx, gb)[0]
    found = gradients(g, [loss], [gx, gb])
    pairs = [(t, y) for t, y in zip((tx, tb), found) if y is not None]
    g.outputs = [y for _, y in pairs]
    for (t, _), got in zip(pairs, run_graph(g, [x, b])):
        np.testing.assert_allclose(got, t.grad.numpy(), rtol=1e-9, atol=1e-12)
