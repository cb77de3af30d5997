/* tan, atan, atan2, hypot, asin, acos, asinh, acosh, atanh, sinh, cosh, erfc, erfinv and lgamma for float, in
 * the style of vecmath_more.h: in double, without branches, with few polynomials over the whole range,
 * rounded once.
 */
#ifndef FLOWEDU_VECMATH_ARC_H
#define FLOWEDU_VECMATH_ARC_H
#include "vecmath_more.h"

/* x = n*pi/2 + r: tan r = p/q, or -q/p if n is odd. Valid up to FE_SMALL_ANGLE, like sin. */
FE_FN float fe_tan_smallf(float x) {
    double t = (double)x * 0.63661977236758134 + FE_ROUND, n = t - FE_ROUND;
    double r = ((double)x - n * 1.5707963267341256) - n * 6.0771005065061922e-11, s = r * r;
    double p = ((0.0010748268166575715 * s - 0.11135669077523316) * s + 1.0000000000182319) * r;
    double q = (0.015971482442343865 * s - 0.4446900226391585) * s + 1.0;
    uint64_t odd = (uint64_t)fe_bitsd(t) & 1u, other = ((uint64_t)fe_bitsd(p) ^ (uint64_t)fe_bitsd(q)) & (0u - odd);
    double y = fe_double(fe_bitsd(p) ^ (int64_t)other) / fe_double(fe_bitsd(q) ^ (int64_t)other);
    return (float)fe_double(fe_bitsd(y) ^ (int64_t)(odd << 63));
}

/* atan(t), t in [0, 1]. */
FE_FN double fe_atan_unit(double t) {
    double s = t * t, z = s * s, y = z * z;
    double p = (-0.04392841073326746 * s + 0.06685281517877424) * z + (-0.08785043282362845 * s + 0.1105077127584966);
    double q = (-0.14278576024807985 * s + 0.19999558100363982) * z + (-0.33333322488911593 * s + 0.9999999995535376);
    double h = 0.001057607438057242 * z + (-0.007030669470424213 * s + 0.021912945865448393);
    return ((h * y + p) * y + q) * t;
}
#define FE_HALF_PI 1.5707963267948966

FE_FN float fe_atanf(float x) {
    double a = fe_absf(x);
    int over = fe_absf(x) > 1.0f;
    double y = fe_atan_unit((over ? 1.0 : a) / (over ? a : 1.0));
    return fe_copysignf((float)(over ? FE_HALF_PI - y : y), x);
}

/* C's atan2, including two zeros or two infinities. */
FE_FN float fe_atan2f(float y, float x) {
    float u = fe_absf(y), v = fe_absf(x);
    int over = u > v;
    double n = over ? v : u, d = over ? u : v, t = n / d, equal = n > 0.0 ? 1.0 : 0.0;
    double z = fe_atan_unit(n == d ? equal : t);
    z = over ? FE_HALF_PI - z : z;
    z = fe_bits(x) < 0 ? 2.0 * FE_HALF_PI - z : z;
    return fe_copysignf((float)z, y);
}

/* C's hypot: inf if an operand is infinite, even if the other is NaN. Squares of floats fit the range of
 * double. */
FE_FN float fe_hypotf(float x, float y) {
    double a = x, b = y;
    float z = (float)sqrt(a * a + b * b);
    return (fe_absf(x) == INFINITY) | (fe_absf(y) == INFINITY) ? INFINITY : z;
}

/* a = |x|: asin(a) for a up to 1/2; beyond that asin(sqrt((1 - a) / 2)), which is acos(a) / 2. */
typedef struct { double y; int large; } fe_arc;
FE_FN fe_arc fe_arcf(float a) {
    fe_arc y;
    y.large = a > 0.5f;
    double s = y.large ? 0.5 - 0.5 * (double)a : (double)a * (double)a, r = y.large ? sqrt(s) : (double)a, z = s * s;
    double p = (0.014295256037820107 * s + 0.03185718889411276) * z + (0.04450870949865153 * s + 0.07500571381024686);
    p = (0.0376771383418486 * z * z + p) * z + (0.16666657639575913 * s + 1.0000000002307783);
    y.y = p * r;
    return y;
}
FE_FN float fe_asinf(float x) {
    fe_arc t = fe_arcf(fe_absf(x));
    return fe_copysignf((float)(t.large ? FE_HALF_PI - 2.0 * t.y : t.y), x);
}
FE_FN float fe_acosf(float x) {
    fe_arc t = fe_arcf(fe_absf(x));
    double y = t.large ? 2.0 * t.y : FE_HALF_PI - t.y;
    return (float)(x < 0.0f ? 2.0 * FE_HALF_PI - y : y);
}

/* log(1 + u), u >= 0; 1 + u = 2^k * (1 + f), where only f is rounded. */
FE_FN double fe_log1p_wide(double u) {
    uint64_t k = ((uint64_t)fe_bitsd(1.0 + u) - 0x3fe6a09e667f3bcdu) >> 52;
    double scale = fe_double((int64_t)(0x3ff0000000000000u - (k << 52))), f = u * scale + (scale - 1.0);
    double whole = fe_double((int64_t)(k | 0x4330000000000000u)) - 4503599627370496.0;
    double y = (fe_log2_ratio(f / (f + 2.0)) + whole) * 0.69314718055994531;
    return u < INFINITY ? y : u;
}
FE_FN float fe_asinhf(float x) {
    double a = fe_absf(x), s = a * a;
    float y = (float)fe_log1p_wide(a + s / (1.0 + sqrt(1.0 + s)));
    return fe_copysignf(fe_absf(x) < INFINITY ? y : fe_absf(x), x);
}
FE_FN float fe_acoshf(float x) {
    double d = (double)x - 1.0;
    float y = (float)fe_log1p_wide(d + sqrt(d * (d + 2.0)));
    return x >= 1.0f ? y : NAN;
}
FE_FN float fe_atanhf(float x) {
    double a = fe_absf(x);
    float y = (float)(0.5 * fe_log1p_wide(2.0 * a / (1.0 - a)));
    return fe_absf(x) <= 1.0f ? fe_copysignf(y, x) : NAN;
}

