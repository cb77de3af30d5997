/* A transposition, third step: rows of 33 elements, with one unused. Element (i, j) of the tile is in bank (i
 * + j) % 32, so a column spreads over 32 banks, as a row does. ../copy.cu does this for any number of
 * matrices. */
#include "view.h"

extern "C" __global__ void transpose_padded(index_t rows, index_t cols, const T *x, T *y) {
    __shared__ T tile[32][33];
    const index_t top = (index_t)blockIdx.y * 32, left = (index_t)blockIdx.x * 32;
    if (top + threadIdx.y < rows && left + threadIdx.x < cols)
        tile[threadIdx.y][threadIdx.x] = x[(top + threadIdx.y) * cols + left + threadIdx.x];
    __syncthreads();
    if (left + threadIdx.y < cols && top + threadIdx.x < rows)
        y[(left + threadIdx.y) * rows + top + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
