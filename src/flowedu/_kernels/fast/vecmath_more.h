/* log1p, expm1, softplus, exp2, log2, log10, sin, cos and pow for float, in the style of vecmath.h, only for
 * tiles of elementwise ops (vector_tiles.h), because they must be compiled as written (FE_IN_ORDER). sin, cos
 * and pow are computed in double, which makes argument reduction and single rounding simple.
 */
#ifndef FLOWEDU_VECMATH_MORE_H
#define FLOWEDU_VECMATH_MORE_H
#include "vecmath.h"

/* 1 + x = 2^k * (1 + f): x * 2^-k and 2^-k - 1 are exact, so only their sum is rounded. */
FE_FN float fe_log1pf(float x) {
    int32_t k = fe_exponent(fe_bits(1.0f + x));
    float shifted = fe_float((int32_t)((uint32_t)fe_bits(x) - ((uint32_t)k << 23)));
    float y = fe_log_of(shifted + (fe_power2(k > 127 ? -127 : -k) - 1.0f), (float)k, 0);
    return fe_log_ends(x, -1.0f, fe_copysignf(y, x));
}

FE_FN float fe_softplusf(float x) {
    float e = fe_exp_lowf(-fe_absf(x));
    int large = e > 0.41421356f;
    return (x > 0.0f ? x : 0.0f) + fe_log_of(large ? 0.5f * e - 0.5f : e, large ? 1.0f : 0.0f, 0);
}

/* 2^n * q + (2^n - 1); for n = 128, twice half the result. */
FE_FN float fe_expm1f(float x) {
    fe_reduced t = fe_reduce(x);
    int32_t most = t.n > 127;
    float scale = fe_power2(most ? 127 : t.n), y = scale * t.q + (scale - 1.0f);
    y = most ? y + y : y;
    y = x > 88.75f ? INFINITY : y;
    y = x < -30.0f ? -1.0f : y;
    return fe_copysignf(y, x);
}

FE_FN float fe_exp2f(float x) {
    float t = x + 12582912.0f, r = x - (t - 12582912.0f), s = r * r;
    float q = (1.53540630e-4f * r + 0.00133989223f) * s + (0.00961843549f * r + 0.0555033238f);
    q = q * s + (0.240226479f * r + 0.693147203f);
    float y = fe_scale(1.0f + q * r, (int32_t)((uint32_t)fe_bits(t) - 0x4b400000u), 0);
    y = x >= 128.0f ? INFINITY : y;
    return x < -150.0f ? 0.0f : y;
}

/* log(1 + f) = head + rest: head has 12 digits, so that its product with a constant of 12 digits is exact. */
typedef struct { float head, rest; } fe_sum;
FE_FN fe_sum fe_log_sum(float f) {
    fe_sum y;
    float h = 0.5f * (f * f), high = f - h;
    y.head = fe_float(fe_bits(high) & (int32_t)0xfffff000u);
    y.rest = (((f - high) - h) + fe_log_tail(f)) + (high - y.head);
    return y;
}

FE_FN float fe_log2f(float x) {
    fe_parts t = fe_part(x);
    fe_sum l = fe_log_sum(t.f);
    float y = (l.rest * 1.44269504f + l.head * 3.12227220e-4f) + l.head * 1.4423828125f;
    return fe_log_ends(x, 0.0f, t.k + y);
}

FE_FN float fe_log10f(float x) {
    fe_parts t = fe_part(x);
    fe_sum l = fe_log_sum(t.f);
    float y = (l.rest * 0.434294482f + l.head * -3.16896915e-5f) + t.k * 7.90341507e-7f;
    return fe_log_ends(x, 0.0f, (y + l.head * 0.434326171875f) + t.k * 0.30102920532f);
}

FE_FN int64_t fe_bitsd(double x) { int64_t i; memcpy(&i, &x, 8); return i; }
FE_FN double fe_double(int64_t i) { double x; memcpy(&x, &i, 8); return x; }
#define FE_ROUND 6755399441055744.0                       /* 1.5 * 2^52: adding it rounds to an integer in the low bits */

/* (-1)^n sin(x - (n - before)*pi), n the nearest integer to x/pi + before. Up to FE_SMALL_ANGLE the product of n
 * and pi's first part is exact. `after` equals `before`, which is -0 for sin: adding -0 costs nothing. */
