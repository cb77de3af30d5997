"""Large matrix products, which have a separate kernel: any memory layout, ragged and unaligned sizes,
batches, and the choice of the kernel.
"""
import io

import numpy as np
import pytest
from cuda_common import in_simulator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flowedu as flow
from flowedu.cuda.launches import matmul

FAR = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture
def one_processor(monkeypatch):
    """Set the number of multiprocessors to 1, so that one large tile is enough work."""
    monkeypatch.setattr(matmul, "_processors", lambda: 1)


def matrix(rng, shape, flip, first):
    """Return (NumPy array, device tensor). flip: the last two axes are stored in reverse order; first: offset
    in elements.
    """
    shape = (*shape[:-2], *reversed(shape[-2:])) if flip else shape
    whole = rng.standard_normal(first + int(np.prod(shape))).astype(np.float32)
    there = flow.tensor(whole, device="cuda")[first:].reshape(shape)
    here = whole[first:].reshape(shape)
    return (np.swapaxes(here, -1, -2), there.transpose(-1, -2)) if flip else (here, there)


def kernel_of(f):
    with flow.cuda.profile(io.StringIO()) as p:
        y = f()
    return y.cpu().numpy(), [k for k in p.kernels if k.startswith("matmul")]


sizes = st.sampled_from([128, 129, 130, 132, 140, 257])


@in_simulator
@FAR
@given(rows=sizes, cols=sizes, depth=st.integers(0, 17), flips=st.tuples(st.booleans(), st.booleans()),
       first=st.tuples(st.sampled_from([0, 0, 1, 2, 4]), st.sampled_from([0, 0, 1, 3, 4])),
       batches=st.sampled_from([(), (), (1,), (2, 2)]), shared=st.booleans())
def test_large_products_match_numpy(one_processor, rows, cols, depth, flips, first, batches, shared):
    rng = np.random.default_rng(depth)
    a, x = matrix(rng, (*batches, rows, depth), flips[0], first[0])
    b, w = matrix(rng, (depth, cols) if shared else (*batches, depth, cols), flips[1], first[1])
    y, kernels = kernel_of(lambda: x @ w)
    np.testing.assert_allclose(y, a @ b, rtol=1e-4, atol=1e-4)
    assert len(kernels) == 1 and kernels[0].startswith("matmul_tiles_")
    if depth > 1:
        assert kernels[0] == "matmul_tiles_" + "".join("t" if flip else "n" for flip in flips)


@in_simulator
@pytest.mark.parametrize("what, make", [
    ("few rows", lambda: (flow.ones(127, 8), flow.ones(8, 200))),
    ("few columns", lambda: (flow.ones(200, 8), flow.ones(8, 9))),
    ("doubles", lambda: (flow.ones(200, 8).double(), flow.ones(8, 200).double())),
    ("every second column", lambda: (flow.ones(200, 16)[:, ::2], flow.ones(8, 200)))])
def test_other_products_do_not_use_large_tiles(one_processor, what, make):
    a, b = make()
    x, w = a.to("cuda"), b.to("cuda")
    if what == "every second column":
        x = flow.ones(200, 16, device="cuda")[:, ::2]
    y, kernels = kernel_of(lambda: x @ w)
    assert kernels == ["matmul"] and np.array_equal(y, (a @ b).numpy())


@in_simulator
def test_large_tiles_need_a_device_full_of_them():
    """The simulator reports 16 multiprocessors: 12 tiles of 128 x 128 are too few, and 16 are enough."""
    b = flow.ones(4, 512, device="cuda")
    assert kernel_of(lambda: flow.ones(384, 4, device="cuda") @ b)[1] == ["matmul"]
    assert kernel_of(lambda: flow.ones(512, 4, device="cuda") @ b)[1] == ["matmul_tiles_nn"]


@in_simulator
def test_a_linear_layer_and_its_gradients(one_processor):
    """The three products of training: x w^T, dy w, and dy^T x."""
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal((256, 130)).astype(np.float32),
            rng.standard_normal((132, 130)).astype(np.float32))

    def gradients(device):
        a, b = (flow.tensor(v, device=device, requires_grad=True) for v in (x, w))
        (a @ b.t()).square().sum().backward()
        return a.grad, b.grad

    with flow.cuda.profile(io.StringIO()) as p:
        got = gradients("cuda")
    assert {k for k in p.kernels if k.startswith("matmul")} == {"matmul_tiles_nt", "matmul_tiles_nn",
                                                                "matmul_tiles_tn"}
    for g, want in zip(got, gradients("cpu")):
        np.testing.assert_allclose(g.cpu().numpy(), want.numpy(), rtol=1e-3, atol=1e-2)


@in_simulator
def test_a_large_tile_reads_each_number_once_for_128_results(one_processor):
    a = flow.ones(256, 64, device="cuda")
    with flow.cuda.profile(io.StringIO()) as p:
        a @ a.t()
    c = p["matmul_tiles_nt"]
    assert c["global_bytes"] == 4 * (2 * 256 * 256 * 64 // 128 + 256 * 256) and c["conflicts"] == 0
    assert c["barriers"] == 4 * (64 // 8 + 1)
