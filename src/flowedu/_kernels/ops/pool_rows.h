/* Row loops of pooling, for float and double, with explicit vectors where the compiler does not vectorize. */
#ifndef FLOWEDU_POOL_ROWS_H
#define FLOWEDU_POOL_ROWS_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "conv_tile.h"

#define FE_POOL_BYTES FE_VBYTES
enum { FE_POOL_PACK = 512 };

/* Windows are traversed backwards and later matches win ties, so the first maximum or the first NaN is kept.
 * (In forward order the test "is m NaN already?" depends on a selected value, which gcc 12 does not
 * vectorize.) Visiting an element twice changes nothing, so padding repeats the nearest real element, which
 * is always in the same window. max_row: one output row; x is the first real row of its windows; k encodes
 * the tap as (row << 16) + column. */
#define TAKES(v, m) (((v) >= (m)) | ((v) != (v)))
#define POOL_LOOPS(T, I, S)                                                                                         \
static inline __attribute__((always_inline)) void max_pairs_##S(const T *restrict a, const T *restrict b,           \
        T *restrict y, int32_t *restrict at, const int32_t *pos, int64_t n, int32_t first, int32_t width) {         \
    for (int64_t i = 0; i < n; i++) {                                                                               \
        T a0 = a[2 * i], a1 = a[2 * i + 1], b0 = b[2 * i], m = b[2 * i + 1];                                        \
        int32_t p = first + (pos ? pos[i] : 2 * (int32_t)i), k = p + width + 1;                                     \
        k = TAKES(b0, m) ? p + width : k;                                                                           \
        m = TAKES(b0, m) ? b0 : m;                                                                                  \
        k = TAKES(a1, m) ? p + 1 : k;                                                                               \
        m = TAKES(a1, m) ? a1 : m;                                                                                  \
        k = TAKES(a0, m) ? p : k;                                                                                   \
        m = TAKES(a0, m) ? a0 : m;                                                                                  \
        y[i] = m;                                                                                                   \
        at[i] = k;                                                                                                  \
    }                                                                                                               \
}                                                                                                                   \
static void max_halves_##S(const T *restrict a, const T *restrict b, T *restrict y, int32_t *restrict at,           \
                           int64_t n, int32_t first, int32_t width) {                                               \
    max_pairs_##S(a, b, y, at, 0, n, first, width);                                                                 \
}                                                                                                                   \
/* Rows too short for vectors, end to end in a buffer first: `rows` output rows of n, at most FE_POOL_PACK in all. */\
static void max_packed_##S(const T *x, T *restrict y, int32_t *restrict at, const int32_t *pos, int64_t rows,       \
                           int64_t n, int32_t first, int32_t width) {                                               \
    T a[2 * FE_POOL_PACK], b[2 * FE_POOL_PACK];                                                                     \
    for (int64_t t = 0; t < rows; t++) {                                                                            \
        fe_copy(a + 2 * n * t, x + 2 * width * t, 2 * n * sizeof(T));                                               \
        fe_copy(b + 2 * n * t, x + 2 * width * t + width, 2 * n * sizeof(T));                                       \
    }                                                                                                               \
    max_pairs_##S(a, b, y, at, pos, rows * n, first, width);                                                        \
}                                                                                                                   \
enum { LANES_##S = FE_POOL_BYTES / sizeof(T) };                                                                     \
typedef T vec_##S __attribute__((vector_size(FE_POOL_BYTES), aligned(sizeof(T)), may_alias));                       \
typedef I int_##S __attribute__((vector_size(FE_POOL_BYTES)));                                                      \
typedef int32_t at_##S __attribute__((vector_size(4 * LANES_##S), aligned(4), may_alias));                          \
static inline __attribute__((always_inline)) vec_##S every_##S(const T *x, int64_t step) {                          \
    if (step == 1) return *(const vec_##S *)x;                                                                      \
    vec_##S v;                                                                                                      \
    for (int i = 0; i < LANES_##S; i++) v[i] = x[i * step];                                                         \
    return v;                                                                                                       \
}                                                                                                                   \
static inline __attribute__((always_inline)) void max_step_##S(const T *x, int64_t pitch, int rows, int cols,       \
        int64_t step, T *y, int32_t *at, int64_t n, int32_t top, int32_t left, int32_t width) {                     \
    for (int64_t u = 0; u < n; u += LANES_##S) {                                                                    \
        int64_t q = u + LANES_##S <= n || n < LANES_##S ? u : n - LANES_##S;                                        \
        vec_##S m = (vec_##S){0} - (T)INFINITY;                                                                     \
        int_##S k = {0}, p;                                                                                         \
        for (int i = rows - 1; i >= 0; i--)                                                                         \
            for (int j = cols - 1; j >= 0; j--) {                                                                   \
                vec_##S v = every_##S(x + i * pitch + q * step + j, step);                                          \
                int_##S c = TAKES(v, m);                                                                            \
                m = (vec_##S)((c & (int_##S)v) | (~c & (int_##S)m));                                                \
                k = (c & (I)(i * 65536 + j)) | (~c & k);                                                            \
            }                                                                                                       \
        for (int i = 0; i < LANES_##S; i++) p[i] = (I)((q + i) * step) - left;                                      \
        p += k & 65535;                                                                                             \
        p &= ~(p < 0);                                                                                              \
        p = ((p < width) & p) | (~(p < width) & (width - 1));                                                       \
        at_##S found = __builtin_convertvector(p + (top + (k >> 16)) * width, at_##S);                              \
        if (n < LANES_##S) {                                                                                        \
            memcpy(y, &m, n * sizeof(T));                                                                           \
            memcpy(at, &found, n * sizeof(int32_t));                                                                \
        } else {                                                                                                    \
            *(vec_##S *)(y + q) = m;                                                                                \
            *(at_##S *)(at + q) = found;                                                                            \
        }                                                                                                           \
    }                                                                                                               \
}                                                                                                                   \
static void max_row_##S(const T *x, int64_t pitch, int rows, int cols, int64_t step, T *y, int32_t *at,             \
                        int64_t n, int32_t top, int32_t left, int32_t width) {                                      \
    if (step == 1) max_step_##S(x, pitch, rows, cols, 1, y, at, n, top, left, width);                               \
    else if (step == 2) max_step_##S(x, pitch, rows, cols, 2, y, at, n, top, left, width);                          \
    else max_step_##S(x, pitch, rows, cols, step, y, at, n, top, left, width);                                      \
}                                                                                                                   \
static void sum_halves_##S(const T *restrict a, const T *restrict b, T *restrict y, int64_t n) {                    \
    for (int64_t i = 0; i < n; i++) y[i] = (T)0.25 * ((a[2 * i] + a[2 * i + 1]) + (b[2 * i] + b[2 * i + 1]));       \
}                                                                                                                   \
static void spread_halves_##S(const T *restrict y, T *restrict a, T *restrict b, int64_t n) {                       \
    for (int64_t i = 0; i < n; i++) {                                                                               \
        T v = (T)0.25 * y[i];                                                                                       \
        a[2 * i] = v; a[2 * i + 1] = v; b[2 * i] = v; b[2 * i + 1] = v;                                             \
    }                                                                                                               \
}
POOL_LOOPS(float, int32_t, f)
POOL_LOOPS(double, int64_t, d)
#undef TAKES
#undef POOL_LOOPS
#endif
