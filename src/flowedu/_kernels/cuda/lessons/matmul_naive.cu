/* A matrix product, first step: one thread per result. Every element of a is read `cols` times from global
 * memory, every element of b `rows` times. 2 loads for 2 operations make it memory-bound. */
#include "view.h"

extern "C" __global__ void matmul_naive(index_t rows, index_t cols, index_t depth, const T *a, const T *b, T *y) {
    const index_t row = (index_t)blockIdx.y * blockDim.y + threadIdx.y;
    const index_t col = (index_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows || col >= cols) return;
    T sum = 0;
    for (index_t k = 0; k < depth; k++) sum += a[row * depth + k] * b[k * cols + col];
    y[row * cols + col] = sum;
}
