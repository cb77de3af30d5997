"""The pass pool_first: it moves max pooling before bias and relu if the values in between are not used
elsewhere.
"""
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
from laws.graphs import op_names, run_graph

R = flow.ops.REGISTRY


def build_pooled_graph(shape, window, stride, pad, bias=True, backward=True, also=()):
    """Build x -> bias_add -> relu -> max_pool with the outputs sum of squares, pooled values, gradients of x
    and b, and `also`.
    """
    g = Graph("pooled")
    x, b = g.input("x", Spec(shape, flow.float32)), g.input("b", Spec((shape[1],), flow.float32))
    with g.building():
        values = {"biased": R["bias_add"](x, b, axis=1) if bias
                  else x * R["reshape"](b, shape=(1, shape[1], 1, 1))}
        values["relu"] = R["relu"](values["biased"])
        y, values["index"] = R["max_pool2d"](values["relu"], ksize=(window,) * 2, strides=(stride,) * 2,
                                             pads=(pad,) * 4)
        loss = R["sum"](y * y, axis=(0, 1, 2, 3))
    g.outputs = [y, *(gradients(g, [loss], [x, b]) if backward else []), *(values[n] for n in also)]
    return g


def is_pooled_first(graph):
    order = op_names(graph)
    return order.index("max_pool2d") < next(i for i, n in enumerate(graph.nodes) if "relu" in n.name
                                            or n.op.name == "relu")


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 3), st.integers(0, 1), st.integers(5, 9), st.integers(5, 9), st.booleans(),
       st.booleans())
def test_results_do_not_change(window, pad, h, w, bias, backward):
    shape = (3, 4, h, w)
    arrays = f32(*shape), f32(4, seed=1)
    on, off = (build_pooled_graph(shape, window, 2, pad, bias, backward) for _ in range(2))
    got, want = run_graph(on, arrays), run_graph(off, arrays, off=["pool_first"])
    assert is_pooled_first(on) and not is_pooled_first(off)
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_relu_and_bias_run_only_after_pooling():
    g = build_pooled_graph((2, 4, 8, 8), 2, 2, 0)
    said = {line.split()[0]: line for line in run_passes(g)}
    assert "1 max poolings moved forward" in said["pool_first"]
    large = [n.op.name for n in g.nodes if n.outputs and n.outputs[0].shape == (2, 4, 8, 8)]
    assert large == ["max_pool2d_grad"]
    total = next(n for n in g.nodes if n.op.name == "sum" and dict(zip(n.op.attrs,
                                                                       n.attrs))["axis"] == (0, 2, 3))
    assert total.inputs[0].shape == (2, 4, 4, 4)  # the gradient of the bias is summed over pooled values


@pytest.mark.parametrize("also", ["relu", "index", "biased"])
def test_fetched_values_are_kept(also):
    shape = (2, 4, 8, 6)
    arrays = f32(*shape), f32(4, seed=1)
    on, off = (build_pooled_graph(shape, 2, 2, 0, also=[also]) for _ in range(2))
    got, want = run_graph(on, arrays), run_graph(off, arrays, off=["pool_first"])
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_pooling_that_keeps_the_size_is_not_moved():
    g = build_pooled_graph((2, 4, 8, 8), 3, 1, 1)
    run_passes(g)
    assert not is_pooled_first(g)


def test_it_matches_eager():
    x, b = (flow.tensor(a, requires_grad=True) for a in (f32(3, 4, 8, 8), f32(4, seed=1)))
    y = R["max_pool2d"](R["relu"](R["bias_add"](x, b, axis=1)), ksize=(2, 2), strides=(2, 2),
                        pads=(0, 0, 0, 0))[0]
    R["sum"](y * y, axis=(0, 1, 2, 3)).backward()
    got = run_graph(build_pooled_graph((3, 4, 8, 8), 2, 2, 0), (x.numpy(), b.numpy()))
    for ours, eager in zip(got, (y, x.grad, b.grad)):
        np.testing.assert_allclose(ours, eager.numpy(), rtol=1e-5, atol=1e-5)
