/* Indexed addition: the gradients of gather, and scatter_nd. The result is initially 0. Several elements may
 * be added to one position, in any order. An index out of range is reported, and its element is not added. */
#include "part.h"

__device__ __forceinline__ void add(float *p, float v) { atomicAdd(p, v); }
__device__ __forceinline__ void add(double *p, double v) { atomicAdd(p, v); }
__device__ __forceinline__ void add(int32_t *p, int32_t v) { atomicAdd(p, v); }
__device__ __forceinline__ void add(int64_t *p, int64_t v) { atomicAdd((unsigned long long *)p, (unsigned long long)v); }

extern "C" __global__ void gather_grad(index_t n, index_t indices, Part part, index_t inner, const T *dy, View index,
                                       T *dx, Fault *fault) {
    for (EACH(i, n)) {
        const index_t run = i / inner, outer = run / indices, k = index_at(index, run - outer * indices);
        if (here(k, part, fault)) add(dx + (outer * part.rows + k - part.first) * inner + i - run * inner, dy[i]);
    }
}

extern "C" __global__ void dim_gather_grad(index_t total, index_t n, Part part, index_t inner, const T *dy, View index,
                                           T *dx, Fault *fault) {
    for (EACH(i, total)) {
        const index_t k = index_at(index, i);
        if (here(k, part, fault)) add(dx + (i / (n * inner) * part.rows + k - part.first) * inner + i % inner, dy[i]);
    }
}

extern "C" __global__ void scatter_nd(index_t n, index_t inner, index_t k, const T *x, View index, View y, Fault *fault) {
    for (EACH(i, n)) {
        const index_t row = i / inner;
        index_t run = 0;
        bool good = true;
        for (index_t d = 0; d < k && good; d++) {
            const index_t j = index_at(index, row * k + d);
            good = in_range(j, y.shape[d], fault);
            run = run * y.shape[d] + j;
        }
        if (good) add((T *)y.data + run * inner + i - row * inner, x[i]);
    }
}
