// cuda.transpose_padded_race
#include "view.h"

extern "C" __global__ void transpose_padded(index_t rows, index_t cols, const float *x, float *y) {
    __shared__ float tile[32][33];
    const index_t top = (index_t)blockIdx.y * 32, left = (index_t)blockIdx.x * 32;
    if (top + threadIdx.y < rows && left + threadIdx.x < cols)
        tile[threadIdx.y][threadIdx.x] = x[(top + threadIdx.y) * cols + left + threadIdx.x];
    if (left + threadIdx.y < cols && top + threadIdx.x < rows)
        y[(left + threadIdx.y) * rows + top + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