#define FE_SMALL_ANGLE 1e6f
FE_FN int fe_is_small_angle(float x) { return fe_absf(x) <= FE_SMALL_ANGLE; }
FE_FN float fe_wave(float x, double before, double after) {
    double t = ((double)x * 0.31830988618379067 + before) + FE_ROUND, n = (t - FE_ROUND) - after;
    double r = ((double)x - n * 3.1415926534682512) - n * 1.2154201013012384e-10, s = r * r;
    double p = (2.6057507112264787e-6 * s - 1.9809590114472563e-4) * (s * s);
    p += 0.0083330660830193217 * s - 0.16666659544593668;
    return (float)fe_double(fe_bitsd(r * (p * s + 1.0)) ^ (int64_t)((uint64_t)fe_bitsd(t) << 63));
}
FE_FN float fe_sin_smallf(float x) { return fe_wave(x, -0.0, 0.0); }
FE_FN float fe_cos_smallf(float x) { return fe_wave(x, 0.5, 0.5); }

/* log2((1 + s) / (1 - s)), |s| <= 0.172. */
FE_FN double fe_log2_ratio(double s) {
    double u = s * s;
    double p = (0.34072803984434941 * u + 0.41167282537682683) * (u * u) + (0.57708358329109123 * u + 0.96179667334995853);
    return (p * u + 2.8853900817900803) * s;
}

/* log2(a) for a > 0: k + log2(m); for 0 and inf, values whose products exceed every exponent. */
FE_FN double fe_log2_wide(float a) {
    int small = a < 1.17549435e-38f;
    int32_t b = fe_bits(small ? a * 8388608.0f : a), k = fe_exponent(b);
    double m = fe_float((int32_t)((uint32_t)b - ((uint32_t)k << 23)));
    double y = fe_log2_ratio((m - 1.0) / (m + 1.0)) + (double)(k - (small ? 23 : 0));
    y = a == 0.0f ? -1e60 : y;
    return a == INFINITY ? 1e60 : y;
}

/* 2^t = (1 + q) * scale; from 160 on beyond every float, below -160 zero after rounding to float. */
typedef struct { double q, scale; } fe_power;
FE_FN fe_power fe_power_wide(double t) {
    fe_power y;
    t = t > 160.0 ? 160.0 : t;
    t = t < -160.0 ? -160.0 : t;
    double w = t + FE_ROUND, r = t - (w - FE_ROUND), s = r * r;
    double p = (1.5297323760701075e-5 * r + 1.546144469856913e-4) * s + (0.0013333502386162767 * r + 0.009618056678524637);
    y.q = ((p * s + (0.0555041088390962 * r + 0.24022650922288757)) * r + 0.6931471805599453) * r;
    y.scale = fe_double((int64_t)(0x3ff0000000000000u + ((uint64_t)fe_bitsd(w) << 52)));
    return y;
}

/* C's pow: 1 if x = 1 or y = 0, for any other operand; the sign of x if y is odd; NaN if x < 0 and y is not
 * an integer. */
FE_FN float fe_powf(float x, float y) {
    float a = fe_absf(x);
    double l = fe_log2_wide(a), t = l * (double)y, even = 1099511627776.0, near = y;      /* larger: even */
    near = near > even ? even : near;
    near = near < -even ? -even : near;
    double w = near + FE_ROUND;
    int whole = w - FE_ROUND == near;
    fe_power e = fe_power_wide(l == 0.0 ? 0.0 : t);
    float z = (float)(e.scale * e.q + e.scale);
    z = fe_float(fe_bits(z) | (fe_bits(x) & (whole ? (int32_t)((uint32_t)fe_bitsd(w) << 31) : 0)));
    float real = whole ? z : NAN;
    z = (x < 0.0f) & (x > -INFINITY) ? real : z;
    return ((x != x) | (y != y)) & (x != 1.0f) & (y != 0.0f) ? NAN : z;
}

/* x to the power y if fe_is_few(y), as products: the most common powers in float, others in double, rounded
 * once. */
FE_FN int fe_is_few(float y) {
    float m = fe_absf(y);
    return (m == 1.0f) | (m == 2.0f) | (m == 3.0f) | (m == 4.0f);
}
FE_FN float fe_pow_fewf(float x, float y) {
    double a = x, s = a * a;
    float m = fe_absf(y), r = 1.0f / x;
    double p = m < 3.0f ? (m < 2.0f ? a : s) : s * (m < 4.0f ? a : s);
    float z = (float)(y < 0.0f ? 1.0 / p : p);
    z = y == -2.0f ? r * r : z;
    return y == 3.0f ? x * x * x : z;
}
#endif
