/* A matrix product, fifth step: two pairs of strips. The elements of the next step are loaded while those of this step are
 * multiplied. No thread writes a strip that other threads still read, so one barrier per step is enough.
 * ../matmul_tiles.cu does the same for any number of matrices, transposed or not. */
#include "tile.h"

extern "C" __global__ void __launch_bounds__(256) matmul_double(index_t rows, index_t cols, index_t depth,
                                                                const float *a, const float *b, float *y) {
    __shared__ __align__(16) Strip a_strip[2], b_strip[2];
    const index_t top = (index_t)blockIdx.y * TILE, left = (index_t)blockIdx.x * TILE;
    const Operand<true> A(a, rows, depth, depth, top);
    const Operand<false> B(b, cols, depth, cols, left);
    Results results;
    int now = 0;
    A.store(A.fetched(0), a_strip[0]);
    B.store(B.fetched(0), b_strip[0]);
    for (index_t k = 0; k < depth; k += DEPTH, now ^= 1) {
        __syncthreads();                                     /* this pair is complete, and the other one read */
        const float4 next_a = A.fetched(k + DEPTH), next_b = B.fetched(k + DEPTH);   /* past the end: zeros */
        results.add(a_strip[now], b_strip[now]);
        if (k + DEPTH >= depth) break;
        A.store(next_a, a_strip[now ^ 1]);
        B.store(next_b, b_strip[now ^ 1]);
    }
    results.store(y, top, left, rows, cols);
}
