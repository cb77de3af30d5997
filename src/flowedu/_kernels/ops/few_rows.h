/* Products of a few rows with a block of a matrix, in float32: what matmul_half.pyx does when there is little to compute for
 * each number it reads. `w` has been widened just before and lies in the first-level cache. */
#ifndef FLOWEDU_FEW_ROWS_H
#define FLOWEDU_FEW_ROWS_H
#include <stdint.h>

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
    for (; i < m; i++) {
        float s = 0;
        for (int64_t k = 0; k < n; k++) s += x[i * ldx + k] * w[k];
        y[i * step] += s;
    }
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
