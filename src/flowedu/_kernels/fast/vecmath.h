/* exp, log, tanh, sigmoid, erf and gelu for float, written without branches or calls, so that the compiler
 * vectorizes a plain loop over them. (libm's own functions prevent vectorization: one call per element.) (The
 * double versions are libm's, because float64 is for accuracy, not speed. They are in
 * _kernels/core/scalarmath.h, which includes this file if it exists.)
 *
 * tests/fast/test_functions.py checks the error bounds, in units in the last place, for every float including
 * denormals. Limits are C's: exp overflows to inf and underflows through denormals to 0, log(0) = -inf, log(x
 * < 0) = NaN, NaN gives NaN. The polynomials are minimax fits, evaluated in pairs to shorten the dependency
 * chain.
 *
 * Most kernels are compiled with -fassociative-math, which may turn (x - n*hi) - n*lo into x - n*(hi + lo)
 * and lose the digits that the split into hi and lo preserves. (gcc's __builtin_assoc_barrier would forbid
 * it, but is lost in vectorized loops.) So a value that must be computed as written goes through fe_keep. If
 * FE_IN_ORDER is defined, everything is computed as written: setup.py compiles the elementwise ops so.
 */
#ifndef FLOWEDU_VECMATH_H
#define FLOWEDU_VECMATH_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__

