/* Softmax of a block of attention scores between the two matrix products. A block is stored transposed,
 * (keys, w): each column is a query, so the maximum, the sum and the weights are computed lane by lane. w is
 * a multiple of the vectors' lanes. The file includes itself once per element type.
 */
#ifndef REAL
#ifndef FLOWEDU_ATTENTION_TILE_H
#define FLOWEDU_ATTENTION_TILE_H
#include "conv_tile.h"
#include "scalarmath.h"

#define FE_LANES _Pragma("GCC unroll 1")               /* constant trip count, vectorized first */
enum { FE_WIDEST = FE_NV * FE_VBYTES };                 /* bytes per row of a tile */

/* exp(x) for x <= 0 or NaN; 0 below -87, where exp is 1.6e-38. */
FE_FN float fe_shareof(float x) {
    fe_reduced e = fe_reduce(x < -87.0f ? -87.0f : x);
    float y = (1.0f + e.q) * fe_power2(e.n);
    return x < -87.0f ? 0.0f : y;
}

/* Fill hidden (keys, w) from the mask, whose element (row, key) is at row * mr + key * mk, and return how
 * many of the rows * keys scores are masked. If none or all are masked, `hidden` is not written. Columns past
 * `rows` are never masked. */
static inline int64_t fe_mask_block(const int8_t *mask, int64_t mr, int64_t mk, int64_t rows, int64_t keys, int64_t w,
                                    uint8_t *hidden) {
    int64_t count = 0;
    for (int64_t r = 0; r < (mr ? rows : 1); r++)
        if (mk == 1)
            for (int64_t s = 0; s < keys; s++) count += mask[r * mr + s] != 0;
        else
            for (int64_t s = 0; s < keys; s++) count += mask[r * mr + s * mk] != 0;
    if (!mr) count *= rows;
    if (count == 0 || count == rows * keys) return count;
    memset(hidden, 0, (size_t)(keys * w));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t s = 0; s < keys; s++) hidden[s * w + r] = mask[r * mr + s * mk] != 0;
    return count;
}

#define REAL float
#define F(name) name##_f
#define SHARE fe_shareof
#define LOG fe_logf
#include "attention_tile.h"
#undef REAL
#undef F
#undef SHARE
#undef LOG
#define REAL double
#define F(name) name##_d
#define SHARE exp
#define LOG log
#include "attention_tile.h"
#undef REAL
#undef F
#undef SHARE
#undef LOG
#endif
#else

static inline void F(fe_hide)(int64_t n, const uint8_t *restrict hidden, REAL *restrict scores) {
    for (int64_t i = 0; i < n; i++) scores[i] = hidden[i] ? (REAL)-INFINITY : scores[i];
}

/* Turn scores into weights that are not yet divided by their sum. `most` (the running maximum) and `sum` are
 * updated; earlier results must be multiplied by `again`. A column without scores so far has most = -inf and
 * sum = 0. */
static inline __attribute__((always_inline)) void F(fe_weights_of)(int64_t keys, const int w, REAL *restrict scores,
                                                                   REAL *restrict most, REAL *restrict sum, REAL *restrict again) {
    REAL base[FE_WIDEST / sizeof(REAL)], total[FE_WIDEST / sizeof(REAL)];     /* in registers, as w is a constant */
    FE_LANES for (int r = 0; r < w; r++) base[r] = most[r], total[r] = 0;
    for (int64_t s = 0; s < keys; s++)
        FE_LANES for (int r = 0; r < w; r++) base[r] = scores[s * w + r] > base[r] ? scores[s * w + r] : base[r];
    FE_LANES for (int r = 0; r < w; r++) {
        REAL greatest = base[r];
        base[r] = greatest == (REAL)-INFINITY ? 0 : greatest;
        again[r] = SHARE(most[r] - base[r]);
        most[r] = greatest;
    }
    for (int64_t s = 0; s < keys; s++)
        FE_LANES for (int r = 0; r < w; r++) {
            REAL p = SHARE(scores[s * w + r] - base[r]);
            scores[s * w + r] = p;
            total[r] += p;
        }
    FE_LANES for (int r = 0; r < w; r++) sum[r] = sum[r] * again[r] + total[r];
}

static void F(fe_weights)(int nv, int64_t keys, REAL *restrict scores, REAL *restrict most, REAL *restrict sum, REAL *restrict again) {
    enum { LANES = FE_WIDEST / FE_NV / sizeof(REAL) };
    switch (nv) {
    case 1: F(fe_weights_of)(keys, LANES, scores, most, sum, again); break;
    case 2: F(fe_weights_of)(keys, 2 * LANES, scores, most, sum, again); break;
#if FE_VBYTES > 32
    case 3: F(fe_weights_of)(keys, 3 * LANES, scores, most, sum, again); break;
    default: F(fe_weights_of)(keys, 4 * LANES, scores, most, sum, again);
#endif
    }
}

static inline void F(fe_scale_columns)(int64_t rows, int64_t w, const REAL *restrict by, REAL *restrict x) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t r = 0; r < w; r++) x[i * w + r] *= by[r];
}

static inline REAL F(fe_log_sum)(REAL most, REAL sum) { return most + LOG(sum); }

/* weights = exp(scores - lse); dscores = weights * (dweights - delta), 0 where masked. */
static inline void F(fe_weights_again)(int64_t keys, int64_t w, const REAL *restrict lse, REAL *restrict scores) {
    for (int64_t s = 0; s < keys; s++)
        for (int64_t r = 0; r < w; r++) scores[s * w + r] = SHARE(scores[s * w + r] - lse[r]);
}

static inline void F(fe_dscores)(int64_t keys, int64_t w, const REAL *restrict weights, const REAL *restrict delta,
                                 const uint8_t *restrict hidden, REAL *restrict d) {
    for (int64_t s = 0; s < keys; s++)
        for (int64_t r = 0; r < w; r++) d[s * w + r] = weights[s * w + r] * (d[s * w + r] - delta[r]);
    if (hidden)
        for (int64_t i = 0; i < keys * w; i++) d[i] = hidden[i] ? 0 : d[i];
}
#endif
