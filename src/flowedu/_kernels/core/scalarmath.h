/* Scalar functions that C has not, or not as Python has them. They may branch: loops over them are not vector code. Those of
 * floats that should be vector code are in _kernels/fast/vecmath.h, if it is there. */
#ifndef FLOWEDU_SCALARMATH_H
#define FLOWEDU_SCALARMATH_H
#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define FE_SLOW static __device__ __forceinline__
#else
#define FE_SLOW static inline
#endif

#define FE_LIBM(T, f)                                                          \
    FE_SLOW T fe_exp##f(T x) { return exp##f(x); }                             \
    FE_SLOW T fe_log##f(T x) { return log##f(x); }                             \
    FE_SLOW T fe_tanh##f(T x) { return tanh##f(x); }                           \
    FE_SLOW T fe_erf##f(T x) { return erf##f(x); }                             \
    FE_SLOW T fe_cdf##f(T x) { return (T)0.5 * erfc##f(x * (T)-0.70710678118654752); } \
    FE_SLOW T fe_gelu##f(T x) { return x * fe_cdf##f(x); }                     \
    FE_SLOW T fe_gelu_slope##f(T x) {                                          \
        return fe_cdf##f(x) + x * exp##f((T)-0.5 * x * x) * (T)0.39894228040143268; \
    }                                                                          \
    FE_SLOW T fe_sigmoid##f(T x) {                                             \
        T e = exp##f(-fabs##f(x));                                             \
        return (x < 0 ? e : 1) / (1 + e);                                      \
    }
FE_LIBM(double, )
#if __has_include("vecmath.h")
#include "vecmath.h"
#else
FE_LIBM(float, f)
#endif

/* a % b with the sign of b, exact; and floor(a / b) of the true quotient, not of the rounded one (so 1 // 0.1 is 9). */
#define FE_MODULO(T, f)                                                        \
    FE_SLOW T fe_mod##f(T a, T b) {                                            \
        T m = fmod##f(a, b);                                                   \
        return m != 0 && (b < 0) != (m < 0) ? m + b : m;                       \
    }                                                                          \
    FE_SLOW T fe_floordiv##f(T a, T b) {                                       \
        if (b == 0) return a / b;                                              \
        T m = fmod##f(a, b), q = (a - m) / b;                                  \
        if (m != 0 && (b < 0) != (m < 0)) q -= 1;                              \
        T r = floor##f(q);                                                     \
        return q - r > (T)0.5 ? r + 1 : r;                                     \
    }
FE_MODULO(double, )
FE_MODULO(float, f)

/* a to the power b in whole numbers, wrapping as C does; 1 / a^-b rounded towards zero for a negative b. */
FE_SLOW int64_t fe_ipow(int64_t a, int64_t b) {
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    uint64_t y = 1, x = (uint64_t)a;
    for (; b; b >>= 1, x *= x)
        if (b & 1) y *= x;
    return (int64_t)y;
}

/* The inverse of erf: Giles' polynomial (2012), then two steps of Newton's method on the side where erf or erfc keeps
 * its digits. */
FE_SLOW double fe_erfinv(double x) {
    if (!(fabs(x) < 1)) return fabs(x) == 1 ? x * INFINITY : NAN;
    double w = -log((1 - x) * (1 + x)), p, s = fabs(x), y;
    if (w < 5) {
        static const double c[9] = {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                                    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941};
        w -= 2.5, p = c[0];
        for (int i = 1; i < 9; i++) p = c[i] + p * w;
    } else {
        static const double c[9] = {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                                    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682};
        w = sqrt(w) - 3, p = c[0];
        for (int i = 1; i < 9; i++) p = c[i] + p * w;
    }
    y = p * s;
    for (int i = 0; i < 2; i++) {
        double e = s < 0.5 ? erf(y) - s : (1 - s) - erfc(y);
        y -= e * 0.88622692545275801365 * exp(y * y);
    }
    return x < 0 ? -y : y;
}
FE_SLOW float fe_erfinvf(float x) { return (float)fe_erfinv(x); }
#endif
