/* Tiles of float that are vector code, in the place of those that call libm once per element. (Part of more_tiles.h.)
 *
 * How far a result may be from the true one, in units in the last place, for every float there is, denormals, too (the law:
 * tests/fast/test_functions.py). Here: sin, cos 0.7, pow 0.6, log2, log10 1, exp2 1.5, log1p, expm1 1.6, softplus 2. Of
 * vecmath.h: log 0.8, erf 0.9, exp 1, sigmoid, tanh 2.5, gelu 6.5. Of the machine: division, sqrt 0.5; rsqrt, of both, 1.6.
 */
#include "vecmath_more.h"

#define FE_FAST1(name) FE_TILE1(fast_##name, fe_##name##f(a), f32, float, FE_F32)

/* Vectors up to FE_SMALL_ANGLE; what is larger (or NaN) afterwards, one by one. In blocks, as `o` may be `a`. */
#define FE_FAST_WAVE(name)                                                                                   \
    static void tile_fast_##name##_f32(int64_t n, void *o_, const void *a_, const void *b_, const void *c_) {  \
        enum { BLOCK = 256 };                                                                                \
        for (int64_t at = 0; at < n; at += BLOCK) {                                                          \
            const int64_t m = n - at < BLOCK ? n - at : BLOCK;                                               \
            float *o = (float *)o_ + at, kept[BLOCK];                                                        \
            int32_t large = 0;                                                                               \
            memcpy(kept, (const float *)a_ + at, m * sizeof(float));                                         \
            for (int64_t i = 0; i < m; i++) large |= !(fe_absf(kept[i]) <= FE_SMALL_ANGLE);                  \
            for (int64_t i = 0; i < m; i++) o[i] = fe_##name##_smallf(kept[i]);                              \
            for (int64_t i = 0; large && i < m; i++)                                                         \
                if (!(fe_absf(kept[i]) <= FE_SMALL_ANGLE)) o[i] = name##f(kept[i]);                          \
        }                                                                                                    \
    }

FE_FAST1(expm1) FE_FAST1(log1p) FE_FAST1(softplus) FE_FAST1(exp2) FE_FAST1(log2) FE_FAST1(log10)
FE_FAST_WAVE(sin) FE_FAST_WAVE(cos)
FE_TILE2(fast_pow, fe_powf(a, b), f32, float, FE_F32)

#define FE_FAST_ROW(name, arity) {#name, FE_F32, FE_F32, arity, tile_fast_##name##_f32},
#define FE_FAST_ROWS                                                                                         \
    FE_FAST_ROW(expm1, 1) FE_FAST_ROW(log1p, 1) FE_FAST_ROW(softplus, 1) FE_FAST_ROW(exp2, 1) FE_FAST_ROW(log2, 1) \
    FE_FAST_ROW(log10, 1) FE_FAST_ROW(sin, 1) FE_FAST_ROW(cos, 1) FE_FAST_ROW(pow, 2)
