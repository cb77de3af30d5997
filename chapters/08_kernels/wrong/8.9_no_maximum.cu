// cuda.softmax_warp_large
#include "fold.h"

extern "C" __global__ void softmax_warp(index_t rows, index_t n, const float *x, float *y) {
    const int lane = threadIdx.x % 32;
    for (index_t r = thread_index() / 32; r < rows; r += thread_count() / 32) {
        float top = -INFINITY, sum = 0;
        for (index_t j = lane; j < n; j += 32) top = max(top, x[r * n + j]);
        top = 0;
        for (index_t j = lane; j < n; j += 32) sum += exp(x[r * n + j] - top);
        sum = fold_warp<Sum>(sum);
        for (index_t j = lane; j < n; j += 32) y[r * n + j] = exp(x[r * n + j] - top) / sum;
    }
}
