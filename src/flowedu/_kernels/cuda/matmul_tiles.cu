/* matmul of large float32 matrices (tile.h), for any number of batches, like matmul.cu, with BLAS names. n:
 * adjacent elements are along the rows; t: along the columns, because the matrix is transposed in memory. */
#include "tile.h"

/* y[batch] = a[batch] b[batch]; batch: the offsets of the batches of a and b; a_step, b_step: line strides. y
 * is contiguous. */
template <bool A_ALONG_K, bool B_ALONG_K>
__device__ void tiles(index_t batches, const Walk<2> &batch, index_t rows, index_t cols, index_t depth, const float *a,
                      index_t a_step, const float *b, index_t b_step, float *y) {
    __shared__ __align__(16) Strip a_strip[2], b_strip[2];
    const index_t down = (rows + TILE - 1) / TILE, right = (cols + TILE - 1) / TILE;
    for (EACH_BLOCK(t, batches * down * right)) {
        const index_t n = t / (down * right), top = t / right % down * TILE, left = t % right * TILE;
        index_t at[2];
        offsets(batch, n, at);
        const Operand<A_ALONG_K> A(a + at[0], rows, depth, a_step, top);
        const Operand<B_ALONG_K> B(b + at[1], cols, depth, b_step, left);
        Results results;
        int now = 0;
        A.store(A.fetched(0), a_strip[0]);
        B.store(B.fetched(0), b_strip[0]);
        for (index_t k = 0; k < depth; k += DEPTH, now ^= 1) {
            __syncthreads();                                 /* this pair is complete, and the other one read */
            const float4 next_a = A.fetched(k + DEPTH), next_b = B.fetched(k + DEPTH);
            results.add(a_strip[now], b_strip[now]);
            if (k + DEPTH >= depth) break;
            A.store(next_a, a_strip[now ^ 1]);
            B.store(next_b, b_strip[now ^ 1]);
        }
        results.store(y + n * rows * cols, top, left, rows, cols);
        __syncthreads();                                     /* the strips may be written for the next tile */
    }
}

#define TILES(name, A_ALONG_K, B_ALONG_K)                                                                                \
    extern "C" __global__ void __launch_bounds__(256) name(                                                              \
            index_t batches, Walk<2> batch, index_t rows, index_t cols, index_t depth, const float *a, index_t a_step,   \
            const float *b, index_t b_step, float *y) {                                                                  \
        tiles<A_ALONG_K, B_ALONG_K>(batches, batch, rows, cols, depth, a, a_step, b, b_step, y);                         \
    }
TILES(matmul_tiles_nn, true, false)
TILES(matmul_tiles_nt, true, true)
TILES(matmul_tiles_tn, false, false)
TILES(matmul_tiles_tt, false, true)
