/* The inner loops of convolution, in C because Cython has no vector types.
 *
 * tile: the register block all three dense convolution kernels share. Convolution, its input gradient and its weight
 *   gradient are one formula with the roles exchanged:   out[r][:] += sum_j  src_r[off[j]] * mat[j][:]
 *                   r              j                   src        mat
 *     forward       output pixel   (tap, channel)      input      weights, contiguous output channels
 *     input grad    input pixel    (tap, channel)      dy         weights, contiguous input channels
 *     weight grad   (tap, channel) output pixel        input      dy, contiguous output channels
 *   Because src is read through a base pointer per row plus one offset per step, no im2col matrix is ever written.
 *   R x NV vector accumulators stay in registers: each step is NV loads, R broadcasts and R * NV multiply-adds.
 * transpose: between channel-major tensors (NCHW) and the pixel-major `mat` and `out` above.
 * copy: rows of a few dozen elements.
 * flat, dots: one-channel loops for depthwise convolution (see conv_flat.pxd).
 *
 * The file includes itself once per element type.
 */
#ifndef REAL
#ifndef FLOWEDU_CONV_TILE_H
#define FLOWEDU_CONV_TILE_H
#include <stdint.h>
#include <string.h>
#include "vector_bytes.h"

/* Register budget: R * NV accumulators, NV loaded vectors, a broadcast. 32 vector registers, or 16. */
#if defined(__AVX512F__) || defined(__aarch64__)
enum { FE_NV = 4, FE_ROWS1 = 14, FE_ROWS2 = 14, FE_ROWS3 = 7, FE_ROWS4 = 7, FE_ROWS = 14 };
#else
enum { FE_NV = 2, FE_ROWS1 = 10, FE_ROWS2 = 6, FE_ROWS3 = 4, FE_ROWS4 = 4, FE_ROWS = 10 };
#endif
static inline int fe_tile_rows(int nv) {
    return nv == 1 ? FE_ROWS1 : nv == 2 ? FE_ROWS2 : nv == 3 ? FE_ROWS3 : FE_ROWS4;
}
#define FE_UNROLL _Pragma("GCC unroll 16")

/* A matrix, and a prefetch: at every step `tile` prefetches the cache line at `soon`, which advances by
 * `pace` bytes, into the L2 cache. (Prefetching past the end of an array is harmless.) */
typedef struct { const void *at; const char *soon; int64_t pace; } fe_mat;

/* memcpy for the short rows of images: inline whole vectors, where the last one overlaps the one before. */
static inline void fe_copy(void *to, const void *from, int64_t bytes) {
    char *d = (char *)to;
    const char *s = (const char *)from;
#define FE_COPY(N)                                                                                                   \
    if (bytes >= N) {                                                                                                \
        for (int64_t i = 0; i + N <= bytes; i += N) memcpy(d + i, s + i, N);                                         \
        memcpy(d + bytes - N, s + bytes - N, N);                                                                     \
        return;                                                                                                      \
    }
    FE_COPY(FE_VBYTES)
#if FE_VBYTES > 32
    FE_COPY(32)
#endif
#if FE_VBYTES > 16
    FE_COPY(16)
#endif
    FE_COPY(8)
    FE_COPY(4)
#undef FE_COPY
}

#define REAL float
#define F(name) name##_f
#define LANES (FE_VBYTES / 4)
#define INDEX int32_t
#include "conv_tile.h"
#undef REAL
#undef F
#undef LANES
#undef INDEX
#define REAL double
#define F(name) name##_d
#define LANES (FE_VBYTES / 8)
#define INDEX int64_t
#include "conv_tile.h"
#undef REAL
#undef F
#undef LANES
#undef INDEX
#endif
#else

enum { F(fe_lanes) = LANES };
typedef REAL F(vec) __attribute__((vector_size(FE_VBYTES), aligned(sizeof(REAL)), may_alias));
typedef INDEX F(mask) __attribute__((vector_size(FE_VBYTES)));
#define VEC F(vec)

