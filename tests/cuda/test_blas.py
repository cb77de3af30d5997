"""The cuBLAS option: a small fake library with the documented interface checks the arguments, using simulator
memory that the CPU can read. On a GPU, the same tests run with the real library if it is installed.
"""
import ctypes
import io
import os
import subprocess

import numpy as np
import pytest
from cuda_common import in_simulator
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from flowedu.core.ops.define import REGISTRY
from flowedu.cuda import backends, blas
from flowedu.errors import ArgumentError, DTypeError, KernelError, UnsupportedError

pytestmark = in_simulator

FAKE = r"""
#include <stdlib.h>
int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t size);
typedef struct { void *stream; int mode; } Handle;
int products, mode, fails;
int cublasCreate_v2(Handle **h) { *h = calloc(1, sizeof(Handle)); return 0; }
int cublasSetStream_v2(Handle *h, void *stream) { h->stream = stream; return 0; }
int cublasSetMathMode(Handle *h, int to) { mode = h->mode = to; return 0; }

#define GEMM(T, one, many)                                                                                   \
    int one(Handle *h, int ta, int tb, int m, int n, int k, const T *alpha, const T *a, int lda, const T *b, int ldb, \
            const T *beta, T *c, int ldc) {                                                                  \
        if (fails) return 13;                                                                                \
        if (m < 0 || n < 0 || k < 0 || lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m) return 7;        \
        products++;                                                                                          \
        for (int j = 0; j < n; j++)                                                                          \
            for (int i = 0; i < m; i++) {                                                                    \
                double sum = 0;                                                                              \
                for (int p = 0; p < k; p++)                                                                  \
                    sum += (double)a[ta ? p + (long)i * lda : i + (long)p * lda] *                           \
                           b[tb ? j + (long)p * ldb : p + (long)j * ldb];                                    \
                T *to = c + i + (long)j * ldc;                                                               \
                const T v = (T)(*alpha * sum + (*beta == 0 ? 0 : *beta * *to));                              \
                cuMemcpyHtoD_v2((unsigned long long)to, &v, sizeof v);     /* the simulator sees it written */ \
            }                                                                                                \
        return 0;                                                                                            \
    }                                                                                                        \
    int many(Handle *h, int ta, int tb, int m, int n, int k, const T *alpha, const T *a, int lda, long long sa, \
             const T *b, int ldb, long long sb, const T *beta, T *c, int ldc, long long sc, int count) {     \
        int status = 0;                                                                                      \
        for (int i = 0; i < count && !status; i++)                                                           \
            status = one(h, ta, tb, m, n, k, alpha, a + i * sa, lda, b + i * sb, ldb, beta, c + i * sc, ldc); \
        return status;                                                                                       \
    }
GEMM(float, cublasSgemm_v2, cublasSgemmStridedBatched)
GEMM(double, cublasDgemm_v2, cublasDgemmStridedBatched)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Compile the fake library and return its path."""
    folder = tmp_path_factory.mktemp("blas")
    (folder / "fake.c").write_text(FAKE, encoding="utf-8")
    subprocess.run([*os.environ.get("CC", "gcc").split(), "-O1", "-shared", "-fPIC", "fake.c", "-o",
                    "libfake.so"],
                   cwd=folder, check=True)
    return str(folder / "libfake.so")


@pytest.fixture
def chosen(library, monkeypatch):
    """Select cuBLAS and return the fake library, which records its calls."""
    monkeypatch.setenv("FLOWEDU_CUBLAS", library)
    monkeypatch.setattr(blas, "_library", None)
    monkeypatch.setattr(blas, "_handles", {})
    assert flow.backends.cuda.preferred_blas_library() == "flowedu"
    assert flow.backends.cuda.preferred_blas_library("cublas") == "cublas"
    yield ctypes.CDLL(library)
    assert flow.backends.cuda.preferred_blas_library("default") == "flowedu"


def number(lib, name):
    return ctypes.c_int.in_dll(lib, name)


