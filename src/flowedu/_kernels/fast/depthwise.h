/* The inner loops of depthwise convolution on channels-last images, in C because Cython has no vector types.
 *
 * A run is a row of pixels that all use the same kernel positions ("taps"). Tap t of pixel p reads x + p *
 * xstep + off[t] and has the weights w + tap[t] * c, one per channel. The outer loop takes one vector of
 * channels at a time and keeps the weights of all taps in registers; the number of taps is a constant in each
 * of the usual cases (9 inside, 6 at an edge, 4 in a corner, 1, 2 and 4 in the gradient of stride 2), so that
 * the loop over taps is unrolled.
 *
 * run: y = sum over taps of w * x; if scale is given, y = clip(shift + sum over taps of (w * scale) * x, low, high).
 * dots: the gradient of the weights, sums[tap] += sum over pixels of dy * x.
 *
 * The last vector of a row overlaps the one before; if there are fewer channels than lanes, they are
 * processed one by one.
 *
 * The file includes itself once per element type.
 */
#ifndef REAL
#ifndef FLOWEDU_DEPTHWISE_H
#define FLOWEDU_DEPTHWISE_H
#include <stdint.h>
#include <string.h>
#include "clip_vector.h"
#include "vector_bytes.h"

#define FE_ALWAYS static inline __attribute__((always_inline))
#define FE_DW_UNROLL _Pragma("GCC unroll 9")

#define REAL float
#define F(name) name##_f
#include "depthwise.h"
#undef REAL
#undef F
#define REAL double
#define F(name) name##_d
#include "depthwise.h"
#undef REAL
#undef F
#endif
#else

typedef REAL F(fe_dv) __attribute__((vector_size(FE_VBYTES)));
enum { F(FE_DL) = FE_VBYTES / sizeof(REAL) };

FE_ALWAYS F(fe_dv) F(fe_dload)(const REAL *p) { F(fe_dv) v; memcpy(&v, p, sizeof v); return v; }

/* Rows of three equally spaced taps need only three addresses and a distance in registers. */
FE_ALWAYS int F(fe_is_grid)(int taps, const int64_t *off) {
    if (taps != 6 && taps != 9) return 0;
    for (int t = 0; t < taps; t += 3)
        if (off[t + 1] - off[t] != off[1] - off[0] || off[t + 2] - off[t + 1] != off[1] - off[0]) return 0;
    return 1;
}

FE_ALWAYS void F(fe_grid_of)(int taps, int scaled, REAL *y, int64_t ystep, const REAL *x, int64_t xstep, const int64_t *off,
                             const F(fe_dv) *k, int64_t pixels, F(fe_dv) shift, F(fe_dv) bottom, F(fe_dv) top) {
    const REAL *p = x + off[0], *q = x + off[3], *r = x + off[taps > 6 ? 6 : 3];
    const int64_t gap = off[1] - off[0];
    for (int64_t i = 0; i < pixels; i++, p += xstep, q += xstep, r += xstep, y += ystep) {
        F(fe_dv) a = shift + k[0] * F(fe_dload)(p), b = k[3] * F(fe_dload)(q), c = {0};
        if (taps > 6) c = k[6] * F(fe_dload)(r);
        a += k[1] * F(fe_dload)(p + gap);
        b += k[4] * F(fe_dload)(q + gap);
        if (taps > 6) c += k[7] * F(fe_dload)(r + gap);
        a += k[2] * F(fe_dload)(p + 2 * gap);
        b += k[5] * F(fe_dload)(q + 2 * gap);
        if (taps > 6) c += k[8] * F(fe_dload)(r + 2 * gap);
        a += b;
        if (taps > 6) a += c;
        if (scaled) a = (F(fe_dv))F(FE_CLIP)(a, bottom, top);
        memcpy(y, &a, sizeof a);
    }
}

