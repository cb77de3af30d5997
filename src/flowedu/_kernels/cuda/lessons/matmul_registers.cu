/* A matrix product, third step: a thread computes 8 x 8 results and keeps them in registers. For 64 products it reads
 * 16 elements from shared memory; the second step read 128. A block's tile is now 128 x 128, so each loaded element is
 * used for 128 results instead of 16. Blocks of 256 threads. */
#include "view.h"

enum { TILE = 128, DEPTH = 8, OWN = 8, PITCH = TILE + 4 };   /* + 4: columns that a warp stores differ in banks */

extern "C" __global__ void __launch_bounds__(256) matmul_registers(index_t rows, index_t cols, index_t depth, const T *a,
                                                                   const T *b, T *y) {
    __shared__ T a_tile[DEPTH][PITCH], b_tile[DEPTH][PITCH];
    const index_t top = (index_t)blockIdx.y * TILE, left = (index_t)blockIdx.x * TILE;
    const int right = threadIdx.x % 16, down = threadIdx.x / 16;
    T sum[OWN][OWN] = {};
    for (index_t k = 0; k < depth; k += DEPTH) {
#pragma unroll
        for (int j = 0; j < 4; j++) {                        /* 256 threads load 128 x 8 elements of each */
            const int row = threadIdx.x / DEPTH + j * 32, s = threadIdx.x % DEPTH;
            a_tile[s][row] = top + row < rows && k + s < depth ? a[(top + row) * depth + k + s] : (T)0;
            const int col = threadIdx.x % TILE, t = threadIdx.x / TILE + j * 2;
            b_tile[t][col] = left + col < cols && k + t < depth ? b[(k + t) * cols + left + col] : (T)0;
        }
        __syncthreads();
#pragma unroll
        for (int s = 0; s < DEPTH; s++) {
            T mine[OWN];
#pragma unroll
            for (int j = 0; j < OWN; j++) mine[j] = b_tile[s][right + 16 * j];
#pragma unroll
            for (int i = 0; i < OWN; i++) {
                const T v = a_tile[s][down + 16 * i];
#pragma unroll
                for (int j = 0; j < OWN; j++) sum[i][j] += v * mine[j];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < OWN; i++)
#pragma unroll
        for (int j = 0; j < OWN; j++) {
            const index_t row = top + down + 16 * i, col = left + right + 16 * j;
            if (row < rows && col < cols) y[row * cols + col] = sum[i][j];
        }
}
