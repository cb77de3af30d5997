/* A matrix product, sixth step: the hardware carries the next strips to shared memory (async.h) while this pair is
 * multiplied. Counted in bytes nothing changes. But no register holds them on the way: 128 are enough for a thread, the
 * fifth step takes 137 on sm_90, and a multiprocessor has room for two blocks instead of one. Elements of a change places
 * on the way, so each is a copy of its own. */
#include "lessons/tile.h"
#include "lessons/async.h"

__device__ __forceinline__ void start(const Matrices &m, index_t k, Strip &a_strip, Strip &b_strip) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const int row = threadIdx.x / DEPTH + j * 32, s = threadIdx.x % DEPTH;
        const bool there = m.top + row < m.rows && k + s < m.depth;
        asynchronous_copy<4>(&a_strip[s][row], there ? m.a + (m.top + row) * m.depth + k + s : m.a, there ? 4 : 0);
    }
    const int s = threadIdx.x / 32, col = threadIdx.x % 32 * 4;
    const index_t left = k + s < m.depth ? m.cols - m.left - col : 0;        /* elements of the row from here on */
    const float *from = left > 0 ? m.b + (k + s) * m.cols + m.left + col : m.b;
    if (m.whole) {
        asynchronous_copy<16>(&b_strip[s][col], from, left > 0 ? 16 : 0);    /* cols is a multiple of 4 */
    } else {
#pragma unroll
        for (int j = 0; j < 4; j++) asynchronous_copy<4>(&b_strip[s][col + j], left > j ? from + j : m.b, left > j ? 4 : 0);
    }
}

extern "C" __global__ void __launch_bounds__(256, 2) matmul_async(index_t rows, index_t cols, index_t depth,
                                                                  const float *a, const float *b, float *y) {
    __shared__ __align__(16) Strip a_strip[2], b_strip[2];
    const Matrices m(rows, cols, depth, a, b);
    Results results;
    int now = 0;
    start(m, 0, a_strip[0], b_strip[0]);
    for (index_t k = 0; k < depth; k += DEPTH, now ^= 1) {
        asynchronous_wait();
        __syncthreads();                                     /* this pair is complete, and the other one read */
        if (k + DEPTH < depth) start(m, k + DEPTH, a_strip[now ^ 1], b_strip[now ^ 1]);
        results.add(a_strip[now], b_strip[now]);
    }
    results.store(m, y);
}