/* `taps` is a compile-time constant where this function is inlined with one. */
FE_ALWAYS void F(fe_run_of)(int taps, int scaled, REAL *y, int64_t ystep, const REAL *x, int64_t xstep, const int64_t *off,
                            const REAL *w, const int32_t *tap, int64_t pixels, int64_t c, const REAL *scale,
                            const REAL *shift, REAL low, REAL high) {
    enum { L = F(FE_DL) };
    if (c < L) {
        for (int64_t p = 0; p < pixels; p++)
            for (int64_t i = 0; i < c; i++) {
                REAL s = 0;
                for (int t = 0; t < taps; t++) s += x[p * xstep + off[t] + i] * w[tap[t] * c + i];
                if (scaled) { s = s * scale[i] + shift[i]; s = s < low ? low : s; s = s > high ? high : s; }
                y[p * ystep + i] = s;
            }
        return;
    }
    const int grid = F(fe_is_grid)(taps, off);
    for (int64_t at = 0; at < c; at += L) {
        const int64_t i = at + L <= c ? at : c - L;
        const F(fe_dv) bottom = (F(fe_dv)){0} + low, top = (F(fe_dv)){0} + high;
        F(fe_dv) k[9], a = {0}, b = {0};
        if (taps <= 9) {
            FE_DW_UNROLL for (int t = 0; t < (taps <= 9 ? taps : 9); t++) k[t] = F(fe_dload)(w + tap[t] * c + i);
        }
        if (scaled) {
            b = F(fe_dload)(shift + i);
            a = F(fe_dload)(scale + i);
            if (taps <= 9) FE_DW_UNROLL for (int t = 0; t < (taps <= 9 ? taps : 9); t++) k[t] *= a;
        }
        if (grid) {
            F(fe_grid_of)(taps, scaled, y + i, ystep, x + i, xstep, off, k, pixels, b, bottom, top);
            continue;
        }
        for (int64_t p = 0; p < pixels; p++) {
            const REAL *from = x + p * xstep + i;
            F(fe_dv) s = {0}, u = {0};
            if (taps <= 9) {
                s = b;
                FE_DW_UNROLL for (int t = 0; t < (taps <= 9 ? taps : 9); t++) {
                    if (t & 1) u += k[t] * F(fe_dload)(from + off[t]);
                    else s += k[t] * F(fe_dload)(from + off[t]);
                }
            } else {
                for (int t = 0; t < taps; t++) s += F(fe_dload)(w + tap[t] * c + i) * F(fe_dload)(from + off[t]);
            }
            s += u;
            if (scaled) s = (F(fe_dv))F(FE_CLIP)(taps <= 9 ? s : s * a + b, bottom, top);
            memcpy(y + p * ystep + i, &s, sizeof s);
        }
    }
}

static void F(fe_run)(int taps, REAL *y, int64_t ystep, const REAL *x, int64_t xstep, const int64_t *off, const REAL *w,
                      const int32_t *tap, int64_t pixels, int64_t c, const REAL *scale, const REAL *shift, REAL low,
                      REAL high) {
#define FE_CASE(n) case n: if (scale) F(fe_run_of)(n, 1, y, ystep, x, xstep, off, w, tap, pixels, c, scale, shift, low, high); \
        else F(fe_run_of)(n, 0, y, ystep, x, xstep, off, w, tap, pixels, c, 0, 0, 0, 0); break;
    switch (taps) {
        FE_CASE(1) FE_CASE(2) FE_CASE(4) FE_CASE(6) FE_CASE(9)
        default: F(fe_run_of)(taps, scale != 0, y, ystep, x, xstep, off, w, tap, pixels, c, scale, shift, low, high);
    }
#undef FE_CASE
}

FE_ALWAYS void F(fe_dots_of)(int taps, REAL *sums, const REAL *dy, int64_t ystep, const REAL *x, int64_t xstep,
                             const int64_t *off, const int32_t *tap, int64_t pixels, int64_t c) {
    enum { L = F(FE_DL) };
    int64_t at = 0;
    for (; at + L <= c; at += L) {
        for (int first = 0; first < taps; first += 9) {
            const int n = taps <= 9 ? taps : taps - first < 9 ? taps - first : 9;
            F(fe_dv) s[9];
            FE_DW_UNROLL for (int t = 0; t < n; t++) s[t] = (F(fe_dv)){0};
            for (int64_t p = 0; p < pixels; p++) {
                const F(fe_dv) d = F(fe_dload)(dy + p * ystep + at);
                const REAL *from = x + p * xstep + at;
                FE_DW_UNROLL for (int t = 0; t < n; t++) s[t] += d * F(fe_dload)(from + off[first + t]);
            }
            FE_DW_UNROLL for (int t = 0; t < n; t++) {
                REAL *to = sums + tap[first + t] * c + at;
                s[t] += F(fe_dload)(to);
                memcpy(to, &s[t], sizeof s[t]);
            }
        }
    }
    for (; at < c; at++)
        for (int t = 0; t < taps; t++) {
            REAL s = 0;
            for (int64_t p = 0; p < pixels; p++) s += dy[p * ystep + at] * x[p * xstep + off[t] + at];
            sums[tap[t] * c + at] += s;
        }
}

static void F(fe_channel_dots)(int taps, REAL *sums, const REAL *dy, int64_t ystep, const REAL *x, int64_t xstep,
                               const int64_t *off, const int32_t *tap, int64_t pixels, int64_t c) {
#define FE_CASE(n) case n: F(fe_dots_of)(n, sums, dy, ystep, x, xstep, off, tap, pixels, c); break;
    switch (taps) {
        FE_CASE(1) FE_CASE(2) FE_CASE(4) FE_CASE(6) FE_CASE(9)
        default: F(fe_dots_of)(taps, sums, dy, ystep, x, xstep, off, tap, pixels, c);
    }
#undef FE_CASE
}
#endif