/* Only `rows` <= R rows are real: the others repeat a pointer and are not stored. */
#define TILE(NV, R)                                                                                                  \
    static __attribute__((noinline)) void F(fe_tile_##NV##_##R)(REAL *const *base, int rows,                   \
            const int64_t *off, int64_t steps, const fe_mat *from, REAL *out, int accumulate) {                      \
        const REAL *mat = (const REAL *)from->at;                                                                    \
        const char *soon = from->soon;                                                                               \
        int64_t pace = from->pace;                                                                                   \
        VEC acc[R][NV];                                                                                              \
        const REAL *b[R];                                                                                            \
        FE_UNROLL for (int r = 0; r < R; r++) {                                                                      \
            b[r] = base[r < rows ? r : rows - 1];                                                                    \
            FE_UNROLL for (int v = 0; v < NV; v++)                                                                   \
                acc[r][v] = accumulate && r < rows ? *(const VEC *)(out + (r * NV + v) * LANES) : (VEC){0};          \
        }                                                                                                            \
        for (int64_t j = 0; j < steps; j++, mat += NV * LANES, soon += pace) {                                       \
            VEC m[NV];                                                                                               \
            int64_t o = off[j];                                                                                      \
            __builtin_prefetch(soon, 0, 2);                                                                          \
            FE_UNROLL for (int v = 0; v < NV; v++) m[v] = *(const VEC *)(mat + v * LANES);                           \
            FE_UNROLL for (int r = 0; r < R; r++) {                                                                  \
                REAL s = b[r][o];                                                                                    \
                FE_UNROLL for (int v = 0; v < NV; v++) acc[r][v] += s * m[v];                                        \
            }                                                                                                        \
        }                                                                                                            \
        FE_UNROLL for (int r = 0; r < R; r++)                                                                        \
            if (r < rows) FE_UNROLL for (int v = 0; v < NV; v++) *(VEC *)(out + (r * NV + v) * LANES) = acc[r][v];   \
    }
#if defined(__AVX512F__) || defined(__aarch64__)
TILE(1, 7) TILE(1, 14) TILE(2, 7) TILE(2, 14) TILE(3, 4) TILE(3, 7) TILE(4, 4) TILE(4, 7)
#define TILE_CASE(NV, HALF, ALL) (rows <= HALF ? F(fe_tile_##NV##_##HALF) : F(fe_tile_##NV##_##ALL))
#define TILE_CHOICE (nv == 1 ? TILE_CASE(1, 7, 14) : nv == 2 ? TILE_CASE(2, 7, 14) : nv == 3 ? TILE_CASE(3, 4, 7)    \
                                                                                    : TILE_CASE(4, 4, 7))
#else
TILE(1, 5) TILE(1, 10) TILE(2, 3) TILE(2, 6)
#define TILE_CASE(NV, HALF, ALL) (rows <= HALF ? F(fe_tile_##NV##_##HALF) : F(fe_tile_##NV##_##ALL))
#define TILE_CHOICE (nv == 1 ? TILE_CASE(1, 5, 10) : TILE_CASE(2, 3, 6))
#endif
/* out (rows, nv * LANES) = or += the sum above; rows <= fe_tile_rows(nv). */
static inline void F(fe_tile)(int nv, REAL *const *base, int rows, const int64_t *off, int64_t steps,
                              const fe_mat *mat, REAL *out, int accumulate) {
    TILE_CHOICE(base, rows, off, steps, mat, out, accumulate);
}
#undef TILE
#undef TILE_CASE
#undef TILE_CHOICE

/* dst (nc rows of LANES) = transpose of src (nr rows of LANES; missing rows count as zeros). Interleaving the
 * two halves of the rows log2(LANES) times is a transposition. */
static inline void F(transpose_block)(const REAL *src, int64_t lds, int64_t nr, REAL *dst, int64_t ldd, int64_t nc) {
    VEC a[LANES], b[LANES];
    F(mask) lo, hi;
    FE_UNROLL for (int i = 0; i < LANES; i++) {
        lo[i] = i / 2 + (i % 2) * LANES;
        hi[i] = LANES / 2 + i / 2 + (i % 2) * LANES;
    }
    if (nr == LANES) {
        FE_UNROLL for (int i = 0; i < LANES; i++) a[i] = *(const VEC *)(src + i * lds);
    } else {
        FE_UNROLL for (int i = 0; i < LANES; i++) a[i] = i < nr ? *(const VEC *)(src + i * lds) : (VEC){0};
    }
    FE_UNROLL for (int s = 1; s < LANES; s *= 2) {
        FE_UNROLL for (int i = 0; i < LANES / 2; i++) {
#ifdef __clang__
            FE_UNROLL for (int k = 0; k < LANES; k++) {
                b[2 * i][k] = k % 2 ? a[i + LANES / 2][k / 2] : a[i][k / 2];
                b[2 * i + 1][k] = k % 2 ? a[i + LANES / 2][(LANES + k) / 2] : a[i][(LANES + k) / 2];
            }
#else
            b[2 * i] = __builtin_shuffle(a[i], a[i + LANES / 2], lo);
            b[2 * i + 1] = __builtin_shuffle(a[i], a[i + LANES / 2], hi);
#endif
        }
        FE_UNROLL for (int i = 0; i < LANES; i++) a[i] = b[i];
    }
    if (nc == LANES) {
        FE_UNROLL for (int i = 0; i < LANES; i++) *(VEC *)(dst + i * ldd) = a[i];
    } else {
        FE_UNROLL for (int i = 0; i < LANES; i++)
            if (i < nc) *(VEC *)(dst + i * ldd) = a[i];
    }
}

