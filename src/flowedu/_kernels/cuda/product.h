/* The matrix product that these kernels share: matmul, and the three products of convolution, whose matrices
 * are computed from image elements on the fly (conv.cu).
 *
 * A block of 256 threads computes a tile of 64 x 64 results, each thread 4 x 4 in registers. Step by step, 16
 * columns of A and 16 rows of B are loaded into shared memory, where each element is read 64 times.
 * lessons/matmul_*.cu lead here.
 *
 * A and B define the location of their elements: `place(i)` is computed once for row i of A (column i of B),
 * and `at(place, k)` returns the element. `along_k`: adjacent elements in memory are adjacent in k, so
 * adjacent threads load those. C receives every result: `put(row, column, value)`. */
#ifndef FLOWEDU_CUDA_PRODUCT_H
#define FLOWEDU_CUDA_PRODUCT_H
#include "view.h"

enum { TILE = 64, DEPTH = 16, OWN = 4, THREADS = 256 };

/* This thread's share of loading a strip of a matrix, 64 rows or columns and 16 steps of k, into shared
 * memory. */
template <class M> struct Strip {
    typename M::Place place[OWN];
    bool there[OWN];

    __device__ __forceinline__ int row(const M &m, int j) const {
        return m.along_k ? threadIdx.x / DEPTH + j * (THREADS / DEPTH) : threadIdx.x % TILE;
    }
    __device__ __forceinline__ int step(const M &m, int j) const {
        return m.along_k ? threadIdx.x % DEPTH : threadIdx.x / TILE + j * (THREADS / TILE);
    }
    __device__ __forceinline__ Strip(const M &m, index_t first, index_t size) {
#pragma unroll
        for (int j = 0; j < OWN; j++) {
            there[j] = first + row(m, j) < size;
            if (there[j]) place[j] = m.place(first + row(m, j));
        }
    }
    template <int WIDTH>
    __device__ __forceinline__ void load(const M &m, index_t k, index_t end, T (*tile)[WIDTH]) const {
#pragma unroll
        for (int j = 0; j < OWN; j++)
            tile[step(m, j)][row(m, j)] = there[j] && k + step(m, j) < end ? m.at(place[j], k + step(m, j)) : (T)0;
    }
};

/* The tile of results that begins at (top, left), summed over k = begin ... end. */
template <class A, class B, class C>
__device__ void product_tile(const A &a, const B &b, const C &c, index_t top, index_t left, index_t rows, index_t cols,
                             index_t begin, index_t end) {
    __shared__ T a_tile[DEPTH][TILE + 1], b_tile[DEPTH][TILE + 1];    /* + 1 avoids bank conflicts */
    const Strip<A> from_a(a, top, rows);
    const Strip<B> from_b(b, left, cols);
    const int x = threadIdx.x % 16, y = threadIdx.x / 16;
    T sum[OWN][OWN] = {};
    for (index_t k = begin; k < end; k += DEPTH) {
        from_a.load(a, k, end, a_tile);
        from_b.load(b, k, end, b_tile);
        __syncthreads();
#pragma unroll
        for (int s = 0; s < DEPTH; s++) {
            T mine[OWN];
#pragma unroll
            for (int j = 0; j < OWN; j++) mine[j] = b_tile[s][x + 16 * j];
#pragma unroll
            for (int i = 0; i < OWN; i++) {
                const T v = a_tile[s][y + 16 * i];
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
            const index_t row = top + y + 16 * i, col = left + x + 16 * j;
            if (row < rows && col < cols) c.put(row, col, sum[i][j]);
        }
}
#endif
