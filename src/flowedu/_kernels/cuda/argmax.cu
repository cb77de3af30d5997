/* Index of the largest element along an axis: the first of equal elements; a NaN counts as the largest. x is
 * (outer, n, inner); a block searches one of outer * inner runs. */
#include "fold.h"

struct Place { T value; index_t at; };

__device__ __forceinline__ bool better(Place a, Place b) {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a.at < 0 || b.at < 0) return a.at >= 0;                      /* no element seen yet */
    if (a_nan || b_nan) return a_nan && (!b_nan || a.at < b.at);
    return a.value > b.value || (a.value == b.value && a.at < b.at);
}

extern "C" __global__ void argmax(index_t outer, index_t n, index_t inner, const T *x, int64_t *y) {
    __shared__ Place of_warp[32];
    for (EACH_BLOCK(b, outer * inner)) {
        const T *run = x + b / inner * n * inner + b % inner;
        Place best = {0, -1};
        for (index_t i = threadIdx.x; i < n; i += blockDim.x) {
            const Place here = {run[i * inner], i};
            if (better(here, best)) best = here;
        }
        for (int round = 0; round < 2; round++) {                    /* of each warp, then of the warps' */
            for (int step = 16; step > 0; step /= 2) {
                const Place other = {__shfl_xor_sync(ALL_LANES, best.value, step),
                                     __shfl_xor_sync(ALL_LANES, best.at, step)};
                if (better(other, best)) best = other;
            }
            if (round == 0) {
                if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = best;
                __syncthreads();
                best = {0, -1};
                if (threadIdx.x % 32 < blockDim.x / 32) best = of_warp[threadIdx.x % 32];
                __syncthreads();
            }
        }
        if (threadIdx.x == 0) y[b] = best.at;
    }
}
