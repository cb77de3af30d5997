// cuda.matmul_shared_reads
#include "view.h"

extern "C" __global__ void matmul_shared(index_t rows, index_t cols, index_t depth, const float *a, const float *b, float *y) {
    const index_t row = (index_t)blockIdx.y * 16 + threadIdx.y, col = (index_t)blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    if (row >= rows || col >= cols) return;
    for (index_t k = 0; k < depth; k++) sum += a[row * depth + k] * b[k * cols + col];
    y[row * cols + col] = sum;
}
