/* Products of a few rows with a block of a matrix, in float32: matmul_half.pyx uses them when few operations
 * follow each load. `w` has just been widened and is in the L1 cache; for a single row, bfloat16 is widened
 * in registers. The sum of a single row is split into four independent ones, because each addition waits for
 * the one before. */
#ifndef FLOWEDU_FEW_ROWS_H
#define FLOWEDU_FEW_ROWS_H
#include <stdint.h>
#include "halves.h"

typedef float fe_floats __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint32_t fe_words __attribute__((vector_size(32)));
typedef uint16_t fe_halfs __attribute__((vector_size(16), aligned(2), may_alias));

static inline fe_floats fe_eight_floats(const float *p) { return *(const fe_floats *)p; }
static inline fe_floats fe_eight_bf16(const uint16_t *p) {
    return (fe_floats)(__builtin_convertvector(*(const fe_halfs *)p, fe_words) << 16);
}

/* x . w */
#define FE_DOT(name, type, eight, one)                                                                              \
    static inline float name(int64_t n, const float *x, const type *w) {                                            \
        fe_floats a = {0}, b = {0}, c = {0}, d = {0};                                                               \
        float s = 0;                                                                                                \
        int64_t k = 0;                                                                                              \
        for (; k + 32 <= n; k += 32) {                                                                              \
            a += fe_eight_floats(x + k) * eight(w + k);                                                             \
            b += fe_eight_floats(x + k + 8) * eight(w + k + 8);                                                     \
            c += fe_eight_floats(x + k + 16) * eight(w + k + 16);                                                   \
            d += fe_eight_floats(x + k + 24) * eight(w + k + 24);                                                   \
        }                                                                                                           \
        a = (a + b) + (c + d);                                                                                      \
        for (int i = 0; i < 8; i++) s += a[i];                                                                      \
        for (; k < n; k++) s += x[k] * one(w[k]);                                                                   \
        return s;                                                                                                   \
    }
#define FE_AS_IT_IS(x) (x)
FE_DOT(fe_dot, float, fe_eight_floats, FE_AS_IT_IS)
FE_DOT(fe_dot_bf16, uint16_t, fe_eight_bf16, fe_from_bf16)
#undef FE_AS_IT_IS
#undef FE_DOT

/* y[i * step] += x[i, :] . w, for m rows of n numbers. Four rows at a time read w once. */
static inline void fe_few_dots(int64_t m, int64_t n, const float *x, int64_t ldx, const float *w, float *y, int64_t step) {
    int64_t i = 0;
    for (; i + 4 <= m; i += 4) {
        const float *a = x + i * ldx, *b = a + ldx, *c = b + ldx, *d = c + ldx;
        float s = 0, t = 0, u = 0, v = 0;
        for (int64_t k = 0; k < n; k++) {
            s += a[k] * w[k];
            t += b[k] * w[k];
            u += c[k] * w[k];
            v += d[k] * w[k];
        }
        y[i * step] += s;
        y[(i + 1) * step] += t;
        y[(i + 2) * step] += u;
        y[(i + 3) * step] += v;
    }
    for (; i < m; i++) y[i * step] += fe_dot(n, x + i * ldx, w);
}

/* y[i, :] += x[i * ldx] * w, for m rows of n numbers. */
static inline void fe_few_sums(int64_t m, int64_t n, const float *x, int64_t ldx, const float *w, float *y, int64_t ldy) {
    for (int64_t i = 0; i < m; i++) {
        const float a = x[i * ldx];
        float *to = y + i * ldy;
        for (int64_t k = 0; k < n; k++) to[k] += a * w[k];
    }
}
#endif
