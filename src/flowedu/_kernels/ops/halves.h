/* The 16-bit floats: their storage types and conversions. A kernel reads them into float32, computes, and
 * rounds once when it writes. */
#ifndef FLOWEDU_HALVES_H
#define FLOWEDU_HALVES_H
#include <stdint.h>
#include <string.h>

/* float16: 5 bits of exponent, 10 of fraction. */
#if defined(__FLT16_MAX__)
typedef _Float16 fe_half;
enum { FE_HAS_F16 = 1 };
#else
typedef uint16_t fe_half;   /* this compiler has no half type: tables leave float16 out */
enum { FE_HAS_F16 = 0 };
#endif
static inline float fe_from_f16(fe_half x) { return (float)x; }
static inline fe_half fe_to_f16(float x) { return (fe_half)x; }

/* bfloat16 is the upper half of a float32: kept as an integer. */
typedef uint16_t fe_bf16;
static inline float fe_from_bf16(fe_bf16 x) {
    uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, 4);
    return y;
}
static inline fe_bf16 fe_to_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (fe_bf16)(bits >> 16 | 0x40);   /* NaN stays NaN */
    return (fe_bf16)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);                   /* nearest, ties to even */
}

/* Arrays of 16-bit floats: plain loops, or for float16, which gcc does not vectorize, the loops of
 * _kernels/fast. */
#define FE_EACH(name, from, to, f) \
    static inline void name(const from *x, to *y, int64_t n) { for (int64_t i = 0; i < n; i++) y[i] = f(x[i]); }
FE_EACH(fe_widen_bf16, fe_bf16, float, fe_from_bf16)
FE_EACH(fe_round_bf16, float, fe_bf16, fe_to_bf16)
#if __has_include("halves_vector.h")
#include "halves_vector.h"
#else
FE_EACH(fe_widen_f16, fe_half, float, fe_from_f16)
FE_EACH(fe_round_f16, float, fe_half, fe_to_f16)
#endif
#endif
