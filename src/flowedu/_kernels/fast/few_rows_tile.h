/* A matrix times at most FE_FEW rows at memory speed: every element of the matrix is read once, in long runs.
 *
 * dots: for a matrix with contiguous columns (a weight (out, in), used transposed). FE_RUNS columns at a time
 * are multiplied by up to four rows; FE_DEPTH elements of these rows stay in the L1 cache for all columns.
 *
 * sums: for a matrix with contiguous rows (a weight (in, out)). Four rows at a time are added to the results;
 * FE_WIDTH columns of the results stay in the L1 cache.
 *
 * The file includes itself once per element type.
 */
#ifndef REAL
#ifndef FLOWEDU_FEW_ROWS_TILE_H
#define FLOWEDU_FEW_ROWS_TILE_H
#include "conv_tile.h"

enum { FE_FEW = 8, FE_DEPTH = 8192, FE_WIDTH = 1024 };
#if defined(__AVX512F__) || defined(__aarch64__)
enum { FE_RUNS = 4 };
#else
enum { FE_RUNS = 2 };            /* 16 vector registers: 8 sums, 2 runs, a row */
#endif

#define REAL float
#define F(name) name##_f
#define LANES (FE_VBYTES / 4)
#include "few_rows_tile.h"
#undef REAL
#undef F
#undef LANES
#define REAL double
#define F(name) name##_d
#define LANES (FE_VBYTES / 8)
#include "few_rows_tile.h"
#undef REAL
#undef F
#undef LANES
#endif
#else

#define VEC F(vec)

/* y[i, j] = or += x[i, :n] . w[j, :n], for M rows of x and R rows of w. */
#define DOTS(M, R)                                                                                                   \
    static void F(few_dots_##M##_##R)(int64_t n, const REAL *x, int64_t ldx, const REAL *w, int64_t ldw, REAL *y,    \
                                      int64_t rs, int64_t cs, int add) {                                             \
        VEC acc[M][R];                                                                                               \
        int64_t k = 0;                                                                                               \
        FE_UNROLL for (int i = 0; i < M; i++) FE_UNROLL for (int j = 0; j < R; j++) acc[i][j] = (VEC){0};            \
        for (; k + LANES <= n; k += LANES) {                                                                         \
            VEC v[R];                                                                                                \
            FE_UNROLL for (int j = 0; j < R; j++) v[j] = *(const VEC *)(w + j * ldw + k);                            \
            FE_UNROLL for (int i = 0; i < M; i++) {                                                                  \
                VEC a = *(const VEC *)(x + i * ldx + k);                                                             \
                FE_UNROLL for (int j = 0; j < R; j++) acc[i][j] += a * v[j];                                         \
            }                                                                                                        \
        }                                                                                                            \
        for (int i = 0; i < M; i++)                                                                                  \
            for (int j = 0; j < R; j++) {                                                                            \
                REAL s = 0;                                                                                          \
                for (int l = 0; l < LANES; l++) s += acc[i][j][l];                                                   \
                for (int64_t l = k; l < n; l++) s += x[i * ldx + l] * w[j * ldw + l];                                \
                y[i * rs + j * cs] = add ? y[i * rs + j * cs] + s : s;                                               \
            }                                                                                                        \
    }
DOTS(1, 1) DOTS(2, 1) DOTS(3, 1) DOTS(4, 1)
#if defined(__AVX512F__) || defined(__aarch64__)
DOTS(1, 4) DOTS(2, 4) DOTS(3, 4) DOTS(4, 4)
#define MANY(M) F(few_dots_##M##_4)
#else
DOTS(1, 2) DOTS(2, 2) DOTS(3, 2) DOTS(4, 2)
#define MANY(M) F(few_dots_##M##_2)
#endif

/* y (m, n) with strides rs, cs = x (m, depth) w (n, depth)^T; m <= FE_FEW. */
static void F(fe_few_dots)(int64_t m, int64_t n, int64_t depth, const REAL *x, int64_t ldx, const REAL *w, int64_t ldw,
                           REAL *y, int64_t rs, int64_t cs) {
    typedef void (*dots)(int64_t, const REAL *, int64_t, const REAL *, int64_t, REAL *, int64_t, int64_t, int);
    static const dots table[2][4] = {{F(few_dots_1_1), F(few_dots_2_1), F(few_dots_3_1), F(few_dots_4_1)},
                                     {MANY(1), MANY(2), MANY(3), MANY(4)}};
    const int64_t most = FE_DEPTH / (m < 4 ? m : 4) & -LANES;        /* longer runs are prefetched better */
    for (int64_t k = 0; k < depth; k += most) {
        int64_t part = depth - k < most ? depth - k : most, j = 0;
        for (int runs = FE_RUNS; runs; runs = runs > 1 ? 1 : 0)
            for (; j + runs <= n; j += runs)
                for (int64_t i = 0; i < m; i += 4)
                    table[runs > 1][(m - i < 4 ? m - i : 4) - 1](
                        part, x + i * ldx + k, ldx, w + j * ldw + k, ldw, y + i * rs + j * cs, rs, cs, k > 0);
    }
}
#undef DOTS
#undef MANY

/* y (m, n) = x (m, depth) w (depth, n); strides: ldy between rows of y, ldx between rows of x, step within a
 * row of x. */
static void F(fe_few_sums)(int64_t m, int64_t n, int64_t depth, const REAL *x, int64_t ldx, int64_t step, const REAL *w,
                           int64_t ldw, REAL *y, int64_t ldy) {
    for (int64_t j = 0; j < n; j += FE_WIDTH) {
        int64_t part = n - j < FE_WIDTH ? n - j : FE_WIDTH, k = 0;
        for (int64_t i = 0; i < m; i++) memset(y + i * ldy + j, 0, part * sizeof(REAL));
        for (; k + 4 <= depth; k += 4)
            for (int64_t i = 0; i < m; i++) {
                const REAL *a = x + i * ldx + k * step, *p = w + k * ldw + j, *q = p + ldw, *r = q + ldw, *s = r + ldw;
                const REAL a0 = a[0], a1 = a[step], a2 = a[2 * step], a3 = a[3 * step];
                REAL *to = y + i * ldy + j;
                for (int64_t l = 0; l < part; l++) to[l] += (a0 * p[l] + a1 * q[l]) + (a2 * r[l] + a3 * s[l]);
            }
        for (; k < depth; k++)
            for (int64_t i = 0; i < m; i++) {
                const REAL a = x[i * ldx + k * step], *p = w + k * ldw + j;
                REAL *to = y + i * ldy + j;
                for (int64_t l = 0; l < part; l++) to[l] += a * p[l];
            }
    }
}
#undef VEC
#endif
