/* Formulas of the elementwise ops outside core (ops/exact.py, ops/composed.py ...), in the form of
 * core/formulas.h, which includes this file if it exists; and functions for them that C does not have. */
#ifndef FLOWEDU_MORE_FORMULAS_H
#define FLOWEDU_MORE_FORMULAS_H
#include <math.h>
#include "scalarmath.h"

/* Beyond 40 the tail of the normal distribution is 0, and inf * 0 would be NaN. */
#define FE_LIBM_MORE(T, f)                                                     \
    FE_SLOW T fe_erf##f(T x) { return erf##f(x); }                             \
    FE_SLOW T fe_cdf##f(T x) { return (T)0.5 * erfc##f(x * (T)-0.70710678118654752); } \
    FE_SLOW T fe_gelu##f(T x) { return (x < -40 ? -40 : x) * fe_cdf##f(x); }   \
    FE_SLOW T fe_gelu_slope##f(T x) {                                          \
        T near = fabs##f(x) > 40 ? 0 : x;                                      \
        return fe_cdf##f(x) + near * exp##f((T)-0.5 * x * x) * (T)0.39894228040143268; \
    }
FE_LIBM_MORE(double, )

/* Activations. Their limits at infinity are finite where x * gate(x) would be inf * 0, so x is bounded where
 * the gate is 0 in every float type. mish: tanh(log(1 + e)) = n / (n + 2), n = e (e + 2), which is 1 from x =
 * 20 on. */
#define FE_ACTIVATIONS(T, f)                                                   \
    FE_SLOW T fe_gated##f(T x, T gate) { return (x < -10000 ? -10000 : x) * gate; } \
    FE_SLOW T fe_swish##f(T x) { return fe_gated##f(x, fe_sigmoid##f(x)); }    \
    FE_SLOW T fe_quick_gelu##f(T x) { return fe_gated##f(x, fe_sigmoid##f((T)1.702 * x)); } \
    FE_SLOW T fe_gelu_tanh##f(T x) {                                           \
        T z = x < -100 ? -100 : x;                                             \
        return z * fe_sigmoid##f((z + z * z * z * (T)0.044715) * (T)1.5957691216057308); \
    }                                                                          \
    FE_SLOW T fe_mish##f(T x) {                                                \
        T e = fe_exp##f(x > 20 ? 20 : x), n = e * (e + 2);                     \
        return fe_gated##f(x, n / (n + 2));                                    \
    }                                                                          \
    FE_SLOW T fe_hardswish##f(T x) {                                           \
        T y = x < -3 ? 0 : x + 3;                                              \
        return (x < -3 ? -3 : x) * ((y > 6 ? 6 : y) / 6);                      \
    }                                                                          \
    FE_SLOW T fe_softsign##f(T x) {                                            \
        T a = fabs##f(x), y = x / (1 + a);                                     \
        return a > (T)1e30 ? copysign##f((T)1, x) : y;                         \
    }
FE_ACTIVATIONS(double, )
FE_ACTIVATIONS(float, f)
#ifndef FLOWEDU_VECMATH_H
FE_LIBM_MORE(float, f)
#endif

/* The inverse of erf: Giles' polynomial (2012), then two Newton steps, with whichever of erf or erfc keeps
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
    return copysign(y, x);
}
FE_SLOW float fe_erfinvf(float x) { return (float)fe_erfinv(x); }

#define FE_MORE_UNARY_REAL(X)                                            \
    X(reciprocal_no_nan, a == 0 ? 0 : 1 / a)                         \
    X(softsign, FE_F(fe_softsignf, fe_softsign, a))                  \
    X(swish, FE_F(fe_swishf, fe_swish, a))                           \
    X(quick_gelu, FE_F(fe_quick_geluf, fe_quick_gelu, a))            \
    X(gelu_tanh, FE_F(fe_gelu_tanhf, fe_gelu_tanh, a))               \
    X(mish, FE_F(fe_mishf, fe_mish, a))                              \
    X(hardswish, FE_F(fe_hardswishf, fe_hardswish, a))               \
    X(tan, FE_F(tanf, tan, a))                                       \
    X(asin, FE_F(asinf, asin, a))                                    \
    X(acos, FE_F(acosf, acos, a))                                    \
    X(atan, FE_F(atanf, atan, a))                                    \
    X(sinh, FE_F(sinhf, sinh, a))                                    \
    X(cosh, FE_F(coshf, cosh, a))                                    \
    X(asinh, FE_F(asinhf, asinh, a))                                 \
    X(acosh, FE_F(acoshf, acosh, a))                                 \
    X(atanh, FE_F(atanhf, atanh, a))                                 \
    X(erf, FE_F(fe_erff, fe_erf, a))                                 \
    X(erfc, FE_F(erfcf, erfc, a))                                    \
    X(lgamma, FE_F(lgammaf, lgamma, a))                              \
    X(gelu, FE_F(fe_geluf, fe_gelu, a))                              \
    X(trunc, FE_F(truncf, trunc, a))                                 \
    X(exp2, FE_F(exp2f, exp2, a))                                    \
    X(log2, FE_F(log2f, log2, a))                                    \
    X(log10, FE_F(log10f, log10, a))                                 \
    X(erfinv, FE_F(fe_erfinvf, fe_erfinv, a))

#define FE_MORE_BINARY_ANY(X)                                            \
    X(squared_difference, (a - b) * (a - b))

#define FE_MORE_BINARY_REAL(X)                                           \
    X(atan2, FE_F2(atan2f, atan2, a, b))                             \
    X(hypot, FE_F2(hypotf, hypot, a, b))                             \
    X(fmod, FE_F2(fmodf, fmod, a, b))                                \
    X(copysign, FE_F2(copysignf, copysign, a, b))                    \
    X(gelu_grad, a * FE_F(fe_gelu_slopef, fe_gelu_slope, b))

/* Integers: core/formulas.h describes division by zero. */
#define FE_MORE_BINARY_INT(X)                                            \
    X(fmod, b == 0 || b == -1 ? 0 : a % b)                           \
    X(bit_and, a & b)                                                \
    X(bit_or, a | b)                                                 \
    X(bit_xor, a ^ b)                                                \
    X(shift_left, b < 0 || b > 63 ? 0 : (uint64_t)a << b)            \
    X(shift_right, (int64_t)a >> (b < 0 || b > 63 ? 63 : b))
#endif
