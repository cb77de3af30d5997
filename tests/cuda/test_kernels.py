"""Kernels against NumPy: matrix products, row sums, softmax, histograms, and transposes, of sizes that are no
multiple of a block.
"""
import cuda_kernels as kernels
import numpy as np
import pytest
from cuda_common import alone, in_simulator
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow

sizes = st.integers(1, 40)
few = settings(max_examples=8)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("name", ["naive", "tiled"])
@few
@given(sizes, sizes, sizes)
def test_sgemm(name, m, n, k):
    a, b, c = normal(m, k), normal(k, n, seed=1), np.zeros((m, n), np.float32)
    flow.cuda.kernel(kernels.SGEMM)(name, (-(-n // 16), -(-m // 16)), (16, 16))(a, b, c, m, n, k)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)


@few
@given(st.integers(1, 5), st.integers(1, 300), st.sampled_from([32, 96, 256]))
def test_row_sums_by_shuffles(rows, cols, threads):
    x, out = normal(rows, cols), np.zeros(rows, np.float32)
    flow.cuda.kernel(kernels.ROWS)("row_sum", rows, threads, shared=128)(x, out, cols)
    np.testing.assert_allclose(out, x.sum(1), rtol=1e-4, atol=1e-4)


@few
@given(st.integers(1, 5), st.integers(1, 300), st.sampled_from([32, 96, 256]))
def test_softmax(rows, cols, threads):
    x, y = normal(rows, cols), np.zeros((rows, cols), np.float32)
    flow.cuda.kernel(kernels.ROWS)("softmax", rows, threads)(x, y, cols)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-4, atol=1e-6)


@few
@given(st.integers(0, 3000), st.integers(1, 64))
def test_histogram_with_atomics(n, nb):
    x, bins = np.random.default_rng(0).integers(0, nb, max(n, 1), dtype=np.int32), np.zeros(nb, np.uint32)
    flow.cuda.kernel(kernels.HISTOGRAM)("histogram", 3, 64, shared=4 * nb)(x, bins, n, nb)
    np.testing.assert_array_equal(bins, np.bincount(x[:n], minlength=nb))


@pytest.mark.parametrize("pad", [0, 1])
@few
@given(st.integers(1, 70), st.integers(1, 70))
def test_transpose_of_a_template(pad, rows, cols):
    x, y = normal(rows, cols), np.zeros((cols, rows), np.float32)
    flow.cuda.kernel(kernels.TRANSPOSE)(f"transpose<{pad}>", (-(-cols // 32), -(-rows // 32)),
                                        (32, 32))(x, y, rows, cols)
    np.testing.assert_array_equal(y, x.T)


def test_the_last_block_adds_up():
    x, part, out = normal(1000), np.zeros(5, np.float32), np.zeros(1, np.float32)
    for _ in range(2):
        flow.cuda.kernel(kernels.LAST_BLOCK)("sum", 5, 64)(x, part, out, 1000)
        np.testing.assert_allclose(out[0], x.sum(), rtol=1e-4, atol=1e-4)


RUN_ALL = """
import numpy as np, flowedu as flow, cuda_kernels as kernels
x = np.random.default_rng(0).standard_normal((40, 40), dtype=np.float32)
c, s, y, t = np.zeros_like(x), np.zeros(40, np.float32), np.zeros_like(x), np.zeros_like(x)
flow.cuda.kernel(kernels.SGEMM)("tiled", (3, 3), (16, 16))(x, x, c, 40, 40, 40)
assert np.allclose(c, x @ x, atol=1e-4)
flow.cuda.kernel(kernels.ROWS)("row_sum", 40, 64, 128)(x, s, 40)
assert np.allclose(s, x.sum(1), atol=1e-4)
flow.cuda.kernel(kernels.ROWS)("softmax", 40, 64)(x, y, 40)
assert np.allclose(y.sum(1), 1, atol=1e-4)
flow.cuda.kernel(kernels.TRANSPOSE)("transpose<1>", (2, 2), (32, 32))(x, t, 40, 40)
assert (t == x.T).all()
bins = np.zeros(9, np.uint32)
flow.cuda.kernel(kernels.HISTOGRAM)("histogram", 3, 64, 36)(np.arange(900, dtype=np.int32) % 9, bins, 900, 9)
assert (bins == 100).all()
out = np.zeros(1, np.float32)
flow.cuda.kernel(kernels.LAST_BLOCK)("sum", 5, 64)(x, np.zeros(5, np.float32), out, 1600)
assert np.allclose(out, x.sum(), atol=1e-3)
order = np.zeros(8, np.int32)
flow.cuda.kernel('''__device__ int turn;
__global__ void k(int* order) { order[atomicAdd(&turn, 1)] = threadIdx.x; }''')("k", 1, 8)(order)
print(*order)
"""


@in_simulator
@pytest.mark.parametrize("checked", ["0", "1"])
def test_right_in_every_order(checked):
    """Correct kernels have right results and no report for any order of threads and blocks."""
    orders = {alone(RUN_ALL, FLOWEDU_CUDA_SEED=str(seed), FLOWEDU_CUDA_CHECK=checked) for seed in range(5)}
    assert "0 1 2 3 4 5 6 7\n" in orders and len(orders) > 2
    assert all(sorted(o.split()) == [*"01234567"] for o in orders)
