/* A matrix product, fifth step: two pairs of strips. The numbers of the next step are fetched before those of this one
 * are multiplied, and arrive meanwhile; and as nobody writes what others still read, one barrier a step is enough. */
#include "lessons/tile.h"

extern "C" __global__ void __launch_bounds__(256) matmul_double(index_t rows, index_t cols, index_t depth,
                                                                const float *a, const float *b, float *y) {
    __shared__ __align__(16) Strip a_strip[2], b_strip[2];
    const Matrices m(rows, cols, depth, a, b);
    Results results;
    int now = 0;
    Fetched(m, 0).store(a_strip[0], b_strip[0]);
    for (index_t k = 0; k < depth; k += DEPTH, now ^= 1) {
        __syncthreads();                                     /* this pair is complete, and the other one read */
        const Fetched next(m, k + DEPTH);                    /* behind the end: zeros, from no memory */
        results.add(a_strip[now], b_strip[now]);
        if (k + DEPTH < depth) next.store(a_strip[now ^ 1], b_strip[now ^ 1]);
    }
    results.store(m, y);
}
