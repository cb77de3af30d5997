/* Positions along rows: of a value in a sorted row, of the largest element so far, of the most frequent
 * element. A NaN counts as the largest number. */
#include "fold.h"

__device__ __forceinline__ bool is_nan(T a) { return a != a; }
__device__ __forceinline__ bool below(T a, T b) { return a < b || (is_nan(b) && !is_nan(a)); }
__device__ __forceinline__ bool equal(T a, T b) { return a == b || (is_nan(a) && is_nan(b)); }

/* Number of elements in the row that are less than each value (right: or equal). per: values per row; 0: one
 * row for all. */
extern "C" __global__ void searchsorted(index_t total, index_t n, index_t per, index_t right, const T *rows, const T *values,
                                        int64_t *y) {
    for (EACH(i, total)) {
        const T *row = rows + (per ? i / per * n : 0), v = values[i];
        index_t low = 0, high = n;
        while (low < high) {
            const index_t middle = (low + high) / 2;
            if (right ? !below(v, row[middle]) : below(row[middle], v)) low = middle + 1;
            else high = middle;
        }
        y[i] = low;
    }
}

/* The last of equal elements; from the first NaN on, the last NaN. x is (outer, n, inner); a thread processes
 * one run. */
extern "C" __global__ void extreme_place(index_t outer, index_t n, index_t inner, index_t smallest, const T *x, int64_t *y) {
    for (EACH(run, outer * inner)) {
        const index_t start = run / inner * n * inner + run % inner;
        index_t place = 0;
        T best = 0;
        for (index_t t = 0; t < n; t++) {
            const T v = x[start + t * inner];
            if (t == 0 || is_nan(v) || (smallest ? v <= best : v >= best)) place = t, best = v;
            y[start + t * inner] = place;
        }
    }
}

/* The last position of the most frequent element of a row; among equally frequent ones, the smallest element.
 * One block per row: each thread counts the occurrences of its elements. */
struct Often { index_t count, at; };

__device__ __forceinline__ bool rather(const T *row, Often a, Often b) {
    if (a.at < 0 || b.at < 0) return a.at >= 0;
    if (a.count != b.count) return a.count > b.count;
    return below(row[a.at], row[b.at]) || (equal(row[a.at], row[b.at]) && a.at > b.at);
}

extern "C" __global__ void mode_place(index_t rows, index_t n, const T *x, int64_t *y) {
    __shared__ Often of_warp[32];
    for (EACH_BLOCK(r, rows)) {
        const T *row = x + r * n;
        Often best = {0, -1};
        for (index_t i = threadIdx.x; i < n; i += blockDim.x) {
            Often here = {0, i};
            for (index_t j = 0; j < n; j++) here.count += equal(row[i], row[j]);
            if (rather(row, here, best)) best = here;
        }
        for (int round = 0; round < 2; round++) {                    /* of each warp, then of the warps' */
            for (int step = 16; step > 0; step /= 2) {
                const Often other = {__shfl_xor_sync(ALL_LANES, best.count, step),
                                     __shfl_xor_sync(ALL_LANES, best.at, step)};
                if (rather(row, other, best)) best = other;
            }
            if (round == 0) {
                if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = best;
                __syncthreads();
                best = {0, -1};
                if (threadIdx.x % 32 < blockDim.x / 32) best = of_warp[threadIdx.x % 32];
                __syncthreads();
            }
        }
        if (threadIdx.x == 0) y[r] = best.at;
    }
}
