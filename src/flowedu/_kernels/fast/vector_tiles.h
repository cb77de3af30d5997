/* Vectorized float tiles, which replace the ones that call libm once per element. (Part of more_tiles.h.)
 *
 * Error bounds in units in the last place, for every float including denormals (checked by
 * tests/fast/test_functions.py). vecmath_arc.h: erfc 0.6, tan 0.8, erfinv 4, lgamma 0.55 for positive
 * arguments (others use libm), all others 0.55. vecmath_quotient.h is exact. vecmath_more.h: sin, cos 0.7,
 * pow 0.6 (x^3 1.5, x^-2 2), log2, log10 1, exp2 1.5, log1p, expm1 1.6, softplus 2. vecmath.h: log 0.8, erf
 * 0.9, exp 1, sigmoid, tanh 2.5, gelu 6.5. Processor instructions: division, sqrt 0.5; rsqrt, which uses
 * both, 1.6.
 */
#include "vecmath_arc.h"
#include "vecmath_quotient.h"

#define FE_FAST1(name) FE_TILE1(fast_##name, fe_##name##f(a), f32, float, FE_F32)

/* Vector loop for elements that satisfy `fit`; all others (and NaN) follow one by one. In blocks, because `o`
 * may be `a`. */
#define FE_FAST_WHERE(name, fit)                                                                             \
    static void tile_fast_##name##_f32(int64_t n, void *o_, const void *a_, const void *b_, const void *c_) {  \
        enum { BLOCK = 256 };                                                                                \
        for (int64_t at = 0; at < n; at += BLOCK) {                                                          \
            const int64_t m = n - at < BLOCK ? n - at : BLOCK;                                               \
            float *o = (float *)o_ + at, kept[BLOCK];                                                        \
            int32_t others = 0;                                                                              \
            memcpy(kept, (const float *)a_ + at, m * sizeof(float));                                         \
            for (int64_t i = 0; i < m; i++) others |= !fit(kept[i]);                                         \
            for (int64_t i = 0; i < m; i++) o[i] = fe_##name##_smallf(kept[i]);                              \
            for (int64_t i = 0; others && i < m; i++)                                                        \
                if (!fit(kept[i])) o[i] = name##f(kept[i]);                                                  \
        }                                                                                                    \
    }

/* The same for two operands: a vector loop for small quotients, then `slow` for the others. */
#define FE_FAST_QUOTIENT(name, slow)                                                                         \
    static void tile_fast_##name##_f32(int64_t n, void *o_, const void *a_, const void *b_, const void *c_) {  \
        enum { BLOCK = 256 };                                                                                \
        for (int64_t at = 0; at < n; at += BLOCK) {                                                          \
            const int64_t m = n - at < BLOCK ? n - at : BLOCK;                                               \
            float *o = (float *)o_ + at, a[BLOCK], b[BLOCK];                                                 \
            int32_t large = 0;                                                                               \
            memcpy(a, (const float *)a_ + at, m * sizeof(float));                                            \
            memcpy(b, (const float *)b_ + at, m * sizeof(float));                                            \
            for (int64_t i = 0; i < m; i++) {                                                                \
                large |= !fe_is_small_quotient(a[i], b[i]);                                                  \
                o[i] = fe_##name##_smallf(a[i], b[i]);                                                       \
            }                                                                                                \
            for (int64_t i = 0; large && i < m; i++)                                                         \
                if (!fe_is_small_quotient(a[i], b[i])) o[i] = slow(a[i], b[i]);                              \
        }                                                                                                    \
    }

/* In two loops, so that the second loop's arithmetic hides the latency of the first. */
static void tile_fast_erfinv_f32(int64_t n, void *o_, const void *a_, const void *b_, const void *c_) {
    enum { BLOCK = 256 };
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int64_t m = n - at < BLOCK ? n - at : BLOCK;
        float *o = (float *)o_ + at, w[BLOCK], x[BLOCK];
        memcpy(x, (const float *)a_ + at, m * sizeof(float));
        for (int64_t i = 0; i < m; i++) w[i] = fe_erfinv_logf(x[i]);
        for (int64_t i = 0; i < m; i++) o[i] = fe_erfinv_off(x[i], w[i]);
    }
}