#define FE_FN static __device__ __forceinline__
FE_FN float fe_geluf(float x) { return (x < -40.0f ? -40.0f : x) * normcdff(x); }
FE_FN float fe_gelu_slopef(float x) {
    float near = fabsf(x) > 40.0f ? 0.0f : x;                     /* avoids inf * 0; the density is 0 */
    return normcdff(x) + near * expf(-0.5f * x * x) * 0.398942280f;
}
FE_FN float fe_expf(float x) { return expf(x); }
FE_FN float fe_logf(float x) { return logf(x); }
FE_FN float fe_tanhf(float x) { return tanhf(x); }
FE_FN float fe_erff(float x) { return erff(x); }
FE_FN float fe_sigmoidf(float x) {
    float e = expf(-fabsf(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

#else

#define FE_FN static inline __attribute__((always_inline))

FE_FN int32_t fe_bits(float x) { int32_t i; memcpy(&i, &x, 4); return i; }
FE_FN float fe_float(int32_t i) { float x; memcpy(&x, &i, 4); return x; }
FE_FN float fe_absf(float x) { return fe_float(fe_bits(x) & 0x7fffffff); }
FE_FN float fe_copysignf(float x, float s) {
    return fe_float((fe_bits(x) & 0x7fffffff) | (fe_bits(s) & (int32_t)0x80000000u));
}

/* 2^n for n in [-126, 127]; the result is undefined for any other n. */
FE_FN float fe_power2(int32_t n) { return fe_float((int32_t)(((uint32_t)n + 127u) << 23)); }

/* x itself, in a form the compiler cannot rearrange: an exclusive or with a zero that the compiler cannot
 * prove to be 0. */
#ifdef FE_IN_ORDER
#define fe_keep(x, zero) (x)
#else
FE_FN float fe_keep(float x, int32_t zero) { return fe_float(fe_bits(x) ^ zero); }
#endif
FE_FN int32_t fe_zero(int32_t bits) { return (int32_t)((uint32_t)bits >> 31); } /* of a nonnegative number */

typedef struct { float q; int32_t n, zero; } fe_reduced;

/* x + rest = n*ln2 + r with |r| <= ln2/2; q = exp(r) - 1. Valid for |x| < 2^21; NaN gives q = NaN. */
FE_FN fe_reduced fe_reduce_sum(float x, float rest) {
    fe_reduced y;
    float t = x * 1.44269504f + 12582912.0f;              /* + 1.5 * 2^23: rounds to an integer in the low bits */
    y.n = (int32_t)((uint32_t)fe_bits(t) - 0x4b400000u);
    y.zero = fe_zero(fe_bits(t));
    float n = fe_keep(t, y.zero) - 12582912.0f;
    float r = fe_keep(x - n * 0.693359375f, y.zero) + (n * 2.12194440e-4f + rest), s = r * r;
    float q = (0.00139507267f * s + (0.00836902484f * r + 0.0416662022f)) * s + (0.166665182f * r + 0.5f);
    y.q = q * s + r;
    return y;
}
FE_FN fe_reduced fe_reduce(float x) { return fe_reduce_sum(x, 0.0f); }

/* x * 2^n for n in [-252, 254], rounded once. Two factors, because 2^n may exceed the range of float. NaN
 * stays NaN. */
FE_FN float fe_scale(float x, int32_t n, int32_t zero) {
    int32_t half = n >> 1;
    return fe_keep(x * fe_power2(half), zero) * fe_power2(n - half);
}

FE_FN float fe_expf(float x) {
    fe_reduced t = fe_reduce(x);
    float y = fe_scale(1.0f + t.q, t.n, t.zero);
    y = x > 88.75f ? INFINITY : y;
    return x < -104.0f ? 0.0f : y;
}

/* exp(x) for x <= 0, where n is in [-151, 0]: 2^(n + 30) is a float, and its product with FE_TINY is rounded
 * once. */
#define FE_TINY 9.31322575e-10f
FE_FN float fe_exp_lowf(float x) {
    fe_reduced t = fe_reduce(x);
    float y = fe_keep((1.0f + t.q) * fe_power2((int32_t)((uint32_t)t.n + 30u)), t.zero) * FE_TINY;
    return x < -104.0f ? 0.0f : y;
}

/* k in 2^k * m with m in [sqrt(1/2), sqrt(2)), from a positive number's bits. */
FE_FN int32_t fe_exponent(int32_t bits) { return (int32_t)((uint32_t)bits - 0x3f3504f3u) >> 23; }

/* x = 2^k * (1 + f), for x > 0. */
typedef struct { float f, k; int32_t zero; } fe_parts;

FE_FN fe_parts fe_part(float x) {
    fe_parts y;
    int small = x < 1.17549435e-38f;            /* denormals: scale them up first */
    int32_t b = fe_bits(small ? x * 8388608.0f : x);
    int32_t k = fe_exponent(b), m = (int32_t)((uint32_t)b - ((uint32_t)k << 23));
    y.zero = fe_zero(m);
    y.f = fe_float(m) - 1.0f;
    y.k = (float)(k - (small ? 23 : 0));
    return y;
}

/* log(1 + f) - f + f*f/2, for 1 + f in [sqrt(1/2), sqrt(2)]. */
FE_FN float fe_log_tail(float f) {
    float s = f * f;
    float a = (-0.166233574f * f + 0.200012268f) * s + (-0.250008210f * f + 0.333333317f);
    float b = (-0.0763449424f * f + 0.127615749f) * s + (-0.131601825f * f + 0.142017585f);
    return (b * (s * s) + a) * f * s;
}

/* log(1 + f) + k * ln2. */
FE_FN float fe_log_of(float f, float k, int32_t zero) {
    float tail = fe_log_tail(f) + k * -2.12194440e-4f;
    return k * 0.693359375f + fe_keep(f - fe_keep(0.5f * (f * f) - tail, zero), zero);
}

/* y if x > least, -inf if x = least, NaN if x < least, inf if x = inf. */
FE_FN float fe_log_ends(float x, float least, float y) {
    y = x < INFINITY ? y : x;
    float end = x == least ? -INFINITY : NAN;
    return x > least ? y : end;
}

FE_FN float fe_logf(float x) {
    fe_parts t = fe_part(x);
    return fe_log_ends(x, 0.0f, fe_log_of(t.f, t.k, t.zero));
}

/* tanh(a) = (1 - e) / (1 + e) with e = exp(-2a), computed from expm1 to keep the accuracy of small
 * arguments. */
FE_FN float fe_tanhf(float x) {
    float a = fe_absf(x);
    fe_reduced e = fe_reduce(-2.0f * a);
    float scale = fe_power2(e.n);
    float t = scale * e.q + fe_keep(scale - 1.0f, e.zero);
    float y = t / (t + 2.0f);
    y = a > 10.0f ? 1.0f : y;
    return fe_copysignf(y, x);
}

FE_FN float fe_sigmoidf(float x) {
    float e = fe_exp_lowf(-fe_absf(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

/* x times a rational function of x*x, in double to avoid accumulating float rounding errors; 1 from 3.92
 * on. */
FE_FN float fe_erff(float x) {
    double a = x, s = a * a, z = s * s;
    double p = (2.0466041033020241e-6 * s + 2.8485011814757253e-4) * z + (0.0037715930756799124 * s + 0.052766459668516996);
    double q = (3.8054071051545587e-5 * s + 0.0011636774906678648) * z + (0.014981266145776355 * s + 0.11417251622235619);
    p = p * z + (0.19056774514694482 * s + 1.1283791458003485);
    q = q * z + (0.502218998585263 * s + 1.0);
    float y = (float)(a * p / q);
    return fe_absf(x) > 3.92f ? fe_copysignf(1.0f, x) : y;
}

/* The normal distribution for a in [0, 14.5]: bell = exp(-a*a/2) * 2^raise, tail * bell = cdf(-a) * 2^raise.
 * The tail is a polynomial in t = 1/(1 + 0.49 z), z = a/sqrt(2), without the cancellation of 1 + erf. Only
 * half of a's digits are squared exactly, because an error in exp's argument grows up to 87 times; a*a = r -
 * 2 n*ln2, |r| <= ln2, avoids halving it. */
typedef struct { float bell, tail; int32_t zero; } fe_gauss;

FE_FN fe_gauss fe_gaussf(float a, uint32_t raise) {
    fe_gauss y;
    float h = fe_float(fe_bits(a) & 0x7ffff000), b = h * h, w = b * -0.721347520f + 12582912.0f;
    y.zero = fe_zero(fe_bits(w));
    float n = fe_keep(w, y.zero) - 12582912.0f;
    float r = fe_keep(b + n * 1.38671875f, y.zero) + (n * -4.24388880e-4f + fe_keep(a - h, y.zero) * (a + h)), v = r * r;
    float e = (2.17980105e-5f * v + (-2.61532026e-4f * r + 0.00260413764f)) * v + (-0.0208331478f * r + 0.125f);
    e = e * v + (1.0f - 0.5f * r);
    y.bell = fe_float((int32_t)((uint32_t)fe_bits(e) + (((uint32_t)fe_bits(w) + raise) << 23)));
    float t = 1.0f / (1.0f + a * 0.346482324f), s = t * t, z = s * s;
    float p = (-0.0278470999f * t + 0.141461894f) * s + (-0.259991825f * t + 0.171808943f);
    float q = (-0.0287507288f * t + 0.108168766f) * s + (0.118419014f * t + 0.138515577f);
    y.tail = ((p * z + q) * t + 0.138215482f) * t;
    return y;
}

/* x * cdf(x) = relu(x) - a * cdf(-a); the small cdf is scaled by 2^30, because it may be a denormal. */
FE_FN float fe_geluf(float x) {
    float a = fe_absf(x);
    fe_gauss g = fe_gaussf(a, 30u);
    float tail = a > 14.5f ? 0.0f : g.tail * g.bell, most = a > 15.0f ? 15.0f : a;     /* inf * 0 is NaN */
    return (x < 0.0f ? -0.0f : x) - fe_keep(most * tail, g.zero) * FE_TINY;
}
FE_FN float fe_gelu_slopef(float x) {
    float a = fe_absf(x);
    fe_gauss g = fe_gaussf(a, 0u);
    float bell = a > 13.0f ? 0.0f : g.bell, tail = g.tail * bell;
    return (x < 0.0f ? tail : 1.0f - tail) + (a > 13.0f ? 0.0f : x) * (bell * 0.398942280f);
}

#endif
#endif
