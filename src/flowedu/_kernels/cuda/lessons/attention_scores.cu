/* Attention, first step: the definition, in three kernels. The scores of all queries with all keys are stored
 * in memory, one number per pair: they are written, read three times and written again for the softmax, and
 * read for the product. For ten thousand tokens that is a matrix of a hundred million numbers. Blocks of 16 x
 * 16; for the softmax, of 256 threads. */
#include "fold.h"

enum { SIDE = 16 };

/* y = factor * a b: matmul_shared.cu, with b's steps along rows and columns given, so that it may be transposed. */
__device__ void product(index_t rows, index_t cols, index_t depth, const T *a, const T *b, index_t down, index_t right,
                        T factor, T *y) {
    __shared__ T a_tile[SIDE][SIDE], b_tile[SIDE][SIDE + 1];
    const index_t row = (index_t)blockIdx.y * SIDE + threadIdx.y, first = (index_t)blockIdx.x * SIDE;
    const bool across = right == 1;                          /* adjacent threads read adjacent elements */
    const int s = across ? threadIdx.y : threadIdx.x, col = across ? threadIdx.x : threadIdx.y;
    T sum = 0;
    for (index_t k = 0; k < depth; k += SIDE) {
        a_tile[threadIdx.y][threadIdx.x] = row < rows && k + threadIdx.x < depth ? a[row * depth + k + threadIdx.x] : (T)0;
        b_tile[s][col] = first + col < cols && k + s < depth ? b[(k + s) * down + (first + col) * right] : (T)0;
        __syncthreads();
        for (int q = 0; q < SIDE; q++) sum += a_tile[threadIdx.y][q] * b_tile[q][threadIdx.x];
        __syncthreads();
    }
    if (row < rows && first + threadIdx.x < cols) y[row * cols + first + threadIdx.x] = factor * sum;
}

/* scores = q k^T / sqrt(width), (queries, keys) */
extern "C" __global__ void attention_scores(index_t queries, index_t keys, index_t width, const T *q, const T *k,
                                            T *scores) {
    product(queries, keys, width, q, k, 1, width, rsqrt((T)width), scores);
}

extern "C" __global__ void attention_softmax(index_t queries, index_t keys, T *scores) {
    for (EACH_BLOCK(r, queries)) {
        T *row = scores + r * keys, top = -INFINITY, sum = 0;
        for (index_t j = threadIdx.x; j < keys; j += blockDim.x) top = max(top, row[j]);
        top = fold_block<Max>(top);
        for (index_t j = threadIdx.x; j < keys; j += blockDim.x) sum += exp(row[j] - top);
        sum = fold_block<Sum>(sum);
        for (index_t j = threadIdx.x; j < keys; j += blockDim.x) row[j] = exp(row[j] - top) / sum;
    }
}

/* y = scores v, (queries, width) */
extern "C" __global__ void attention_values(index_t queries, index_t keys, index_t width, const T *scores, const T *v,
                                            T *y) {
    product(queries, width, keys, scores, v, width, 1, 1, y);
}
