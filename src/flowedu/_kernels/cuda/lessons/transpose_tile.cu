/* A transposition, second step: a block moves a tile of 32 x 32 through shared memory, where it is
 * transposed. Now a warp also writes adjacent elements. But it reads a column of the tile, which is in one
 * bank: 32 cycles for one access. */
#include "view.h"

extern "C" __global__ void transpose_tile(index_t rows, index_t cols, const T *x, T *y) {
    __shared__ T tile[32][32];
    const index_t top = (index_t)blockIdx.y * 32, left = (index_t)blockIdx.x * 32;
    if (top + threadIdx.y < rows && left + threadIdx.x < cols)
        tile[threadIdx.y][threadIdx.x] = x[(top + threadIdx.y) * cols + left + threadIdx.x];
    __syncthreads();
    if (left + threadIdx.y < cols && top + threadIdx.x < rows)
        y[(left + threadIdx.y) * rows + top + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
