/* The scalar formulas of the elementwise ops of core, for the CPU tiles (tiles.h) and CUDA kernels.
 *
 * X(name, formula): `a`, `b`, `c` are the operands, T is their type. A new op needs a line here and
 * a record in core/ops/elementwise.py. A formula has no branches (?: is allowed), so that compilers
 * can vectorize loops over it.
 */
#ifndef FLOWEDU_FORMULAS_H
#define FLOWEDU_FORMULAS_H
#include <math.h>
#include "scalarmath.h"
#if !defined(FLOWEDU_MORE_FORMULAS_H) && __has_include("more_formulas.h")
#include "more_formulas.h" /* the formulas of ops outside core */
#endif
#ifndef FLOWEDU_MORE_FORMULAS_H
#define FE_MORE_UNARY_REAL(X)
#define FE_MORE_BINARY_ANY(X)
#define FE_MORE_BINARY_REAL(X)
#define FE_MORE_BINARY_INT(X)
#endif

/* float and double versions under one name */
#ifdef __CUDACC__
#define FE_F(f32, f64, a) ((T)(sizeof(T) == 4 ? f32((float)(a)) : f64((double)(a))))
#define FE_F2(f32, f64, a, b)                                        \
    ((T)(sizeof(T) == 4 ? f32((float)(a), (float)(b)) : f64((double)(a), (double)(b))))
#else
#define FE_F(f32, f64, a) _Generic((a), float: f32, double: f64)(a)
#define FE_F2(f32, f64, a, b) _Generic((a), float: f32, double: f64)(a, b)
#endif

#define FE_UNARY_ANY(X)                                              \
    X(neg, -a)                                                       \
    X(abs, a <= 0 ? 0 - a : a)                                       \
    X(sign, (T)((a > 0) - (a < 0)))                                  \
    X(square, a * a)                                                 \
    X(relu, a < 0 ? 0 : a)

#define FE_UNARY_REAL(X)                                             \
    X(exp, FE_F(fe_expf, fe_exp, a))                                 \
    X(expm1, FE_F(expm1f, expm1, a))                                 \
    X(log, FE_F(fe_logf, fe_log, a))                                 \
    X(log1p, FE_F(log1pf, log1p, a))                                 \
    X(sqrt, FE_F(sqrtf, sqrt, a))                                    \
    X(rsqrt, 1 / FE_F(sqrtf, sqrt, a))                               \
    X(reciprocal, 1 / a)                                             \
    X(sin, FE_F(sinf, sin, a))                                       \
    X(cos, FE_F(cosf, cos, a))                                       \
    X(tanh, FE_F(fe_tanhf, fe_tanh, a))                              \
    X(ceil, FE_F(ceilf, ceil, a))                                    \
    X(floor, FE_F(floorf, floor, a))                                 \
    X(round, FE_F(rintf, rint, a))                                   \
    X(sigmoid, FE_F(fe_sigmoidf, fe_sigmoid, a))                     \
    X(softplus, (a > 0 ? a : 0) + FE_F(log1pf, log1p, FE_F(fe_expf, fe_exp, a > 0 ? -a : a))) \
    FE_MORE_UNARY_REAL(X)

#define FE_BINARY_ANY(X)                                             \
    X(add, a + b)                                                    \
    X(sub, a - b)                                                    \
    X(mul, a * b)                                                    \
    X(maximum, a > b || a != a ? a : b)                              \
    X(minimum, a < b || a != a ? a : b)                              \
    X(relu_grad, b > 0 ? a : 0)                                      \
    FE_MORE_BINARY_ANY(X)

#define FE_BINARY_REAL(X)                                            \
    X(div, a / b)                                                    \
    X(pow, FE_F2(powf, pow, a, b))                                   \
    X(floordiv, FE_F2(fe_floordivf, fe_floordiv, a, b))              \
    X(mod, FE_F2(fe_modf, fe_mod, a, b))                             \
    X(xdivy, (a == 0) & (b == b) ? 0 : a / b)                        \
    X(xlogy, (a == 0) & (b == b) ? 0 : a * FE_F(fe_logf, fe_log, b)) \
    FE_MORE_BINARY_REAL(X)

/* Integer division by zero gives 0 instead of a signal. // and % round as in Python. */
#define FE_BINARY_INT(X)                                             \
    X(floordiv, b == 0 ? 0 : b == -1 ? -a : a / b - ((a % b != 0) & ((a < 0) != (b < 0))))  \
    X(mod, b == 0 || b == -1 ? 0 : a % b + (((a % b != 0) & ((a < 0) != (b < 0))) ? b : 0)) \
    X(pow, fe_ipow(a, b))                                                                   \
    FE_MORE_BINARY_INT(X)

/* Results are 0 or 1 in int8. */
#define FE_COMPARE(X)                                                \
    X(equal, a == b)                                                 \
    X(not_equal, a != b)                                             \
    X(less, a < b)                                                   \
    X(less_equal, a <= b)                                            \
    X(greater, a > b)                                                \
    X(greater_equal, a >= b)                                         \
    X(logical_and, (a != 0) & (b != 0))                              \
    X(logical_or, (a != 0) | (b != 0))                               \
    X(logical_xor, (a != 0) ^ (b != 0))

/* The same comparisons for tensors. Results are bools. */
#define FE_COMPARE_BOOL(X)                                           \
    X(eq, equal)                                                     \
    X(ne, not_equal)                                                 \
    X(lt, less)                                                      \
    X(le, less_equal)                                                \
    X(gt, greater)                                                   \
    X(ge, greater_equal)                                             \
    X(both, logical_and)                                             \
    X(either, logical_or)                                            \
    X(differ, logical_xor)
#endif
