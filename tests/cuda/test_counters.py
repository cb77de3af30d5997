"""The counters of flow.cuda.profile against hand-computed values."""
import io

import cuda_kernels as kernels
import numpy as np
import pytest
from cuda_common import in_simulator

import flowedu as flow

pytestmark = in_simulator

COPY = """
__global__ void copy(const float* x, float* y, int stride) {
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * stride;
    y[i] = x[i];
}
__global__ void copy4(const float4* x, float4* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i];
}
__global__ void same(const float* x, float* y) { y[threadIdx.x] = x[0]; }"""


def counted(source, name, grid, block, *arguments, shared=0):
    text = io.StringIO()
    k = flow.cuda.kernel(source)(name, grid, block, shared)
    with flow.cuda.profile(text) as p:
        k(*arguments)
    assert name in text.getvalue() and "sectors/access" in text.getvalue()
    return p[name]


def f32(*shape):
    return np.ones(shape, np.float32)


@pytest.mark.parametrize("stride, sectors", [(1, 4), (2, 8), (8, 32), (16, 32)])
def test_sectors_of_a_copy(stride, sectors):
    """32 floats occupy 4 sectors of 32 bytes; every second float, 8 sectors; every eighth float, one sector
    each.
    """
    c = counted(COPY, "copy", 2, 64, f32(128 * stride), f32(128 * stride), stride)
    assert (c["global_loads"], c["global_stores"], c["launches"]) == (4, 4, 1)        # 2 blocks of 2 warps
    assert c["sectors"] == (4 + 4) * sectors and c["global_bytes"] == 2 * 128 * 4
    assert not any(c[n] for n in ("shared_loads", "shared_stores", "conflicts", "barriers", "atomics",
                                  "divergent"))


def test_wide_and_common_accesses():
    c = counted(COPY, "copy4", 1, 32, f32(128), f32(128))
    assert (c["global_loads"], c["global_stores"], c["sectors"], c["global_bytes"]) == (1, 1, 32, 1024)
    c = counted(COPY, "same", 1, 32, f32(1), f32(32))
    assert c["sectors"] == 1 + 4


@pytest.mark.parametrize("pad, conflicts", [(0, 32 * 31), (1, 0)])
def test_bank_conflicts_of_a_transpose(pad, conflicts):
    """A column of a 32x32 tile is in one bank, so each of 32 warps needs 32 accesses in place of 1; rows of
    33 floats avoid this.
    """
    c = counted(kernels.TRANSPOSE, f"transpose<{pad}>", 1, (32, 32), f32(32, 32), f32(32, 32), 32, 32)
    assert c["conflicts"] == conflicts and c["barriers"] == 1
    assert c["shared_loads"] == c["shared_stores"] == c["global_loads"] == c["global_stores"] == 32
    assert c["sectors"] == 64 * 4 and c["shared_bytes"] == 2 * 4096


def test_the_work_of_matrix_products():
    """For 32x32 matrices: naive, 32 warps load twice in each of 32 steps; tiled, 4 blocks of 8 warps load
    twice in each of 2 steps.
    """
    a = f32(32, 32)
    naive = counted(kernels.SGEMM, "naive", (1, 1), (32, 32), a, a, f32(32, 32), 32, 32, 32)
    assert naive["global_loads"] == 32 * 2 * 32 and naive["global_stores"] == 32 and naive["divergent"] == 0
    tiled = counted(kernels.SGEMM, "tiled", (2, 2), (16, 16), a, a, f32(32, 32), 32, 32, 32)
    assert tiled["global_loads"] == 4 * 8 * 2 * 2 and tiled["barriers"] == 4 * 2 * 2
    assert tiled["shared_stores"] == 4 * 8 * 2 * 2 and tiled["shared_loads"] == 4 * 8 * 2 * 16 * 2


def test_atomics_and_divergence():
    source = """
__global__ void k(int* y, int n) {
    if (threadIdx.x < n) atomicAdd(&y[0], 1);
    for (int i = 0; i < (threadIdx.x < 16 ? 2 : 3); ++i) atomicAdd(&y[1], 1);
}"""
    y = np.zeros(2, np.int32)
    assert counted(source, "k", 1, 64, y, 40)["atomics"] == 40 + 64 * 3 - 16
    assert list(y) == [40, 64 * 3 - 16]
    assert counted(source, "k", 1, 64, y, 64)["divergent"] == 1           # the loop in the first warp
    assert counted(source, "k", 1, 64, y, 40)["divergent"] == 2           # and the `if` in the second warp
    # divergence between whole warps is not counted
    assert counted(source, "k", 1, 64, y, 32)["divergent"] == 1


def test_several_kernels_and_launches():
    k = flow.cuda.kernel(COPY)
    x = f32(64)
    with flow.cuda.profile(io.StringIO()) as p:
        k("copy", 1, 32)(x, x.copy(), 1)
        k("copy", 1, 32)(x, x.copy(), 1)
        k("same", 1, 32)(x, x.copy())
    assert {n: c["launches"] for n, c in p.kernels.items()} == {"copy": 2, "same": 1}
    assert len(str(p).splitlines()) == 3
