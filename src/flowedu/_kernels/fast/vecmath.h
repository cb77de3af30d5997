/* exp, log, tanh, sigmoid, erf and gelu for float, written without branches or calls, so that the compiler turns a plain
 * loop over them into vector instructions. (libm's own functions stop vectorisation: one call per element.)
 * (The double versions are libm's: float64 serves exactness, not speed. They are in _kernels/core/scalarmath.h, which
 * includes this file where it is there.)
 *
 * Errors are below 3e-7 relative for every float input; limits as in C: exp overflows to inf and underflows through
 * denormals to 0, log(0) = -inf, log(x < 0) = NaN, NaN gives NaN. The polynomials are minimax fits.
 *
 * The kernels are compiled with -fassociative-math, which may turn (x - n*hi) - n*lo into x - n*(hi + lo) and lose
 * just the digits that hi and lo were split for. (gcc's __builtin_assoc_barrier would forbid it, but is lost in
 * vectorised loops.) So a value that must be computed as written goes through fe_keep.
 */
#ifndef FLOWEDU_VECMATH_H
#define FLOWEDU_VECMATH_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__

#define FE_FN static __device__ __forceinline__
FE_FN float fe_geluf(float x) { return x * normcdff(x); }
FE_FN float fe_gelu_slopef(float x) { return normcdff(x) + x * expf(-0.5f * x * x) * 0.398942280f; }
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

/* 2^n for n in [-126, 127]; any other n gives rubbish, which a NaN then swallows. */
FE_FN float fe_power2(int32_t n) { return fe_float((int32_t)((uint32_t)(n + 127) << 23)); }

/* x itself, in a form the compiler cannot rearrange: an exclusive or with a zero it does not know to be one. */
FE_FN float fe_keep(float x, int32_t zero) { return fe_float(fe_bits(x) ^ zero); }

typedef struct { float q; int32_t n, zero; } fe_reduced;

/* x = n*ln2 + r with |r| <= ln2/2; q = exp(r) - 1. x must lie in [-128, 128]; a NaN comes out as q = NaN. */
FE_FN fe_reduced fe_reduce(float x) {
    fe_reduced y;
    int32_t b = fe_bits(x * 1.44269504f + 12582912.0f);   /* + 1.5 * 2^23: rounds to an integer in the low bits */
    y.n = b - 0x4b400000;
    y.zero = (int32_t)((uint32_t)b >> 31);                /* the sign of a positive number */
    float n = (float)y.n;
    float r = fe_keep(x - n * 0.693359375f, y.zero) + n * 2.12194440e-4f;
    float q = 0.00139507267f;
    q = q * r + 0.00836902484f;
    q = q * r + 0.0416662022f;
    q = q * r + 0.166665182f;
    q = q * r + 0.5f;
    y.q = q * (r * r) + r;
    return y;
}

FE_FN float fe_expf(float x) {
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    fe_reduced t = fe_reduce(x);
    int32_t half = t.n >> 1;                    /* 2^n in two factors: n runs from -150 to 128 */
    float y = fe_float((int32_t)((uint32_t)fe_bits(1.0f + t.q) + ((uint32_t)half << 23))) * fe_power2(t.n - half);
    return x == x ? y : x;
}

FE_FN float fe_logf(float x) {
    int small = x < 1.17549435e-38f;            /* denormals: scale them up first */
    int32_t b = fe_bits(small ? x * 8388608.0f : x);
    int32_t k = (b - 0x3f3504f3) >> 23;         /* x = 2^k * m with m in [sqrt(1/2), sqrt(2)) */
    float f = fe_float(b - (int32_t)((uint32_t)k << 23)) - 1.0f;
    float kf = (float)(k - (small ? 23 : 0));
    float q = 0.0674665123f;
    q = q * f - 0.116756514f;
    q = q * f + 0.118881591f;
    q = q * f - 0.124055885f;
    q = q * f + 0.142195523f;
    q = q * f - 0.166679963f;
    q = q * f + 0.200021192f;
    q = q * f - 0.250000089f;
    q = q * f + 0.333333135f;
    float s = f * f;
    float y = (q * (s * f) - 0.5f * s + f) + kf * 0.693147181f;
    y = x > 3.40282347e38f ? x : y;             /* inf */
    y = x == 0.0f ? -INFINITY : y;
    return x >= 0.0f ? y : NAN;                 /* negative or NaN */
}

/* tanh(a) = (1 - e) / (1 + e) with e = exp(-2a): from expm1, so that small arguments lose nothing. */
FE_FN float fe_tanhf(float x) {
    float a = -2.0f * fe_absf(x);
    fe_reduced e = fe_reduce(a < -40.0f ? -40.0f : a);
    float scale = fe_power2(e.n);
    float t = scale * e.q + fe_keep(scale - 1.0f, e.zero);
    return fe_copysignf(t / (t + 2.0f), x);
}

FE_FN float fe_sigmoidf(float x) {
    float e = fe_expf(-fe_absf(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

/* Below 0.9375 an odd polynomial; above, 1 - exp(polynomial), as erfc falls like exp. */
FE_FN float fe_erff(float x) {
    float a = fe_absf(x), s = a * a;
    float p = 8.26746036e-5f;
    p = p * s - 8.11807520e-4f;
    p = p * s + 5.19882981e-3f;
    p = p * s - 0.0268584974f;
    p = p * s + 0.112836793f;
    p = p * s - 0.376126319f;
    p = p * s + 0.128379166f;
    float t = a > 4.0f ? 4.0f : a;
    float q = -1.18904845e-5f;
    q = q * t + 3.29421979e-4f;
    q = q * t - 3.66945798e-3f;
    q = q * t + 0.0238193721f;
    q = q * t - 0.106303670f;
    q = q * t - 0.635110736f;
    q = q * t - 0.128658533f;
    float large = 1.0f - fe_expf(q * t - t);
    return fe_copysignf(a < 0.9375f ? a + a * p : large, x);
}

/* The normal distribution: cdf(x), and bell = exp(-x*x/2), which both gelu and its slope are made of. The tail below
 * -|x| is bell times a polynomial in t = 1/(1 + 0.49 z), z = |x|/sqrt(2), without the cancellation of 1 + erf. */
typedef struct { float cdf, bell; } fe_gauss;

FE_FN fe_gauss fe_gaussf(float x) {
    fe_gauss y;
    float a = fe_absf(x), s = -0.5f * (x * x);
    fe_reduced e = fe_reduce(s < -87.0f ? -87.0f : s);
    y.bell = s < -87.0f ? 0.0f : (1.0f + e.q) * fe_power2(e.n);
    float t = 1.0f / (1.0f + a * 0.346482324f);
    float q = -0.0278470999f;
    q = q * t + 0.141461894f;
    q = q * t - 0.259991825f;
    q = q * t + 0.171808943f;
    q = q * t - 0.0287507288f;
    q = q * t + 0.108168766f;
    q = q * t + 0.118419014f;
    q = q * t + 0.138515577f;
    q = q * t + 0.138215482f;
    float tail = y.bell * (q * t);
    y.cdf = x < 0.0f ? tail : 1.0f - tail;
    return y;
}

FE_FN float fe_geluf(float x) { return x * fe_gaussf(x).cdf; }
FE_FN float fe_gelu_slopef(float x) {
    fe_gauss g = fe_gaussf(x);
    return g.cdf + x * (g.bell * 0.398942280f);
}

#endif
#endif
