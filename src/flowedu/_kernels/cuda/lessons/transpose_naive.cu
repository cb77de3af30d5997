/* A transposition, first step: one thread per element. A warp reads 32 adjacent elements, in 4 sectors of 32
 * bytes, and writes 32 elements of a column, in 32 sectors. Blocks of 32 x 32 threads. */
#include "view.h"

extern "C" __global__ void transpose_naive(index_t rows, index_t cols, const T *x, T *y) {
    const index_t row = (index_t)blockIdx.y * 32 + threadIdx.y, col = (index_t)blockIdx.x * 32 + threadIdx.x;
    if (row < rows && col < cols) y[col * rows + row] = x[row * cols + col];
}
