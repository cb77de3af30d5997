/* softmax of rows, third step: a warp takes a row and keeps it in registers, so each element is read once. Lanes fold
 * by shuffles: no shared memory, no barrier. Rows of at most 1024 elements, 32 to a lane; blocks of whole warps. */
#include "fold.h"

enum { OWN = 32 };

extern "C" __global__ void __launch_bounds__(128) softmax_warp(index_t rows, index_t n, const T *x, T *y) {
    const int lane = threadIdx.x % 32;
    for (index_t r = thread_index() / 32; r < rows; r += thread_count() / 32) {
        T own[OWN], top = -INFINITY, sum = 0;
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            own[i] = lane + 32 * i < n ? x[r * n + lane + 32 * i] : -INFINITY;
            top = max(top, own[i]);
        }
        top = fold_warp<Max>(top);
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            own[i] = exp(own[i] - top);                      /* 0 for lanes past the row's end */
            sum += own[i];
        }
        sum = fold_warp<Sum>(sum);
#pragma unroll
        for (int i = 0; i < OWN; i++)
            if (lane + 32 * i < n) y[r * n + lane + 32 * i] = own[i] / sum;
    }
}
