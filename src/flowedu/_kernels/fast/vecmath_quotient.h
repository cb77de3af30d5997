/* Exact fmod, and Python's % and //, for float, while |a / b| is at most 2^28: then n*b, with n the integer
 * nearest to a / b, fits the digits of a double, and a - n*b is the remainder, or the remainder less b. (This
 * holds even if rounding a / b makes n one too large.) Beyond 2^28, libm's long division runs per element
 * (vector_tiles.h). */
#ifndef FLOWEDU_VECMATH_QUOTIENT_H
#define FLOWEDU_VECMATH_QUOTIENT_H
#include "vecmath_more.h"

FE_FN int fe_is_small_quotient(float a, float b) {
    return (fe_absf(a) <= fe_absf(b) * 268435456.0f) & (fe_absf(a) < INFINITY);
}

typedef struct { double n, rest; } fe_quotient;           /* |a| = n*|b| + rest, 0 <= rest < |b| */
FE_FN fe_quotient fe_divided(float x, float y) {
    fe_quotient r;
    double a = fe_absf(x), b = fe_absf(y), n = (a / b + FE_ROUND) - FE_ROUND, rest = a - n * b;
    r.n = rest < 0.0 ? n - 1.0 : n;
    r.rest = rest < 0.0 ? rest + b : rest;
    r.n = b > a ? 0.0 : r.n;                              /* covers infinite b */
    r.rest = b > a ? a : r.rest;
    return r;
}

FE_FN float fe_fmod_smallf(float a, float b) { return fe_copysignf((float)fe_divided(a, b).rest, a); }
FE_FN float fe_mod_smallf(float a, float b) {
    float m = (float)fe_divided(a, b).rest;
    return fe_copysignf(((fe_bits(a) ^ fe_bits(b)) < 0) & (m != 0.0f) ? fe_absf(b) - m : m, b);
}
FE_FN float fe_floordiv_smallf(float a, float b) {
    fe_quotient r = fe_divided(a, b);
    int32_t sign = (fe_bits(a) ^ fe_bits(b)) & (int32_t)0x80000000u;
    double n = sign && r.rest > 0.0 ? r.n + 1.0 : r.n;
    return fe_float(fe_bits((float)n) | sign);
}
#endif
