/* matmul by tensor cores, enabled by flow.backends.cuda.matmul.allow_tf32: operands are rounded to TF32, with
 * 10 fraction bits, and products are summed in float32. Requires sm_80 or newer.
 *
 * A tile has 64 x 64 results as in product.h, but 8 warps share it, each 32 x 16; one warp instruction
 * multiplies 16 rows of A by 8 columns of B over 8 steps of k. Rows of 72 elements in shared memory spread
 * the reads of a warp over 32 banks. */
#include "matrix.h"

enum { WIDTH = TILE + 8, DOWN = 2, RIGHT = 2 };        /* of a warp: 2 x 2 results of an instruction */

/* v rounded to the nearest TF32 value, ties away from 0. */
__device__ __forceinline__ uint32_t rounded(float v) {
#ifdef __CUDASIM__
    uint32_t bits;
    memcpy(&bits, &v, 4);
    return (bits + 0x1000u) & ~0x1fffu;
#elif __CUDA_ARCH__ >= 800
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
    return bits;
#else
    return 0;
#endif
}

/* c += a b of a warp, a 16 x 8, b 8 x 8, c 16 x 8. Lane 4 g + t has of a: rows g and g + 8 of column t, then of column t + 4;
 * of b: rows t and t + 4 of column g; of c: columns 2 t and 2 t + 1 of row g, then of row g + 8. */
__device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#ifdef __CUDASIM__
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    for (int k = 0; k < 8; k++) {
        const int more = k / 4;
        float row[2], col[2];
        for (int h = 0; h < 2; h++) {
            const uint32_t x = __shfl_sync(0xffffffffu, a[h + 2 * more], 4 * g + k % 4);
            const uint32_t y = __shfl_sync(0xffffffffu, b[more], 4 * (2 * t + h) + k % 4);
            memcpy(&row[h], &x, 4);
            memcpy(&col[h], &y, 4);
        }
        for (int i = 0; i < 4; i++) c[i] += row[i / 2] * col[i % 2];
    }
#elif __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

__device__ void tile_of_tensor_cores(const Matrix &a, const Matrix &b, const Store &c, index_t top, index_t left,
                                     index_t rows, index_t cols, index_t depth) {
    __shared__ float a_tile[DEPTH][WIDTH], b_tile[DEPTH][WIDTH];
    const Strip<Matrix> from_a(a, top, rows);
    const Strip<Matrix> from_b(b, left, cols);
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const int row = warp / 4 * 32 + g, col = warp % 4 * 16;
    float sum[DOWN][RIGHT][4] = {};
    for (index_t k = 0; k < depth; k += DEPTH) {
        from_a.load(a, k, depth, a_tile);
        from_b.load(b, k, depth, b_tile);
        __syncthreads();
#pragma unroll
        for (int s = 0; s < DEPTH; s += 8) {
            uint32_t left_part[DOWN][4], right_part[RIGHT][2];
#pragma unroll
            for (int i = 0; i < DOWN; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    left_part[i][j] = rounded(a_tile[s + t + j / 2 * 4][row + 16 * i + j % 2 * 8]);
#pragma unroll
            for (int i = 0; i < RIGHT; i++)
#pragma unroll
                for (int j = 0; j < 2; j++) right_part[i][j] = rounded(b_tile[s + t + 4 * j][col + 8 * i + g]);
#pragma unroll
            for (int i = 0; i < DOWN; i++)
#pragma unroll
                for (int j = 0; j < RIGHT; j++) multiply(sum[i][j], left_part[i], right_part[j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < DOWN; i++)
#pragma unroll
        for (int j = 0; j < RIGHT; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const index_t at = top + row + 16 * i + e / 2 * 8, to = left + col + 8 * j + 2 * t + e % 2;
                if (at < rows && to < cols) c.put(at, to, sum[i][j][e]);
            }
}

/* As `matmul` of matmul.cu. */
extern "C" __global__ void __launch_bounds__(256) matmul_tf32(
        index_t batches, Walk<2> batch, index_t rows, index_t cols, index_t depth, const T *a, index_t a_row, index_t a_col,
        const T *b, index_t b_row, index_t b_col, T *y) {
    const index_t down = (rows + TILE - 1) / TILE, right = (cols + TILE - 1) / TILE;
    for (EACH_BLOCK(t, batches * down * right)) {
        const index_t n = t / (down * right);
        index_t at[2];
        offsets(batch, n, at);
        tile_of_tensor_cores(Matrix(a + at[0], a_row, a_col), Matrix(b + at[1], b_col, b_row),
                             Store{y + n * rows * cols, cols}, t / right % down * TILE, t % right * TILE, rows, cols, depth);
    }
}