def matrix(rng, rows, cols, dtype, layout):
    """Create a matrix on the CPU and on cuda: row-major, column-major, or the inner part of a larger matrix
    of either order.
    """
    a = rng.standard_normal((rows, cols)).astype(dtype)
    room = np.zeros((rows + 3, cols + 2) if layout < 4 else (cols + 3, rows + 2), dtype)
    inner = room[1:1 + rows, :cols] if layout < 4 else room[1:1 + cols, :rows].T
    inner[...] = a
    if layout % 4 == 0:
        return flow.tensor(a), flow.tensor(a.T.copy()).cuda().t() if layout else flow.tensor(a).cuda()
    there = flow.tensor(room).cuda()
    return flow.tensor(a), there[1:1 + rows, :cols] if layout < 4 else there[1:1 + cols, :rows].t()


sizes = st.integers(1, 6)


@settings(max_examples=60)
@given(m=sizes, k=sizes, n=sizes, layouts=st.tuples(*[st.sampled_from([0, 1, 4, 5])] * 2),
       seed=st.integers(0, 99), dtype=st.sampled_from([np.float32, np.float64]))
def test_matrices_of_any_layout(library, m, k, n, layouts, seed, dtype):
    rng = np.random.default_rng(seed)
    (a, x), (b, y) = matrix(rng, m, k, dtype, layouts[0]), matrix(rng, k, n, dtype, layouts[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLOWEDU_CUBLAS", library)
        patch.setattr(blas, "_library", None)
        patch.setattr(blas, "_handles", {})
        flow.backends.cuda.preferred_blas_library("cublas")
        try:
            asked = number(ctypes.CDLL(library), "products")
            before = asked.value
            for _ in range(2):                            # the second run reuses the recorded launch
                np.testing.assert_allclose((x @ y).cpu().numpy(), (a @ b).numpy(), rtol=1e-5, atol=1e-5)
            assert asked.value == before + 2
        finally:
            flow.backends.cuda.preferred_blas_library("default")
    np.testing.assert_allclose((x @ y).cpu().numpy(), (a @ b).numpy(), rtol=1e-5, atol=1e-5)
    assert asked.value == before + 2


@pytest.mark.parametrize("left, right, many", [((3, 4, 5), (3, 5, 2), 3), ((3, 4, 5), (5, 2), 1),
                                               ((3, 4, 5), (1, 5, 2), 1),
                                               ((2, 3, 4, 5), (2, 3, 5, 6), 6),
                                               ((2, 1, 4, 5), (1, 3, 5, 6), 6),
                                               ((4, 0), (0, 3), 0), ((0, 4), (4, 3), 0),
                                               ((1, 4, 5), (3, 5, 2), 3)])
def test_batches(chosen, left, right, many):
    """Batches with constant strides take one call; others, and products with an inner size of zero, use our
    own kernel.
    """
    rng = np.random.default_rng(0)
    a, b = flow.tensor(rng.standard_normal(left)), flow.tensor(rng.standard_normal(right))
    before = number(chosen, "products").value
    got = a.cuda() @ b.cuda()
    assert number(chosen, "products").value == before + many
    np.testing.assert_allclose(got.cpu().numpy(), (a @ b).numpy(), rtol=1e-12, atol=1e-12)
    if len(left) == 4 and left[1] > 1:                    # swapped batch axes have two different strides
        before = number(chosen, "products").value
        got = REGISTRY["matmul"](a.cuda().transpose(0, 1), b.cuda().transpose(0, 1).contiguous())
        assert number(chosen, "products").value == before
        np.testing.assert_allclose(got.cpu().numpy(), (a @ b).numpy().swapaxes(0, 1), rtol=1e-12, atol=1e-12)


def test_gradients_and_streams(chosen):
    start, found = np.random.default_rng(0).standard_normal((4, 3)), []
    for place in ("cuda", "cpu"):
        w = flow.tensor(start, device=place, requires_grad=True)
        s = flow.cuda.Stream()
        with flow.cuda.stream(s):
            ((w @ w.t()) ** 2).sum().backward()
        s.synchronize()
        found.append(w.grad.cpu().numpy())
    np.testing.assert_allclose(*found, rtol=1e-10)


def test_tf32_is_requested(chosen):
    a = flow.ones(2, 2).cuda()
    for on, mode in ((False, 0), (True, 3)):
        flow.backends.cuda.matmul.allow_tf32 = on
        a @ a
        assert number(chosen, "mode").value == mode and flow.backends.cuda.matmul.allow_tf32 is on
    flow.backends.cuda.matmul.allow_tf32 = False
    with pytest.raises(DTypeError, match="not a bool"):
        flow.backends.cuda.matmul.allow_tf32 = 1


def test_errors_of_cublas_are_reported(chosen):
    a = flow.ones(2, 2).cuda()
    number(chosen, "fails").value = 1
    try:
        with pytest.raises(KernelError, match=r"cublasSgemm_v2 failed(.|\n)*status 13"):
            a @ a
    finally:
        number(chosen, "fails").value = 0
    assert (a @ a).cpu().numpy().tolist() == [[2, 2], [2, 2]]


def test_a_missing_library_is_reported(monkeypatch):
    monkeypatch.setattr(blas, "_library", None)
    monkeypatch.delenv("FLOWEDU_CUBLAS", raising=False)
    choose = flow.backends.cuda.preferred_blas_library
    with pytest.raises(UnsupportedError, match="the simulator runs what is compiled from CUDA C"):
        choose("cublas")
    for path, words in (("/no/such/lib.so", "is not installed"), ("libm.so.6", "is another library")):
        monkeypatch.setenv("FLOWEDU_CUBLAS", path)
        with pytest.raises(UnsupportedError, match=words):
            choose("cublas")
    with pytest.raises(ArgumentError, match="there is no such library"):
        choose("cutlass")
    assert choose() == "flowedu"


# Tensor cores, which the simulator emulates with shuffles.
def rounded(a):
    """Round float32 values to TF32."""
    return ((a.view(np.uint32) + 0x1000) & ~np.uint32(0x1FFF)).view(np.float32)


@pytest.fixture
def tf32():
    flow.backends.cuda.matmul.allow_tf32 = True
    yield
    flow.backends.cuda.matmul.allow_tf32 = False


@pytest.mark.parametrize("m, n, k", [(64, 64, 16), (65, 63, 17), (130, 70, 40), (1, 3, 8), (16, 8, 8),
                                     (2, 5, 0)])
@pytest.mark.parametrize("flip", [(False, False), (True, False), (False, True), (True, True)])
def test_products_of_tensor_cores(tf32, m, n, k, flip):
    """The results are the products of the rounded operands, with the precision of float32."""
    rng = np.random.default_rng(m)
    a, b = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32)
    x, y = (flow.tensor(v.T.copy()).cuda().t() if f else flow.tensor(v).cuda() for v, f in zip((a, b), flip))
    want = rounded(a).astype(np.float64) @ rounded(b).astype(np.float64)
    got = (x @ y).cpu().numpy()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * max(k, 1) ** 0.5)
    if k > 8:
        assert np.abs(got - a.astype(np.float64) @ b).max() > 1e-4          # the operands were rounded
        flow.backends.cuda.matmul.allow_tf32 = False
        np.testing.assert_allclose((x @ y).cpu().numpy(), a.astype(np.float64) @ b, rtol=1e-4,
                                   atol=1e-5 * k ** 0.5)


