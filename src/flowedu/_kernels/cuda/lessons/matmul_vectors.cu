/* A matrix product, fourth step: four numbers at a time (../tile.h). The bytes are those of the third step, but a
 * float4 is one instruction where four floats were four: a quarter of the loads and stores, in main memory and in
 * shared memory. */
#include "tile.h"

extern "C" __global__ void __launch_bounds__(256) matmul_vectors(index_t rows, index_t cols, index_t depth,
                                                                 const float *a, const float *b, float *y) {
    __shared__ __align__(16) Strip a_strip, b_strip;
    const index_t top = (index_t)blockIdx.y * TILE, left = (index_t)blockIdx.x * TILE;
    const Operand<true> A(a, rows, depth, depth, top);
    const Operand<false> B(b, cols, depth, cols, left);
    Results results;
    for (index_t k = 0; k < depth; k += DEPTH) {
        A.store(A.fetched(k), a_strip);
        B.store(B.fetched(k), b_strip);
        __syncthreads();                                     /* the strips are complete */
        results.add(a_strip, b_strip);
        __syncthreads();                                     /* and may be written again */
    }
    results.store(y, top, left, rows, cols);
}
