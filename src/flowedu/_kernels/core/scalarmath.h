/* Scalar functions that C does not have or defines differently from Python. They may branch, so
 * loops over them are not vectorized; _kernels/fast/vecmath.h has vectorizable float versions. */
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

/* Python's a % b and a // b, exact (1 // 0.1 is 9). A zero has the sign of b (%) or a / b (//). */
#define FE_MODULO(T, f)                                                        \
    FE_SLOW T fe_mod##f(T a, T b) {                                            \
        T m = fmod##f(a, b);                                                   \
        return copysign##f(m != 0 && (b < 0) != (m < 0) ? m + b : m, b);       \
    }                                                                          \
    FE_SLOW T fe_floordiv##f(T a, T b) {                                       \
        if (b == 0) return a / b;                                              \
        T m = fmod##f(a, b), q = (a - m) / b;                                  \
        if (m != 0 && (b < 0) != (m < 0)) q -= 1;                              \
        T r = floor##f(q);                                                     \
        return copysign##f(q - r > (T)0.5 ? r + 1 : r, a / b);                 \
    }
FE_MODULO(double, )
FE_MODULO(float, f)

/* a to the power b in integers, wrapping. For negative b: 1 / a^-b, rounded towards zero. */
FE_SLOW int64_t fe_ipow(int64_t a, int64_t b) {
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    uint64_t y = 1, x = (uint64_t)a;
    for (; b; b >>= 1, x *= x)
        if (b & 1) y *= x;
    return (int64_t)y;
}
#endif
