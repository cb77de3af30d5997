/* gather, gather_nd, dim_gather and scatter_nd_update: kernels that only move elements, with T chosen by
 * size. An index out of range is reported, and its element is not moved. */
#include "part.h"

/* params (outer, part, inner); an index picks a run of `inner` neighbours. y (outer, indices, inner). */
extern "C" __global__ void gather(index_t n, index_t indices, Part part, index_t inner, const T *params, View index, T *y,
                                  Fault *fault) {
    for (EACH(i, n)) {
        const index_t run = i / inner, outer = run / indices, k = index_at(index, run - outer * indices);
        y[i] = here(k, part, fault) ? params[(outer * part.rows + k - part.first) * inner + i - run * inner] : (T)0;
    }
}

/* An index for every element: y (outer, n, inner) of x (outer, part, inner). */
extern "C" __global__ void dim_gather(index_t total, index_t n, Part part, index_t inner, const T *x, View index, T *y,
                                      Fault *fault) {
    for (EACH(i, total)) {
        const index_t k = index_at(index, i);
        y[i] = here(k, part, fault) ? x[(i / (n * inner) * part.rows + k - part.first) * inner + i % inner] : (T)0;
    }
}

/* Each row of `index` has an index for each of the leading axes of an array, and so selects a run; -1: out of
 * range. */
__device__ __forceinline__ index_t run_of(const View &v, const View &index, index_t row, index_t k, Fault *fault) {
    index_t found = 0;
    for (index_t d = 0; d < k; d++) {
        const index_t j = index_at(index, row * k + d);
        if (!in_range(j, v.shape[d], fault)) return -1;
        found = found * v.shape[d] + j;
    }
    return found;
}

extern "C" __global__ void gather_nd(index_t n, index_t inner, index_t k, View params, View index, T *y, Fault *fault) {
    for (EACH(i, n)) {
        const index_t row = i / inner, run = run_of(params, index, row, k, fault);
        y[i] = run < 0 ? (T)0 : ((const T *)params.data)[run * inner + i - row * inner];
    }
}

/* If several rows select one run, the last one wins: first each run gets the number of its last row
 * (initially -1), then that row is copied. */
extern "C" __global__ void scatter_nd_owners(index_t rows, index_t k, View y, View index, long long *owner, Fault *fault) {
    for (EACH(row, rows)) {
        const index_t run = run_of(y, index, row, k, fault);
        if (run >= 0) atomicMax(owner + run, (long long)row);
    }
}

extern "C" __global__ void scatter_nd_update(index_t n, index_t inner, const T *x, const long long *owner, const T *updates,
                                             T *y) {
    for (EACH(i, n)) {
        const index_t run = i / inner, row = owner[run];
        y[i] = row < 0 ? x[i] : updates[row * inner + i - run * inner];
    }
}