/* exp(a) - 1, a >= 0; from 160*ln2 on a value beyond every float. */
FE_FN double fe_expm1_wide(float a) {
    fe_power y = fe_power_wide((double)a * 1.4426950408889634);
    return y.scale * y.q + (y.scale - 1.0);
}
FE_FN float fe_sinhf(float x) {
    double e = fe_expm1_wide(fe_absf(x));
    return fe_copysignf((float)(0.5 * e + 0.5 * e / (e + 1.0)), x);
}
FE_FN float fe_coshf(float x) {
    double e = fe_expm1_wide(fe_absf(x)) + 1.0;
    return (float)(0.5 * e + 0.5 / e);
}

/* exp(-a*a) times a polynomial in t = 1/(1 + 0.6 a), a = |x|, clamped to 11, where the result is 0 in
 * float. */
FE_FN float fe_erfcf(float x) {
    double a = fe_absf(x) > 11.0f ? 11.0f : fe_absf(x), t = 1.0 / (1.0 + 0.6 * a), s = t * t, z = s * s, y = z * z;
    fe_power e = fe_power_wide(a * a * -1.4426950408889634);
    double p = (0.27325283607218054 * t + 0.3388242637497283) * s + (0.33850435779011906 * t - 2.332399847157908e-8);
    double q = (-1.3519399714844675 * t + 0.4612962255824633) * s + (-0.1659524237838411 * t + 0.19000990427765987);
    double h = (-0.06058023171635061 * t + 0.4052635961982235) * s + (-1.1465798699076424 * t + 1.717901335861529);
    double w = ((h * y + q * z) + p) * (e.scale * e.q + e.scale);
    return (float)(x < 0.0f ? 2.0 - w : w);
}

/* erfinv in two steps: w = -log(1 - a*a), a = |x|, then a * f(w). f is a polynomial in w for w <= 5, in
 * sqrt(w) beyond. Float suffices, because f is flat. */
FE_FN float fe_erfinv_logf(float x) { return -fe_logf((1.0f - fe_absf(x)) * (1.0f + fe_absf(x))); }
FE_FN float fe_erfinv_off(float x, float w) {
    float a = fe_absf(x), u = w - 2.5f, s = u * u, z = s * s;
    float p = (4.68131348e-7f * u - 3.46398526e-6f) * s + (-4.97241947e-6f * u + 2.18349386e-4f);
    float q = (-0.00125272639f * u - 0.00417739288f) * s + (0.246640279f * u + 1.50140936f);
    float low = ((-8.93192597e-9f * u + 2.33359672e-8f) * z + p) * z + q;
    float v = sqrtf(w) - 3.25f, t = v * v, y = t * t;
    p = (1.13908174e-4f * v - 5.16198900e-5f) * t + (-4.13259742e-4f * v + 9.99325429e-4f);
    q = (-0.00165912077f * v + 0.00247941922f) * t + (-0.00375681866f * v + 0.00537207228f);
    float high = (p * y + q) * t + (1.00525926f * v + 3.08388559f);
    y = a == 1.0f ? INFINITY : (w > 5.0f ? high : low) * a;
    return a <= 1.0f ? fe_copysignf(y, x) : NAN;
}

/* lgamma of x > 0: (t - 1)(t - 2) times a rational function, with t = x, or x + 1 below 1/2; from 2.5 on
 * Stirling's formula, with a polynomial in 1/x^2 as remainder. (For x < 0 the zeros of lgamma need more
 * digits.) */
FE_FN int fe_is_smooth(float x) { return (x > 0.0f) & (x < INFINITY); }
FE_FN float fe_lgamma_smallf(float x) {
    double t = x < 0.5f ? (double)x + 1.0 : (double)x, s = t * t, l = fe_log2_wide(x) * 0.69314718055994531;
    double p = (0.024980848026079933 * t + 4.044383718849284) * s + (36.17894247959804 * t + 67.5253512867628);
    double q = (1.3455446592624232 * t + 24.63040104724592) * s + (93.74016418979728 * t + 96.75251735325213);
    p = p * s + (29.77016492415609 * t + 2.2823423230684714);
    q = q * s + (24.773872542936257 * t + 1.0);
    double y = (t - 1.0) * (t - 2.0) * (p / q), i = 1.0 / (double)x, u = i * i;
    double w = (4.225167871368484e-4 * u - 5.477085546534187e-4) * (u * u);
    w += 7.911751677638089e-4 * u - 0.0027777302679179747;
    double z = ((double)x - 0.5) * l - (double)x + ((w * u + 0.08333333318250694) * i + 0.91893853320467274);
    y = x < 0.5f ? y - l : y;
    y = x == 1.0f ? 0.0 : y;                              /* not -0 */
    return (float)(x > 2.5f ? z : y);
}
#endif
