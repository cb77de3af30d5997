#include "view.h"

extern "C" __global__ void softmax_warp(index_t rows, index_t n, const float *x, float *y) {
    const int lane = threadIdx.x % 32;
    for (index_t r = thread_index() / 32; r < rows; r += thread_count() / 32) {         /* the rows of this warp */
        /* 8.9: your turn */
    }
}
