"""CUDA C features: warp functions, atomics, vector types, halves, intrinsics, and module variables, against
NumPy or hand-computed values; nvcc must also accept every source.
"""
import cuda_kernels as kernels
import numpy as np
import pytest
from cuda_common import in_simulator

import flowedu as flow
from flowedu.cuda.source import cubin, prepared
from flowedu.cuda.toolkit import toolkit

WARP = """
__global__ void warp(const int* x, int* out) {
    int lane = threadIdx.x, v = x[lane];
    unsigned all = 0xffffffffu;
    out[0 * 32 + lane] = __shfl_sync(all, v, 3);
    out[1 * 32 + lane] = __shfl_up_sync(all, v, 2);
    out[2 * 32 + lane] = __shfl_down_sync(all, v, 2, 8);
    out[3 * 32 + lane] = __shfl_xor_sync(all, v, 5);
    out[4 * 32 + lane] = __shfl_sync(all, v, lane + 1, 4);
    out[5 * 32 + lane] = __ballot_sync(all, v % 2);
    out[6 * 32 + lane] = __any_sync(all, v == 7) + 2 * __all_sync(all, v >= 0);
    out[7 * 32 + lane] = __match_any_sync(all, v / 8);
    if (lane < 16) out[8 * 32 + lane] = __shfl_down_sync(0xffffu, v, 1, 16);
    else out[8 * 32 + lane] = __reduce_add_sync(0xffff0000u, v);
    double d = __shfl_xor_sync(all, v + 0.5, 1);
    out[9 * 32 + lane] = (int)(2 * d);
    int same;
    out[10 * 32 + lane] = __match_all_sync(all, lane / 32, &same) == all && same;
    out[11 * 32 + lane] = __syncthreads_count(v % 4 == 0) + 100 * __syncthreads_and(v >= 0);
    out[11 * 32 + lane] += 1000 * __syncthreads_or(v > 99);
}"""


