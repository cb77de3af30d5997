"""Products by packed blocks: correct for all sizes and in inference graphs, within the rounding error of a
float sum.
"""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu import _kernels as kernels
from flowedu import nn
from flowedu._kernels import ISA
from flowedu.fast.passes.packed import packed
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


@given(st.integers(1, 40), st.integers(1, 150), st.sampled_from((0, 1, 31, 2049)), st.booleans(),
       st.sampled_from((1, 2, 3)))
@pytest.mark.parametrize("dtype", EPS)
def test_a_residual_is_added_after_the_whole_sum(dtype, rows, cols, depth, residual, threads):
    r = np.random.default_rng(rows + cols)
    x = r.standard_normal((rows, depth)).astype(dtype)
    w = r.standard_normal((cols, depth)).astype(dtype)
    b = r.standard_normal(cols).astype(dtype)
    z = r.standard_normal((rows, cols)).astype(dtype)
    b[0], z[-1, -1] = np.nan, np.inf  # each reaches only the elements to which it is added
    args = [flow.tensor(a) for a in (x, w, b, *[z] * residual)]
    before = flow.get_num_threads()
    flow.set_num_threads(threads)
    try:
        got = REGISTRY["matmul_packed_residual" if residual else "matmul_packed_bias"](*args).numpy()
        plain = REGISTRY["matmul_packed"](*args[:2]).numpy()
    finally:
        flow.set_num_threads(before)
    # equal to the bit to separate ops
    assert np.array_equal(got, plain + b + z if residual else plain + b, equal_nan=True)


@given(st.integers(1, 60), st.integers(1, 90), st.booleans(), st.sampled_from((2, 3)))
def test_epilogues_of_a_1x1_convolution(pixels, outs, nan, threads):
    r = np.random.default_rng(pixels + outs)
    x = r.standard_normal((1, pixels, 1, 20)).astype(np.float32)
    if nan:
        x[0, 0, 0, 3] = np.nan
    w = r.standard_normal((outs, 20, 1, 1)).astype(np.float32)
    gamma, beta, mean = (r.standard_normal(outs).astype(np.float32) for _ in range(3))
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
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)  # NaNs are in the same positions


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
def test_inference_graphs_use_packed_products(rows, train, used):
    flow.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(30, 50), nn.ReLU(), nn.Linear(50, 7)), flow.randn(*rows, 30)
    want = model(x).detach().numpy()
    graph = graph_of(model, train)
    got = graph(x).numpy()
    found = sum(n.op.name == "matmul_packed_bias" for n in graph._compiled.graph.nodes)
    assert found == (0 if ISA == "base" else used)           # there, OpenBLAS has wider vectors
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    if not train:
        np.testing.assert_array_equal(graph(x).numpy(), got)
        with flow.no_grad():
            model[0].weight.mul_(-2)
        np.testing.assert_allclose(graph(x).numpy(), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("train", "used"), [(False, 2), (True, 0)])
def test_products_of_graphs_that_write_their_weights_stay_plain(monkeypatch, train, used):
    """A packed copy of a weight would be stale after a step. The rule is the same on every processor."""
    monkeypatch.setattr(kernels, "ISA", "base")
    graph = graph_of(nn.Sequential(nn.Linear(30, 50), nn.ReLU(), nn.Linear(50, 7)), train)
    graph(flow.randn(20, 30))
    traced = graph._compiled.graph
    assert sum(n.op.name == "matmul" for n in traced.nodes) >= 2
    monkeypatch.setattr(kernels, "ISA", "v3")
    packed(traced)
    assert sum(n.op.name.startswith("matmul_packed") for n in traced.nodes) == used


class Residual(nn.Module):
    def __init__(self, order):
        super().__init__()
        self.one, self.two, self.order = nn.Linear(12, 40), nn.Linear(40, 12, bias=False), order

    def forward(self, x):
        y = self.one(x)
        r = flow.relu(y)
        if self.order == "shared":
            return y + self.two(r).sum(), y                          # the product is used twice
        if self.order == "twice":
            return self.one(x) + self.one(x + 1)  # one of two products, as the residual of the other
        if self.order == "row":
            return self.two(r) + x[:1]  # one row for all: neither a residual nor a bias vector
        return x + self.two(r) if self.order == "left" else self.two(r) + self.two.weight[:, 0] + x


@pytest.mark.parametrize(("order", "wanted"), [
    ("left", ["matmul_packed_bias", "matmul_packed"]), ("right", ["matmul_packed_bias",
                                                                  "matmul_packed_residual"]),
    ("shared", ["matmul_packed_bias", "matmul_packed"]), ("twice", ["matmul_packed_bias",
                                                                    "matmul_packed_residual"]),
    ("row", ["matmul_packed_bias", "matmul_packed"])])
def test_bias_and_residual_go_into_the_product(order, wanted):
    flow.manual_seed(0)
    model, x = Residual(order), flow.randn(20, 12)
    want, graph = model(x), graph_of(model, False)
    got = graph(x)
    for a, b in zip(*((y if isinstance(y, tuple) else (y,)) for y in (got, want))):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-5)
    found = sorted(n.op.name for n in graph._compiled.graph.nodes if n.op.name.startswith("matmul_packed"))
    assert found == ([] if ISA == "base" else sorted(wanted))
