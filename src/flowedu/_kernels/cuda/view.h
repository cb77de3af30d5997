/* Definitions of all CUDA kernels: views of arrays (the struct of ../core/abi.h, passed by value), the element a thread works
 * on, and the report of an index out of range.
 *
 * `T` is the element type that a file is compiled for. `Wide` is the type of sums of T: double for floating point, 64 bits
 * for integers. Both are declared above the first line of the file (flowedu/cuda/modules.py). */
#ifndef FLOWEDU_CUDA_VIEW_H
#define FLOWEDU_CUDA_VIEW_H
#include "abi.h"

typedef int64_t index_t;   /* sizes, strides, offsets: an array may have more than 2^31 elements */
typedef fe_view View;

/* for (EACH(i, n)): loop over this thread's elements. Together the threads cover all n, whatever their
 * number. */
#define EACH(i, n) index_t i = thread_index(), i##_end = (n); i < i##_end; i += thread_count()
__device__ __forceinline__ index_t thread_index() { return (index_t)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ index_t thread_count() { return (index_t)gridDim.x * blockDim.x; }

/* The same for whole blocks, for example over rows of a matrix. */
#define EACH_BLOCK(i, n) index_t i = blockIdx.x, i##_end = (n); i < i##_end; i += gridDim.x

/* Several operands over the same axes; axes with even steps in all operands are merged
 * (flowedu/cuda/walk.py). */
template <int N> struct Walk {
    index_t ndim, small;           /* small: 32 bits are enough to count the elements, and divide faster */
    index_t shape[FE_MAX_DIM], stride[N][FE_MAX_DIM];
};

template <int N, class Count> __device__ __forceinline__ void offsets_as(const Walk<N> &w, Count i, index_t *at) {
    for (int d = (int)w.ndim - 1; d > 0; d--) {
        const Count rows = i / (Count)w.shape[d], here = i - rows * (Count)w.shape[d];
#pragma unroll
        for (int k = 0; k < N; k++) at[k] += here * w.stride[k][d];
        i = rows;
    }
#pragma unroll
    for (int k = 0; k < N; k++) at[k] += i * w.stride[k][0];
}

/* at[k]: the offset of element i, counted in row-major order, in operand k. */
template <int N> __device__ __forceinline__ void offsets(const Walk<N> &w, index_t i, index_t *at) {
#pragma unroll
    for (int k = 0; k < N; k++) at[k] = 0;
    if (w.small) offsets_as<N, uint32_t>(w, (uint32_t)i, at);
    else offsets_as<N, index_t>(w, i, at);
}

/* Element i of a contiguous array of indices or labels of any integer type. */
__device__ __forceinline__ index_t index_at(const View &v, index_t i) {
    if (v.dtype == FE_I64) return ((const int64_t *)v.data)[i];
    if (v.dtype == FE_I32) return ((const int32_t *)v.data)[i];
    if (v.dtype == FE_I16) return ((const int16_t *)v.data)[i];
    return v.dtype == FE_I8 ? (index_t)((const int8_t *)v.data)[i] : (index_t)((const uint8_t *)v.data)[i];
}

/* v kept inside [low, high]; NaN stays NaN. */
template <class N> __device__ __forceinline__ N clipped(N v, N low, N high) { return v < low ? low : v > high ? high : v; }

/* The error report of a kernel: an out-of-range element is skipped, and the host checks this record when it
 * synchronizes. The first report is kept. */
struct Fault { index_t status, detail; };
enum { SINGULAR = 3,                     /* not in abi.h; `detail`: number of the matrix */
       CHECK = 16 };                     /* plus the number of a check; `detail`: bits of the value */

__device__ __forceinline__ void report(Fault *f, int status, index_t detail) {
    if (atomicCAS((unsigned long long *)&f->status, 0ull, (unsigned long long)status) == 0) f->detail = detail;
}
__device__ __forceinline__ void bad_index(Fault *f, index_t value) { report(f, FE_BAD_INDEX, value); }
__device__ __forceinline__ void singular(Fault *f, index_t matrix) { report(f, SINGULAR, matrix); }

__device__ __forceinline__ void out_of_bounds(Fault *f, index_t check, double value) {
    report(f, CHECK + (int)check, __double_as_longlong(value));
}

__device__ __forceinline__ bool in_range(index_t i, index_t size, Fault *f) {
    if (i >= 0 && i < size) return true;
    bad_index(f, i);
    return false;
}
#endif
