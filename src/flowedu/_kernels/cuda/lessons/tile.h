/* What the last three steps of the matrix product share: a block of 256 threads and its tile of 128 x 128 results,
 * which are made from strips of 8 columns of a and 8 rows of b. A thread has 8 x 8 results, in four squares of 4 x 4,
 * so that it reads four neighbours at once from shared memory: 4 reads of 16 bytes for 64 products. */
#ifndef FLOWEDU_CUDA_LESSONS_TILE_H
#define FLOWEDU_CUDA_LESSONS_TILE_H
#include "view.h"

enum { TILE = 128, DEPTH = 8, PITCH = TILE + 4 };            /* + 4: columns that a warp stores lie in different banks */
typedef float Strip[DEPTH][PITCH];

struct Matrices {
    index_t rows, cols, depth;
    const float *a, *b;
    index_t top, left;                                       /* of the block's tile */
    bool whole;                                              /* all rows begin at multiples of 16 bytes */
    __device__ __forceinline__ Matrices(index_t rows, index_t cols, index_t depth, const float *a, const float *b)
        : rows(rows), cols(cols), depth(depth), a(a), b(b), top((index_t)blockIdx.y * TILE),
          left((index_t)blockIdx.x * TILE), whole((depth | cols) % 4 == 0 && ((size_t)a | (size_t)b) % 16 == 0) {}
};

/* Four neighbours of a row of which `left` elements are left; zeros behind its end. */
__device__ __forceinline__ float4 four(const float *p, index_t left, bool whole) {
    if (whole && left >= 4) return *(const float4 *)p;
    return make_float4(left > 0 ? p[0] : 0, left > 1 ? p[1] : 0, left > 2 ? p[2] : 0, left > 3 ? p[3] : 0);
}

/* This thread's share of the strips at k: four neighbours of a row of a, and of a row of b, as they are on their way. */
struct Fetched {
    float4 a, b;
    __device__ __forceinline__ Fetched(const Matrices &m, index_t k) {
        const index_t row = m.top + threadIdx.x / 2, at = k + threadIdx.x % 2 * 4;
        a = four(m.a + row * m.depth + at, row < m.rows ? m.depth - at : 0, m.whole);
        const index_t step = k + threadIdx.x / 32, col = m.left + threadIdx.x % 32 * 4;
        b = four(m.b + step * m.cols + col, step < m.depth ? m.cols - col : 0, m.whole);
    }
    __device__ __forceinline__ void store(Strip &a_strip, Strip &b_strip) const {
        const int row = threadIdx.x / 2, s = threadIdx.x % 2 * 4;
        a_strip[s][row] = a.x;                               /* a's columns become rows: they are read along them */
        a_strip[s + 1][row] = a.y;
        a_strip[s + 2][row] = a.z;
        a_strip[s + 3][row] = a.w;
        *(float4 *)&b_strip[threadIdx.x / 32][threadIdx.x % 32 * 4] = b;
    }
};

/* The results of a thread: rows 4 * down ... + 3 and 64 more below, columns 4 * right ... + 3 and 64 further. */
struct Results {
    float sum[8][8];
    int right, down;
    __device__ __forceinline__ Results() : right(threadIdx.x % 16), down(threadIdx.x / 16) {
#pragma unroll
        for (int i = 0; i < 64; i++) sum[i / 8][i % 8] = 0;
    }
    __device__ __forceinline__ void add(const Strip &a, const Strip &b) {
#pragma unroll
        for (int s = 0; s < DEPTH; s++) {
            const float4 u = *(const float4 *)&a[s][4 * down], v = *(const float4 *)&a[s][64 + 4 * down];
            const float4 w = *(const float4 *)&b[s][4 * right], z = *(const float4 *)&b[s][64 + 4 * right];
            const float left[8] = {u.x, u.y, u.z, u.w, v.x, v.y, v.z, v.w};
            const float top[8] = {w.x, w.y, w.z, w.w, z.x, z.y, z.z, z.w};
#pragma unroll
            for (int i = 0; i < 64; i++) sum[i / 8][i % 8] += left[i / 8] * top[i % 8];
        }
    }
    __device__ __forceinline__ void store(const Matrices &m, float *y) const {
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const index_t row = m.top + 4 * down + i % 4 + i / 4 * 64, col = m.left + 4 * right + half * 64;
                if (row >= m.rows) continue;
                const float *v = &sum[i][4 * half];
                if (m.whole && col + 4 <= m.cols) {
                    *(float4 *)&y[row * m.cols + col] = make_float4(v[0], v[1], v[2], v[3]);
                } else {
#pragma unroll
                    for (int j = 0; j < 4; j++)
                        if (col + j < m.cols) y[row * m.cols + col + j] = v[j];
                }
            }
    }
};
#endif
