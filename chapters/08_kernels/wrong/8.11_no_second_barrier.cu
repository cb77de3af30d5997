// cuda.matmul_shared_race
#include "view.h"

enum { SIDE = 16 };

extern "C" __global__ void matmul_shared(index_t rows, index_t cols, index_t depth, const float *a, const float *b, float *y) {
    __shared__ float a_tile[SIDE][SIDE], b_tile[SIDE][SIDE];
    const index_t row = (index_t)blockIdx.y * SIDE + threadIdx.y, col = (index_t)blockIdx.x * SIDE + threadIdx.x;
    float sum = 0;
    for (index_t k = 0; k < depth; k += SIDE) {
        a_tile[threadIdx.y][threadIdx.x] = row < rows && k + threadIdx.x < depth ? a[row * depth + k + threadIdx.x] : 0;
        b_tile[threadIdx.y][threadIdx.x] = col < cols && k + threadIdx.y < depth ? b[(k + threadIdx.y) * cols + col] : 0;
        __syncthreads();                                  /* the tiles are complete */
        for (int s = 0; s < SIDE; s++) sum += a_tile[threadIdx.y][s] * b_tile[s][threadIdx.x];
    }
    if (row < rows && col < cols) y[row * cols + col] = sum;
}