def test_warp_functions():
    x, out = np.arange(32, dtype=np.int32), np.zeros((12, 32), np.int32)
    flow.cuda.kernel(WARP)("warp", 1, 32)(x, out)
    lane = np.arange(32)

    def within(d, w):
        return np.where(lane % w + d < w, lane + d, lane)

    expected = [np.full(32, 3), np.where(lane < 2, lane, lane - 2), within(2, 8), lane ^ 5,
                lane // 4 * 4 + (lane + 1) % 4,
                np.full(32, 0xaaaaaaaa, np.uint32).view(np.int32), np.full(32, 3),
                np.array([0xff << (i // 8 * 8) for i in lane], np.uint32).view(np.int32),
                np.where(lane < 16, within(1, 16), lane[16:].sum()), 2 * (lane ^ 1) + 1, np.ones(32),
                np.full(32, 8 + 100)]
    for row, (got, wanted) in enumerate(zip(out, expected)):
        np.testing.assert_array_equal(got, wanted, err_msg=f"row {row}")


ATOMICS = """
template <class T> __device__ void all(T* y, T v) {
    atomicAdd(&y[0], v), atomicSub(&y[1], v), atomicMin(&y[2], v), atomicMax(&y[3], v), atomicAnd(&y[4], v);
    atomicOr(&y[5], v), atomicXor(&y[6], v);
}
__global__ void ints(int* y, unsigned int* u, unsigned long long* l) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    all<int>(y, i), all<unsigned int>(u, i);
    atomicInc(&u[7], 9u), atomicDec(&u[8], 9u);
    atomicAdd(&l[0], 1ull << 32), atomicMax(&l[1], (unsigned long long)i << 40);
    atomicCAS(&l[2], (unsigned long long)i, i + 1ull);
    if (i == 5) atomicExch(&y[7], 55);
}
__global__ void floats(float* y, double* d) {
    atomicAdd(y, 0.5f);
    atomicAdd(d, 0.25);
    unsigned int* bits = (unsigned int*)(y + 1);              // a sum by compare and swap, as before atomicAdd took floats
    unsigned int old = *(volatile unsigned int*)bits, was;
    do {
        was = old;
        old = atomicCAS(bits, was, __float_as_uint(__uint_as_float(was) + 1.0f));
    } while (old != was);
}
__device__ int mutex, counter;
__global__ void locked(int* out) {
    if (threadIdx.x % 32 == 0) {
        while (atomicCAS(&mutex, 0, 1) != 0) {}
        __threadfence();
        *(volatile int*)&counter = *(volatile int*)&counter + 1;
        __threadfence();
        atomicExch(&mutex, 0);
    }
    __syncthreads();
    if (threadIdx.x == 0) *out = *(volatile int*)&counter;
}"""


def test_atomics_of_all_kinds():
    k, n = flow.cuda.kernel(ATOMICS), 96
    y, u, l = np.full(8, 7, np.int32), np.full(9, 7, np.uint32), np.zeros(3, np.uint64)
    k("ints", 3, 32)(y, u, l)
    i = np.arange(n)
    both = [7 + i.sum(), 7 - i.sum(), 0, 95, 0, 7 | np.bitwise_or.reduce(i), 7 ^ np.bitwise_xor.reduce(i)]
    assert y[:7].tolist() == both and y[7] == 55
    assert u[:7].view(np.int32).tolist() == both and u[7] == (7 + n) % 10 and u[8] == (7 - n) % 10
    assert l[0] == n << 32 and l[1] == 95 << 40 and l[2] >= 1
    f, d = np.zeros(2, np.float32), np.zeros(1)
    k("floats", 2, 64)(f, d)
    assert f.tolist() == [64.0, 128.0] and d[0] == 32
    out = np.zeros(1, np.int32)
    k("locked", 1, 256)(out)
    assert out[0] == 8


TYPES = """
#include <cuda_fp16.h>
struct __align__(8) item { float weight; short id; };
__constant__ float table[3] = {1, 2, 4};
__device__ float4 total;
__device__ int calls = 0;
template <typename T, int N> struct Row {
    T v[N];
    __device__ T sum() const { T s = 0; for (int i = 0; i < N; ++i) s += v[i]; return s; }
};
__global__ void types(const float4* x, double2* d, float3* f3, uchar4* c, __half* h, item* items, float* out) {
    extern __shared__ __align__(16) unsigned char raw[];
    float4* part = (float4*)raw;
    int i = threadIdx.x;
    part[i] = x[i];
    __syncthreads();
    float4 v = part[blockDim.x - 1 - i];
    v.x += table[i % 3];
    d[i] = make_double2(v.x, v.y);
    f3[i] = make_float3(v.z, v.w, i);
    c[i] = make_uchar4(i, i + 1, i + 2, 255);
    h[i] = __float2half(v.y);
    h[i] = __hadd(h[i], __float2half(0.5f));
    items[i].weight = __half2float(h[i]), items[i].id = (short)-i;
    if (i == 0) total = v, calls += 1;
    __syncthreads();
    Row<float, 3> row = {{1, 2, (float)i}};
    out[i] = row.sum() + total.w + (float)sizeof(item) + (float)calls;
}"""


@pytest.mark.parametrize("words", ["__shared__ __align__(16)", "__align__(16) __shared__"])
def test_an_array_in_shared_memory_is_aligned(words):
    source = f"""__global__ void k(const float4* x, float* y) {{
        __shared__ char before[4];
        {words} float own[32];
        before[threadIdx.x] = 0;
        *(float4*)&own[4 * threadIdx.x] = x[threadIdx.x];
        y[threadIdx.x] = own[4 * threadIdx.x + 2];
    }}"""
    y = np.zeros(4, np.float32)
    flow.cuda.kernel(source)("k", 1, 4)(np.arange(16, dtype=np.float32), y)
    assert y.tolist() == [2, 6, 10, 14]


def test_vectors_halves_structs_and_variables_of_the_module():
    n = 8
    x = np.random.default_rng(0).standard_normal((n, 4), dtype=np.float32)
    d = np.zeros((n, 2))
    f3 = np.zeros((n, 3), np.float32)
    c = np.zeros((n, 4), np.uint8)
    h = np.zeros(n, np.float16)
    items, out = np.zeros(n, np.dtype([("weight", "f4"), ("id", "i2"), ("", "V2")])), np.zeros(n, np.float32)
    k = flow.cuda.kernel(TYPES)("types", 1, n, shared=16 * n)
    for calls in (1, 2):
        k(x, d, f3, c, h, items, out)
        v = x[::-1] + np.array([[1, 0, 0, 0], [2, 0, 0, 0], [4, 0, 0, 0]], np.float32)[np.arange(n) % 3]
        np.testing.assert_allclose(d, v[:, :2], rtol=1e-6)
        np.testing.assert_allclose(f3, np.c_[v[:, 2:], np.arange(n)], rtol=1e-6)
        assert c[3].tolist() == [3, 4, 5, 255]
        np.testing.assert_array_equal(h, (v[:, 1].astype(np.float16) + np.float16(0.5)))
        np.testing.assert_array_equal(items["weight"], h.astype(np.float32))
        assert items["id"].tolist() == [-i for i in range(n)]
        np.testing.assert_allclose(out, 3 + np.arange(n) + v[0, 3] + 8 + calls, rtol=1e-6)


NUMBERS = """
__global__ void numbers(const float* x, float* y, int* i) {
    float v = x[threadIdx.x];
    float* o = y + threadIdx.x * 12;
    o[0] = __expf(v), o[1] = rsqrtf(v), o[2] = __fmaf_rn(v, 2.0f, 1.0f), o[3] = fminf(v, 1.0f), o[4] = fmaxf(v, 1.0f);
    o[5] = __fdividef(1.0f, v), o[6] = __logf(v), o[7] = powf(v, 3.0f), o[8] = min(v, 2.0f) + max(1, 2);
    o[9] = __ldg(x + threadIdx.x);
    o[10] = __saturatef(v - 1.0f), o[11] = tanhf(v) + erff(v) + log1pf(v) + fabsf(-v) + floorf(v) + ::sqrtf(v);
    if (threadIdx.x == 0) {
        i[0] = __popc(0xf0f0u), i[1] = __ffs(8), i[2] = __clz(1), i[3] = __float2int_rn(2.5f), i[4] = __float2int_rz(-2.9f);
        i[5] = __brev(1u) >> 31, i[6] = __mulhi(1 << 20, 1 << 20), i[7] = __float_as_int(1.0f), i[8] = __popcll(~0ull);
        i[9] = __float2int_rn(1e20f), i[10] = __byte_perm(0x33221100, 0x77665544, 0x7410) == 0x77441100;
        i[11] = clock64() > 0;
        i[12] = __umulhi(1u << 31, 4u), i[13] = warpSize, i[14] = __clzll(1ll), i[15] = __ffsll(1ll << 40);
    }
}"""


def test_functions_of_numbers():
    from math import erf

    x = np.array([0.5, 1.25, 2.0, 3.5], np.float32)
    y, i = np.zeros((4, 12), np.float32), np.zeros(16, np.int32)
    flow.cuda.kernel(NUMBERS)("numbers", 1, 4)(x, y, i)
    rest = np.tanh(x) + [erf(v) for v in x] + np.log1p(x) + x + np.floor(x) + np.sqrt(x)
    wanted = [np.exp(x), 1 / np.sqrt(x), 2 * x + 1, np.minimum(x, 1), np.maximum(x, 1), 1 / x,
              np.log(x), x ** 3, np.minimum(x, 2) + 2, x, np.clip(x - 1, 0, 1), rest]
    np.testing.assert_allclose(y, np.stack(wanted, 1), rtol=2e-5, atol=2e-6)
    assert i.tolist() == [8, 4, 31, 2, -2, 1, 256, 0x3f800000, 64, 2**31 - 1, 1, 1, 2, 32, 63, 41]


@in_simulator
def test_missing_lanes_and_uninitialized_memory_are_nan():
    from pycuda import gpuarray

    y = np.zeros(16, np.float32)
    k = flow.cuda.kernel("__global__ void f(float* y) { y[threadIdx.x] = __shfl_down_sync(0xffffffffu, "
                         "1.0f, 8); }")
    k("f", 1, 16)(y)
    assert y[:8].tolist() == [1.0] * 8 and np.isnan(y[8:]).all()
    assert np.isnan(gpuarray.empty(100, np.float32).get()).all()


SOURCES = [WARP, ATOMICS, TYPES, NUMBERS, kernels.SGEMM, kernels.ROWS, kernels.HISTOGRAM, kernels.TRANSPOSE,
           kernels.LAST_BLOCK]


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=lambda s: s.strip().split("\n")[0][:40])
def test_nvcc_accepts_the_same_sources(source):
    found = toolkit()
    assert found is not None and found.nvcc is not None, "tools/setup_cuda.py installs one"
    assert cubin(prepared(source), "sm_90").startswith(b"\x7fELF")


def test_a_large_struct_by_value():
    source = """
struct Table { long long n; float value[900]; };
__global__ void k(Table t, float *y) { for (int i = threadIdx.x; i < t.n; i += 32) y[i] = t.value[i]; }"""
    table = np.zeros((), np.dtype([("n", np.int64), ("value", np.float32, 900)]))
    table["n"], table["value"] = 900, np.arange(900)
    y = np.zeros(900, np.float32)
    flow.cuda.kernel(source)("k", 1, 32)(table[()], y)
    np.testing.assert_array_equal(y, np.arange(900))