/* dst[c][r] = src[r][c] for r < rows, c < cols. One side is scratch whose rows are whole vectors: the
 * destination (wide_dst; its extra lanes become zero) or the source. A partial block at the end of the other
 * side is moved back to overlap the block before. */
static void F(fe_transpose)(const REAL *src, int64_t lds, int64_t rows, int64_t cols, REAL *dst, int64_t ldd,
                            int wide_dst) {
    int64_t ragged = wide_dst ? cols : rows;
    if (ragged < LANES) {
        int64_t all = wide_dst ? (rows + LANES - 1) / LANES * LANES : rows;
        for (int64_t c = 0; c < cols; c++)
            for (int64_t r = 0; r < all; r++) dst[c * ldd + r] = r < rows ? src[r * lds + c] : 0;
        return;
    }
    for (int64_t r = 0; r < rows; r += LANES) {
        int64_t r0 = !wide_dst && r + LANES > rows ? rows - LANES : r;
        int64_t nr = r0 + LANES > rows ? rows - r0 : LANES;
        for (int64_t c = 0; c < cols; c += LANES) {
            int64_t c0 = wide_dst && c + LANES > cols ? cols - LANES : c;
            int64_t nc = c0 + LANES > cols ? cols - c0 : LANES;
            F(transpose_block)(src + r0 * lds + c0, lds, nr, dst + c0 * ldd + r0, ldd, nc);
        }
    }
}

/* acc[q] += sum_t w[t] * x[q + off[t]]; n is rounded up to whole vectors, so the buffers are padded. */
#define FLAT(T)                                                                                                      \
    static void F(flat_##T)(REAL *acc, const REAL *x, const int64_t *off, const REAL *w, int64_t n) {                \
        const REAL *p[T];                                                                                            \
        VEC v[T];                                                                                                    \
        FE_UNROLL for (int t = 0; t < T; t++) p[t] = x + off[t], v[t] = (VEC){0} + w[t];                             \
        for (int64_t q = 0; q < n; q += LANES) {                                                                     \
            VEC s = *(VEC *)(acc + q);                                                                               \
            FE_UNROLL for (int t = 0; t < T; t++) s += v[t] * *(const VEC *)(p[t] + q);                              \
            *(VEC *)(acc + q) = s;                                                                                   \
        }                                                                                                            \
    }                                                                                                                \
    static void F(dots_##T)(REAL *dw, const REAL *x, const int64_t *off, const REAL *y, int64_t n) {                 \
        const REAL *p[T];                                                                                            \
        VEC s[T];                                                                                                    \
        FE_UNROLL for (int t = 0; t < T; t++) p[t] = x + off[t], s[t] = (VEC){0};                                    \
        for (int64_t q = 0; q < n; q += LANES) {                                                                     \
            VEC v = *(const VEC *)(y + q);                                                                           \
            FE_UNROLL for (int t = 0; t < T; t++) s[t] += v * *(const VEC *)(p[t] + q);                              \
        }                                                                                                            \
        FE_UNROLL for (int t = 0; t < T; t++) {                                                                      \
            REAL sum = 0;                                                                                            \
            for (int i = 0; i < LANES; i++) sum += s[t][i];                                                          \
            dw[t] += sum;                                                                                            \
        }                                                                                                            \
    }
FLAT(9) FLAT(5) FLAT(3) FLAT(1)
#undef FLAT

static void F(fe_flat)(REAL *acc, const REAL *x, const int64_t *off, const REAL *w, int64_t taps, int64_t n) {
    int64_t t = 0;
    for (; taps - t >= 9; t += 9) F(flat_9)(acc, x, off + t, w + t, n);
    for (; taps - t >= 5; t += 5) F(flat_5)(acc, x, off + t, w + t, n);
    for (; taps - t >= 3; t += 3) F(flat_3)(acc, x, off + t, w + t, n);
    for (; t < taps; t++) F(flat_1)(acc, x, off + t, w + t, n);
}

/* dw[t] += sum_q y[q] * x[q + off[t]] */
static void F(fe_dots)(REAL *dw, const REAL *x, const int64_t *off, const REAL *y, int64_t taps, int64_t n) {
    int64_t t = 0;
    for (; taps - t >= 9; t += 9) F(dots_9)(dw + t, x, off + t, y, n);
    for (; taps - t >= 5; t += 5) F(dots_5)(dw + t, x, off + t, y, n);
    for (; taps - t >= 3; t += 3) F(dots_3)(dw + t, x, off + t, y, n);
    for (; t < taps; t++) F(dots_1)(dw + t, x, off + t, y, n);
}
#undef VEC
#endif
