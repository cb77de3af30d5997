/* A matrix product, second step: the threads of a block, 16 x 16, work on 16 columns of a and 16 rows of b at a time, which
 * they bring into shared memory together. Each element that is loaded serves 16 threads: a sixteenth of the loads.
 * The third step, ../product.h, keeps 4 x 4 results in the registers of each thread. */
#include "view.h"

enum { SIDE = 16 };

extern "C" __global__ void matmul_shared(index_t rows, index_t cols, index_t depth, const T *a, const T *b, T *y) {
    __shared__ T a_tile[SIDE][SIDE], b_tile[SIDE][SIDE];
    const index_t row = (index_t)blockIdx.y * SIDE + threadIdx.y, col = (index_t)blockIdx.x * SIDE + threadIdx.x;
    T sum = 0;
    for (index_t k = 0; k < depth; k += SIDE) {
        a_tile[threadIdx.y][threadIdx.x] = row < rows && k + threadIdx.x < depth ? a[row * depth + k + threadIdx.x] : (T)0;
        b_tile[threadIdx.y][threadIdx.x] = col < cols && k + threadIdx.y < depth ? b[(k + threadIdx.y) * cols + col] : (T)0;
        __syncthreads();                                  /* the tiles are complete */
        for (int s = 0; s < SIDE; s++) sum += a_tile[threadIdx.y][s] * b_tile[s][threadIdx.x];
        __syncthreads();                                  /* and may be written again */
    }
    if (row < rows && col < cols) y[row * cols + col] = sum;
}
