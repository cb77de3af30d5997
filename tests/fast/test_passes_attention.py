"""The passes masked_softmax and bands: they apply to the usual form of attention and change no result."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from common import f32
from flowedu.core.graph.backward import gradients
from flowedu.core.graph.ir import Graph
from flowedu.core.graph.passes import run_passes
from flowedu.core.values.spec import Spec
from flowedu.errors import DTypeError, ShapeError
from laws.graphs import op_names, run_graph

R = flow.ops.REGISTRY
BATCH = 2
LENGTH = 6
HEADS = 2
SIZE = 4
WIDTH = HEADS * SIZE
OFF = ("masked_softmax", "bands")


def number(value):
    return R["constant"](shape=(), value=value, dtype=flow.float32)


def attention(x, w, mask, scale, fill):
    """Compute causal self-attention with one product for queries, keys, and values, which slices separate."""
    qkv = R["matmul"](x, w, transpose_b=True)
    parts = [R["slice"](qkv, start=(0, 0, i * WIDTH), stop=(BATCH, LENGTH, (i + 1) * WIDTH), step=(1, 1, 1))
             for i in range(3)]
    q, k, v = (R["transpose"](R["reshape"](p, shape=(BATCH, LENGTH, HEADS, SIZE)), perm=(0, 2, 1, 3))
               for p in parts)
    scores = R["matmul"](q, k, transpose_b=True)
    if scale != 1.0:
        scores = scores * scale
    y = R["matmul"](R["softmax"](R["where"](mask, number(fill), scores)), v)
    return R["reshape"](R["transpose"](y, perm=(0, 2, 1, 3)), shape=(BATCH, LENGTH, WIDTH))


def training_graph(scale=0.5, fill=-np.inf, mask_shape=(LENGTH, LENGTH)):
    """Build a graph with the outputs attention and the gradients of x and w."""
    g = Graph("attention")
    x, w = (g.input(n, Spec(s, flow.float32)) for n, s in (("x", (BATCH, LENGTH, WIDTH)),
                                                           ("w", (3 * WIDTH, WIDTH))))
    mask = g.input("mask", Spec(mask_shape, flow.int8))
    with g.building():
        y = attention(x, w, mask, scale, fill)
        loss = R["sum"](y * y, axis=(0, 1, 2))
    g.outputs = [y, *gradients(g, [loss], [x, w])]
    return g


def causal(shape=(LENGTH, LENGTH)):
    return np.broadcast_to(np.triu(np.ones((LENGTH, LENGTH), np.int8), 1), shape).copy()


def draw_inputs(mask):
    return f32(BATCH, LENGTH, WIDTH), f32(3 * WIDTH, WIDTH, seed=1), mask


@pytest.mark.parametrize("always_parallel", [False, True])
@pytest.mark.parametrize(("scale", "fill", "shape"), [(0.5, -np.inf, (LENGTH, LENGTH)),
                                                      (1.0, -1e9, (LENGTH, LENGTH)),
                                                       (0.25, -2.0, (BATCH, 1, LENGTH, LENGTH))])
def test_attention_does_not_depend_on_the_passes(scale, fill, shape, always_parallel):
    g = training_graph(scale, fill, shape)
    got = run_graph(g, draw_inputs(causal(shape)), always_parallel=always_parallel)
    assert {"masked_softmax", "masked_softmax_grad", "concat"} <= set(op_names(g))
    assert not {"softmax", "softmax_grad", "slice_grad"} & set(op_names(g))
    plain = training_graph(scale, fill, shape)
    want = run_graph(plain, draw_inputs(causal(shape)), off=OFF)
    assert {"softmax", "softmax_grad", "slice_grad"} <= set(op_names(plain))
    for a, b in zip(got, want):  # sums in another order: the error is relative to the largest value
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=4e-6 * abs(b).max())


def test_the_report_lists_the_changes():
    said = {line.split()[0]: line for line in run_passes(training_graph())}
    assert "1 softmaxes take a mask, 1 gradients with them" in said["masked_softmax"]
    assert "1 sums of slices are joined" in said["bands"]


@pytest.mark.parametrize("what", ["masked", "scaled"])
def test_values_with_other_readers_are_kept(what):
    g = Graph("read twice")
    x, mask = g.input("x", Spec((3, 5), flow.float32)), g.input("mask", Spec((5,), flow.int8))
    with g.building():
        scaled = x * 0.5
        masked = R["where"](mask, number(-9.0), scaled)
        y = R["softmax"](masked)
    g.outputs = [y, masked if what == "masked" else scaled]
    a, m = f32(3, 5), np.array([0, 1, 0, 0, 1], np.int8)
    got = run_graph(g, (a, m))
    assert ("masked_softmax" in op_names(g)) == (what == "scaled")
    z = np.where(m, np.float32(-9), a * 0.5)
    np.testing.assert_allclose(got[0], np.exp(z) / np.exp(z).sum(-1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(got[1], z if what == "masked" else a * 0.5, rtol=1e-6)


def test_a_softmax_over_another_axis_keeps_its_mask():
    g = Graph("first axis")
    x, mask = g.input("x", Spec((3, 5), flow.float32)), g.input("mask", Spec((3, 5), flow.int8))
    with g.building():
        g.outputs = [R["softmax"](R["where"](mask, number(-9.0), x), axis=0)]
    run_passes(g)
    assert op_names(g).count("softmax") == 1


def sliced(cuts, n=12):
    """Build a graph that slices x (2, n) at `cuts` = [(start, stop)] and uses the pieces differently; its
    output is dx.
    """
    g = Graph("slices")
    x = g.input("x", Spec((2, n), flow.float32))
    with g.building():
        parts = [R["slice"](x, start=(0, a), stop=(2, b), step=(1, 1)) for a, b in cuts]
        loss = parts[0] * 0
        losses = [R["sum"](p * p * (i + 1.0), axis=(0, 1)) for i, p in enumerate(parts)]
        loss = losses[0]
        for v in losses[1:]:
            loss = loss + v
    g.outputs = gradients(g, [loss], [x])
    return g


def expected(a, cuts):
    dx = np.zeros_like(a)
    for i, (start, stop) in enumerate(cuts):
        dx[:, start:stop] += 2 * (i + 1) * a[:, start:stop]
    return dx


@settings(max_examples=30, deadline=None)
@given(st.sets(st.integers(1, 11), max_size=4), st.randoms())
def test_pieces_in_any_order_are_joined(cuts, random):
    edges = [0, *sorted(cuts), 12]
    pieces = list(zip(edges, edges[1:]))
    random.shuffle(pieces)
    g, a = sliced(pieces), f32(2, 12)
    np.testing.assert_allclose(run_graph(g, (a,))[0], expected(a, pieces), rtol=1e-6)
    assert op_names(g).count("concat") == (len(pieces) > 1)


@pytest.mark.parametrize("pieces", [[(0, 5), (6, 12)], [(0, 7), (6, 12)], [(1, 6), (6, 12)],
                                    [(0, 6), (6, 11)], [(0, 6), (0, 6), (6, 12)]])
def test_pieces_with_gaps_or_overlaps_are_added(pieces):
    g, a = sliced(pieces), f32(2, 12)
    np.testing.assert_allclose(run_graph(g, (a,))[0], expected(a, pieces), rtol=1e-6)
    assert "concat" not in op_names(g)


def test_pieces_are_joined_inside_a_larger_sum():
    g = Graph("slices and all")
    x = g.input("x", Spec((2, 6), flow.float32))
    with g.building():
        loss = R["sum"](x * x, axis=(0, 1))
        for a, b in ((0, 2), (2, 6)):
            part = R["slice"](x, start=(0, a), stop=(2, b), step=(1, 1))
            loss = loss + R["sum"](part * part * part, axis=(0, 1))
    g.outputs = gradients(g, [loss], [x])
    a = f32(2, 6)
    np.testing.assert_allclose(run_graph(g, (a,))[0], 2 * a + 3 * a * a, rtol=1e-5)
    assert op_names(g).count("concat") == 1 and "slice_grad" not in op_names(g)


def test_a_sum_of_thousands_of_terms():
    """No pass recurses as deeply as the sum is long."""
    g = Graph("long")
    x, y = g.input("x", Spec((2,), flow.float32)), g.input("y", Spec((2,), flow.float32))
    with g.building():
        total = x
        for _ in range(3000):
            total = total + y
    g.outputs = [total]
    np.testing.assert_array_equal(run_graph(g, (np.float32([1, 2]), np.float32([1, 0.5])))[0], [3001, 1502])


def test_invalid_arguments_are_refused():
    x = flow.tensor(np.zeros((2, 3), np.float32))
    with pytest.raises(DTypeError, match="mask has the wrong element type"):
        R["masked_softmax"](x, flow.tensor(np.zeros((2, 3), np.float32)), fill=0.0)
    with pytest.raises(ShapeError, match="does not broadcast"):
        R["masked_softmax"](x, flow.tensor(np.zeros((3, 2), np.int8)), fill=0.0)
