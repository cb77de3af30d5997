"""Products by packed blocks: right for all sizes, in graphs that predict, with what a sum of floats may be off."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu import nn
from flowedu._kernels import ISA
from flowedu.ops import REGISTRY

EPS = {np.float32: 2.0 ** -24, np.float64: 2.0 ** -53}


@given(st.integers(0, 40), st.integers(1, 150), st.sampled_from((0, 1, 31, 64, 2048, 2049, 4100)),
       st.sampled_from((1, 2, 3)))
@pytest.mark.parametrize("dtype", EPS)
def test_matmul_packed_equals_float64_within_rounding(dtype, rows, cols, depth, threads):
    r = np.random.default_rng(rows + cols)
    x, w = (r.standard_normal(s).astype(dtype) for s in ((rows, depth), (cols, depth)))
    before = flow.get_num_threads()
    flow.set_num_threads(threads)
    try:
        got = REGISTRY["matmul_packed"](flow.tensor(x), flow.tensor(w)).numpy()
    finally:
        flow.set_num_threads(before)
    x, w = x.astype(np.float64), w.astype(np.float64)
    exact, size = x @ w.T, np.abs(x) @ np.abs(w).T
    assert (np.abs(got - exact) <= (depth + 2) * EPS[dtype] * size + np.spacing(np.abs(exact))).all()


@given(st.integers(1, 60), st.integers(1, 90), st.booleans(), st.sampled_from((2, 3)))
def test_a_1x1_convolution_is_finished_as_it_is_said(pixels, outs, nan, threads):
    r = np.random.default_rng(pixels + outs)
    x = r.standard_normal((1, pixels, 1, 20)).astype(np.float32)
    if nan:
        x[0, 0, 0, 3] = np.nan
    w, gamma, beta, mean = (r.standard_normal(s).astype(np.float32) for s in ((outs, 20, 1, 1), outs, outs, outs))
    var, attrs = r.uniform(0.5, 2, outs).astype(np.float32), dict(epsilon=1e-3, low=0.0, high=1.0)
    args = (x, w, gamma, beta, mean, var)
    before = flow.get_num_threads()
    flow.set_num_threads(threads)
    try:
        got = REGISTRY["conv2d_last_norm"](*map(flow.tensor, args), **attrs).numpy()
    finally:
        flow.set_num_threads(before)
    y = np.einsum("nhwc,oc->nhwo", x.astype(np.float64), w[:, :, 0, 0].astype(np.float64))
    want = np.clip((y - mean) / np.sqrt(var.astype(np.float64) + 1e-3) * gamma + beta, 0, 1)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)                   # a NaN is one, where it is one


def graph_of(model, train: bool):
    class Run(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            if train:
                self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))

        def build(self, x):
            y = self.model(x)
            if train:
                y.sum().backward()
            return y

    return Run()


@pytest.mark.parametrize(("rows", "train", "used"),
                         [((20,), False, 2), ((3, 5), False, 2), ((4,), False, 0), ((20,), True, 0)])
def test_graphs_that_predict_use_it(rows, train, used):
    flow.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(30, 50), nn.ReLU(), nn.Linear(50, 7)), flow.randn(*rows, 30)
    want = model(x).detach().numpy()
    graph = graph_of(model, train)
    got = graph(x).numpy()
    found = sum(n.op.name == "matmul_packed" for n in graph._compiled.graph.nodes)
    assert found == (0 if ISA == "base" else used)           # there OpenBLAS has wider vectors
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    if not train:
        np.testing.assert_array_equal(graph(x).numpy(), got)
        with flow.no_grad():
            model[0].weight.mul_(-2)
        np.testing.assert_allclose(graph(x).numpy(), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)