/* Small integer powers are products, both alone (a loop for each) and mixed with others. c equals b if the
 * engine has detected that b is a single repeated value (elementwise_rows.pyx). */
#define FE_POWER(y) if (b[0] == y) { FE_LOOP(o[i] = fe_pow_fewf(a[i], y)) continue; }
static void tile_fast_pow_f32(int64_t total, void *o_, const void *a_, const void *b_, const void *c_) {
    enum { BLOCK = 1024 };
    for (int64_t at = 0; at < total; at += BLOCK) {
        const int64_t n = total - at < BLOCK ? total - at : BLOCK;
        float *o = (float *)o_ + at;
        const float *a = (const float *)a_ + at, *b = (const float *)b_ + at;
        const int alike = c_ || memcmp(b, b + 1, (n - 1) * sizeof(float)) == 0;
        int32_t few = 0;
        if (alike) { FE_POWER(3.0f) FE_POWER(2.0f) FE_POWER(4.0f) FE_POWER(-2.0f) FE_POWER(-1.0f) FE_POWER(-3.0f) }
        for (int64_t i = 0; i < n; i++) few |= fe_is_few(b[i]);
        if (few) { FE_LOOP(o[i] = fe_is_few(b[i]) ? fe_pow_fewf(a[i], b[i]) : fe_powf(a[i], b[i])) }
        else FE_LOOP(o[i] = fe_powf(a[i], b[i]))
    }
}

FE_FAST1(expm1) FE_FAST1(log1p) FE_FAST1(softplus) FE_FAST1(exp2) FE_FAST1(log2) FE_FAST1(log10)
FE_FAST1(atan) FE_FAST1(asin) FE_FAST1(acos) FE_FAST1(asinh) FE_FAST1(acosh) FE_FAST1(atanh)
FE_FAST1(sinh) FE_FAST1(cosh) FE_FAST1(erfc)
FE_FAST_WHERE(sin, fe_is_small_angle) FE_FAST_WHERE(cos, fe_is_small_angle) FE_FAST_WHERE(tan, fe_is_small_angle)
FE_FAST_WHERE(lgamma, fe_is_smooth)
FE_TILE2(fast_atan2, fe_atan2f(a, b), f32, float, FE_F32)
FE_TILE2(fast_hypot, fe_hypotf(a, b), f32, float, FE_F32)
FE_FAST_QUOTIENT(fmod, fmodf) FE_FAST_QUOTIENT(mod, fe_modf) FE_FAST_QUOTIENT(floordiv, fe_floordivf)

#define FE_FAST_ROW(name, arity) {#name, FE_F32, FE_F32, arity, tile_fast_##name##_f32},
#define FE_FAST_ROWS                                                                                         \
    FE_FAST_ROW(expm1, 1) FE_FAST_ROW(log1p, 1) FE_FAST_ROW(softplus, 1) FE_FAST_ROW(exp2, 1) FE_FAST_ROW(log2, 1) \
    FE_FAST_ROW(log10, 1) FE_FAST_ROW(sin, 1) FE_FAST_ROW(cos, 1) FE_FAST_ROW(tan, 1) FE_FAST_ROW(atan, 1)   \
    FE_FAST_ROW(asin, 1) FE_FAST_ROW(acos, 1) FE_FAST_ROW(asinh, 1) FE_FAST_ROW(acosh, 1) FE_FAST_ROW(atanh, 1) \
    FE_FAST_ROW(sinh, 1) FE_FAST_ROW(cosh, 1) FE_FAST_ROW(erfc, 1) FE_FAST_ROW(erfinv, 1) FE_FAST_ROW(pow, 2) \
    FE_FAST_ROW(lgamma, 1) FE_FAST_ROW(atan2, 2) FE_FAST_ROW(hypot, 2) FE_FAST_ROW(fmod, 2) FE_FAST_ROW(mod, 2)  \
    FE_FAST_ROW(floordiv, 2)
