/* Running results along an axis: cumsum, and linear_scan, the recurrence h[t] = a[t] * h[t-1] + b[t].
 *
 * An array is (outer, n, inner). If inner > 1, a thread scans a column, and neighbouring threads scan neighbouring
 * columns. A contiguous row is scanned by a block, 1024 elements at a time: each warp scans 32 elements by shuffles, then
 * the sums of the warps are scanned. */
#include "fold.h"

__device__ __forceinline__ index_t turned(index_t i, index_t n, index_t backwards) { return backwards ? n - 1 - i : i; }

extern "C" __global__ void cumsum_columns(index_t outer, index_t n, index_t inner, index_t backwards, const T *x, T *y) {
    for (EACH(c, outer * inner)) {
        const index_t first = c / inner * n * inner + c % inner;
        Wide sum = 0;
        for (index_t i = 0; i < n; i++) {
            const index_t at = first + turned(i, n, backwards) * inner;
            y[at] = (T)(sum += x[at]);
        }
    }
}

/* Each lane's sum of itself and the lanes before it. */
__device__ __forceinline__ Wide scan_warp(Wide v) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const Wide before = __shfl_up_sync(ALL_LANES, v, step);
        if (threadIdx.x % 32 >= step) v += before;
    }
    return v;
}

extern "C" __global__ void cumsum_rows(index_t rows, index_t n, index_t backwards, const T *x, T *y) {
    __shared__ Wide of_warp[32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    for (EACH_BLOCK(r, rows)) {
        Wide carried = 0;                                     /* the sum of all pieces before */
        for (index_t piece = 0; piece < n; piece += blockDim.x) {
            const index_t i = piece + threadIdx.x, at = r * n + turned(i, n, backwards);
            const Wide own = scan_warp(i < n ? (Wide)x[at] : 0);
            if (lane == 31) of_warp[warp] = own;
            __syncthreads();
            const Wide sums = scan_warp(lane < warps ? of_warp[lane] : 0);      /* in every warp */
            const Wide before = __shfl_sync(ALL_LANES, sums, warp ? warp - 1 : 0);
            if (i < n) y[at] = (T)(carried + (warp ? before : 0) + own);
            carried += __shfl_sync(ALL_LANES, sums, warps - 1);
            __syncthreads();                                  /* of_warp is written again */
        }
    }
}

extern "C" __global__ void linear_scan(index_t outer, index_t n, index_t inner, index_t backwards, const T *a, const T *b,
                                       T *h) {
    for (EACH(c, outer * inner)) {
        const index_t first = c / inner * n * inner + c % inner;
        T last = 0;
        for (index_t i = 0; i < n; i++) {
            const index_t at = first + turned(i, n, backwards) * inner;
            h[at] = last = i ? a[at] * last + b[at] : b[at];          /* at i = 0, a may be inf */
        }
    }
}