def test_batches_and_doubles(tf32):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((3, 20, 30), dtype=np.float32),
            rng.standard_normal((3, 30, 10), dtype=np.float32))
    got = (flow.tensor(a).cuda() @ flow.tensor(b).cuda()).cpu().numpy()
    np.testing.assert_allclose(got, rounded(a).astype(np.float64) @ rounded(b).astype(np.float64), rtol=1e-4,
                               atol=1e-4)
    got = (flow.tensor(a).double().cuda() @ flow.tensor(b).double().cuda()).cpu().numpy()
    np.testing.assert_allclose(got, a.astype(np.float64) @ b, rtol=1e-12, atol=1e-12)


def test_lanes_read_shared_memory_without_conflicts(tf32):
    """This includes operands whose layout lets a strip be written without conflicts."""
    x = flow.ones(64, 64).cuda()
    with flow.cuda.profile(io.StringIO()) as p:
        x.t() @ x
    assert p["matmul_tf32"]["conflicts"] == 0 and p["matmul_tf32"]["barriers"] == 2 * 64 // 16


def test_an_old_gpu_does_not_use_tensor_cores(monkeypatch):
    monkeypatch.setattr(backends, "get_device_capability", lambda: (7, 5))
    with pytest.raises(UnsupportedError, match=r"no tensor cores for TF32(.|\n)*sm_75"):
        flow.backends.cuda.matmul.allow_tf32 = True
    assert flow.backends.cuda.matmul.allow_tf32 is False
