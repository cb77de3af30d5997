/* A matrix product of float32 with large tiles: matmul_tiles.cu, and the last three steps of lessons/matmul_*.cu. A block
 * of 256 threads makes 128 x 128 results from strips of 8 columns of A and 8 rows of B. A thread has 8 x 8 results, in four
 * squares of 4 x 4, so that it reads four neighbours at once from shared memory: 4 reads of 16 bytes for 64 products. */
#ifndef FLOWEDU_CUDA_TILE_H
#define FLOWEDU_CUDA_TILE_H
#include "view.h"

enum { TILE = 128, DEPTH = 8, PITCH = TILE + 4 };            /* + 4 avoids bank conflicts in a warp's stores */
typedef float Strip[DEPTH][PITCH];

/* Four adjacent elements of a line with `left` elements remaining; zeros past its end. */
__device__ __forceinline__ float4 four(const float *p, index_t left, bool whole) {
    if (whole && left >= 4) return *(const float4 *)p;
    return make_float4(left > 0 ? p[0] : 0, left > 1 ? p[1] : 0, left > 2 ? p[2] : 0, left > 3 ? p[3] : 0);
}

/* A block's view of a matrix: 128 lines, from `first` on, of A (row i, step k) or of B (column i, step k).
 * Adjacent elements in memory are adjacent in k (ALONG_K), or in i; `step` is the line stride. */
template <bool ALONG_K> struct Operand {
    const float *data;
    index_t size, depth, step, first;
    bool whole;                                              /* all lines begin at multiples of 16 bytes */
    const float *from;                                       /* this thread's share of a strip: four neighbours */
    index_t left;                                            /* elements of their line from there on */
    __device__ __forceinline__ Operand(const float *data, index_t size, index_t depth, index_t step, index_t first)
        : data(data), size(size), depth(depth), step(step), first(first),
          whole(step % 4 == 0 && (size_t)data % 16 == 0) {
        const int shares = ALONG_K ? 2 : 32, line = threadIdx.x / shares, at = threadIdx.x % shares * 4;
        from = ALONG_K ? data + (first + line) * step + at : data + line * step + first + at;
        left = !ALONG_K ? size - first - at : first + line < size ? depth - at : 0;
    }
    __device__ __forceinline__ float4 fetched(index_t k) const {
        if (ALONG_K) return four(from + k, left - k, whole);
        return four(from + k * step, k + threadIdx.x / 32 < depth ? left : 0, whole);
    }
    __device__ __forceinline__ void store(float4 v, Strip &strip) const {
        if (ALONG_K) {                                       /* columns become rows: they are read along them */
            const int i = threadIdx.x / 2, s = threadIdx.x % 2 * 4;
            strip[s][i] = v.x;
            strip[s + 1][i] = v.y;
            strip[s + 2][i] = v.z;
            strip[s + 3][i] = v.w;
        } else {
            *(float4 *)&strip[threadIdx.x / 32][threadIdx.x % 32 * 4] = v;
        }
    }
};

/* The results of a thread: rows 4 * down ... + 3 and 64 more below, columns 4 * right ... + 3 and 64 further. A warp has
 * 4 x 8 adjacent squares of this kind, so it reads few different elements. */
struct Results {
    float sum[8][8];
    int right, down;
    __device__ __forceinline__ Results() {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        right = warp % 2 * 8 + lane % 8;
        down = warp / 2 * 4 + lane / 8;
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
    /* y is contiguous; the tile begins at (top, left). */
    __device__ __forceinline__ void store(float *y, index_t top, index_t left, index_t rows, index_t cols) const {
        const bool whole = cols % 4 == 0 && (size_t)y % 16 == 0;
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const index_t row = top + 4 * down + i % 4 + i / 4 * 64, col = left + 4 * right + half * 64;
                if (row >= rows) continue;
                const float *v = &sum[i][4 * half];
                if (whole && col + 4 <= cols) {
                    *(float4 *)&y[row * cols + col] = make_float4(v[0], v[1], v[2], v[3]);
                } else {
#pragma unroll
                    for (int j = 0; j < 4; j++)
                        if (col + j < cols) y[row * cols + col + j] = v[j];
                }
            }
    }
};
#endif
