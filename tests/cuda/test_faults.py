"""Faults that a GPU hides, one of each kind: the report names kernel, block, thread and line, and a mended kernel, in five
orders of threads, gives no report."""
import numpy as np
import pytest

from common import faulty, in_simulator, line_with

pytestmark = in_simulator
f32 = lambda *shape: np.ones(shape, np.float32)

# name: (source, grid, block, arguments, the words of the line at fault, what the fault says of itself)
FAULTS = {
    "barrier some threads skip": ("""
__global__ void k(float* x) {
    if (threadIdx.x < 48)
        __syncthreads();
    x[threadIdx.x] = 1;
}""", 1, 64, [f32(64)], "__syncthreads", dict(kind="diverged", thread=(0, 0, 0))),
    "barrier after some have left": ("""
__global__ void k(float* x, int n) {
    if (threadIdx.x >= n) return;
    x[threadIdx.x] = 1;
    __syncthreads();
}""", 1, 64, [f32(64), 40], "__syncthreads", dict(kind="diverged", other_thread=(40, 0, 0))),
    "two barriers": ("""
__global__ void k(float* x) {
    if (threadIdx.x % 2) {
        __syncthreads();  // odd
    } else {
        x[threadIdx.x] = 1;
        __syncthreads();
    }
}""", 1, 64, [f32(64)], "// odd", dict(kind="diverged", thread=(1, 0, 0))),
    "beyond the end": ("""
__global__ void k(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) y[i] = 2;
    float v = x[0];
}""", 4, 32, [f32(10), f32(100), 100], "y[i] = 2", dict(kind="outside", block=(3, 0, 0), thread=(4, 0, 0), parameter="y")),
    "before the beginning": ("""
__global__ void k(const float* x, float* y) {
    y[threadIdx.x] =
        x[(int)threadIdx.x - 1];
}""", 1, 32, [f32(32), f32(32)], "x[(int)", dict(kind="outside", thread=(0, 0, 0), parameter="x")),
    "atomic beyond the end": ("""
__global__ void k(int* bins) { atomicAdd(&bins[threadIdx.x], 1); }""", 1, 9, [np.zeros(8, np.int32)], "atomicAdd",
        dict(kind="outside", thread=(8, 0, 0), parameter="bins")),
    "beyond a shared array": ("""
__global__ void k(float* y) {
    __shared__ float a[32];
    __shared__ float b[32];
    b[threadIdx.x] = 1;
    a[threadIdx.x + threadIdx.x / 31] = 1;
    y[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}""", 1, 32, [f32(32)], "a[threadIdx.x + threadIdx", dict(kind="outside", thread=(31, 0, 0), parameter="a")),
    "global memory never written": ("""
__global__ void k(float* y, float* z) {
    if (threadIdx.x != 7) y[threadIdx.x] = 1;
    z[threadIdx.x] = y[threadIdx.x];
}""", 1, 32, "fresh", "z[threadIdx.x]", dict(kind="unwritten", thread=(7, 0, 0), parameter="y")),
    "shared memory never written": ("""
__global__ void k(float* y) {
    __shared__ float s[64];
    if (threadIdx.x < 32) s[threadIdx.x] = 1;
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x];
}""", 2, 64, [f32(64)], "= s[", dict(kind="unwritten", thread=(32, 0, 0), parameter="s")),
    "read before the barrier": ("""
__global__ void k(float* y) {
    __shared__ float s[64];
    s[threadIdx.x] = threadIdx.x;
    y[threadIdx.x] = s[threadIdx.x ^ 1];
}""", 1, 64, [f32(64)], "y[thr", dict(kind="unwritten", parameter="s")),
    "race of a write": ("""
__global__ void k(float* y) {
    __shared__ float s[64];
    s[threadIdx.x] = 1;
    __syncthreads();
    y[threadIdx.x] = s[63 - threadIdx.x];
    s[threadIdx.x] = 2;
}""", 1, 64, [f32(64)], None, dict(kind="race", parameter="s")),
    "race in global memory": ("""
__global__ void k(float* y) {
    y[blockIdx.x] += 1;
}""", 1, 64, [f32(1)], "+= 1", dict(kind="race", parameter="y")),
    "race of blocks": ("""
__global__ void k(float* y) {
    if (threadIdx.x == 0) y[0] = blockIdx.x;
}""", 2, 32, [f32(1)], "y[0]", dict(kind="race", parameter="y", block=(1, 0, 0))),
    "race with an atomic": ("""
__global__ void k(int* y) {
    __shared__ int n;
    if (threadIdx.x == 0) n = 0;
    atomicAdd(&n, 1);
    __syncthreads();
    if (threadIdx.x == 0) y[0] = n;
}""", 1, 32, [np.zeros(1, np.int32)], "atomicAdd", dict(kind="race", parameter="n")),
    "too late for the sum": ("""
__global__ void k(int* y) {
    __shared__ int n;
    if (threadIdx.x == 0) n = 0;
    __syncthreads();
    atomicAdd(&n, 1);
    if (threadIdx.x == 0) y[0] = n;
}""", 1, 32, [np.zeros(1, np.int32)], "y[0] = n", dict(kind="race", parameter="n")),
    "warp without __syncwarp": ("""
__global__ void k(float* y) {
    __shared__ float s[32];
    s[threadIdx.x] = y[threadIdx.x];
    __syncwarp();
    if (threadIdx.x < 16) s[threadIdx.x] += s[threadIdx.x + 16];
    if (threadIdx.x < 8) s[threadIdx.x] += s[threadIdx.x + 8];  // here
    y[threadIdx.x] = s[threadIdx.x];
}""", 1, 32, [f32(32)], "// here", dict(kind="race", parameter="s")),
    "lanes missing": ("""
__global__ void k(float* y) {
    float v = y[threadIdx.x];
    if (threadIdx.x < 16) v += __shfl_down_sync(0xffffffffu, v, 8);
    y[threadIdx.x] = v;
}""", 1, 32, [f32(32)], "__shfl", dict(kind="lanes missing", thread=(0, 0, 0), other_thread=(16, 0, 0))),
    "lane not named": ("""
__global__ void k(int* y) {
    y[threadIdx.x] = __ballot_sync(0xffffu, 1);
}""", 1, 32, [np.zeros(32, np.int32)], "__ballot", dict(kind="lanes missing", thread=(16, 0, 0))),
    "misaligned float4": ("""
__global__ void k(const float* x, float4* y) {
    y[0] = *(const float4*)(x + 1);
}""", 1, 1, [f32(8), f32(8)], "(x + 1)", dict(kind="misaligned", parameter="x")),
    "constant memory": ("""
__constant__ float c[4];
__global__ void k(float* y) { y[0] = c[0];
    ((float*)c)[1] = 2; }""", 1, 1, [f32(1)], "= 2", dict(kind="read only")),
    "assert": ("""
__global__ void k(int n) {
    assert(n > 3);
}""", 1, 1, [2], "assert", dict(kind="trapped")),
    "null pointer": ("""
__global__ void k(float* y) { y[3] = 1; }""", 1, 1, [None], "y[3]", dict(kind="outside")),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_reported(name):
    source, grid, block, arguments, words, said = FAULTS[name]
    if arguments == "fresh":
        from pycuda import gpuarray
        arguments = [gpuarray.empty(32, np.float32), gpuarray.zeros(32, np.float32)]
    e = faulty(source, "k", grid, block, *arguments)
    for what, value in said.items():
        assert getattr(e, what) == value, e
    assert e.kernel == "k" and e.problem.startswith("k: thread (")
    if words is not None:
        assert line_with(source, words) in (e.line, e.other_line), e
    assert e.source in source and f"kernel.cu:{e.line}" in str(e)
