/* softmax of rows, second step: the largest element and the sum in one pass (online.h), the results in a second one.
 * Each element is read twice. Blocks of whole warps. */
#include "lessons/online.h"

extern "C" __global__ void softmax_online(index_t rows, index_t n, const T *x, T *y) {
    __shared__ Online of_warp[32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    const Online none = {-INFINITY, 0};
    for (EACH_BLOCK(r, rows)) {
        Online all = none;
        for (index_t j = threadIdx.x; j < n; j += blockDim.x) all = all.joined({x[r * n + j], 1});
        all = joined_by_warp(all);
        if (lane == 0) of_warp[warp] = all;
        __syncthreads();
        all = joined_by_warp(lane < warps ? of_warp[lane] : none);
        __syncthreads();                                     /* of_warp may be written for the next row */
        for (index_t j = threadIdx.x; j < n; j += blockDim.x) y[r * n + j] = exp(x[r * n + j] - all.top) / all.sum;
    }
}
