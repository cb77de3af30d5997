/* A matrix product, sixth step: the hardware copies the next strips to shared memory (async.h) while this pair is
 * multiplied. The number of bytes stays the same, but the copies need no registers. Elements of a change their order, so
 * each one is copied separately. (256, 2): two blocks fit into a multiprocessor. */
#include "tile.h"
#include "lessons/async.h"

/* A: each element alone. (Not unrolled: four addresses would be kept in registers.) */
__device__ __forceinline__ void start(const Operand<true> &m, index_t k, Strip &strip) {
#pragma unroll 1
    for (int j = 0; j < 4; j++) {
        const int i = threadIdx.x / DEPTH + j * 32, s = threadIdx.x % DEPTH;
        const bool there = m.first + i < m.size && k + s < m.depth;
        asynchronous_copy<4>(&strip[s][i], there ? m.data + (m.first + i) * m.step + k + s : m.data, there ? 4 : 0);
    }
}

/* B: four neighbouring elements. `left` of them are inside the matrix. */
__device__ __forceinline__ void start(const Operand<false> &m, index_t k, Strip &strip) {
    const int s = threadIdx.x / 32, i = threadIdx.x % 32 * 4;
    const int left = k + s < m.depth ? (int)max((index_t)0, min((index_t)4, m.size - m.first - i)) : 0;
    const float *from = left ? m.data + (k + s) * m.step + m.first + i : m.data;
    if (m.whole) {
        asynchronous_copy<16>(&strip[s][i], from, 4 * left);
    } else {
#pragma unroll
        for (int j = 0; j < 4; j++) asynchronous_copy<4>(&strip[s][i + j], j < left ? from + j : m.data, j < left ? 4 : 0);
    }
}

extern "C" __global__ void __launch_bounds__(256, 2) matmul_async(index_t rows, index_t cols, index_t depth,
                                                                  const float *a, const float *b, float *y) {
    __shared__ __align__(16) Strip a_strip[2], b_strip[2];
    const index_t top = (index_t)blockIdx.y * TILE, left = (index_t)blockIdx.x * TILE;
    const Operand<true> A(a, rows, depth, depth, top);
    const Operand<false> B(b, cols, depth, cols, left);
    Results results;
    int now = 0;
    start(A, 0, a_strip[0]);
    start(B, 0, b_strip[0]);
    for (index_t k = 0; k < depth; k += DEPTH, now ^= 1) {
        asynchronous_wait();
        __syncthreads();                                     /* this pair is complete, and the other one read */
        if (k + DEPTH < depth) {
            start(A, k + DEPTH, a_strip[now ^ 1]);
            start(B, k + DEPTH, b_strip[now ^ 1]);
        }
        results.add(a_strip[now], b_strip[now]);
    }
    results.store(y, top, left, rows, cols);
}
