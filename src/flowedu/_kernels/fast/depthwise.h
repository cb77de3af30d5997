/* The inner loops of depthwise convolution on channels-last images, in C because Cython has no vector types.
 *
 * A run is a row of pixels that all see the same kernel positions ("taps"); tap t of pixel p lies at x + p * xstep + off[t],
 * its weights at w + tap[t] * c, one per channel. The outer loop takes one vector of channels at a time and keeps the
 * weights of all taps in registers; the number of taps is a constant in each of the usual cases (9 inside, 6 at an edge,
 * 4 in a corner, 1, 2 and 4 in the gradient of stride 2), so that the loop over them disappears.
 *
 * run: y = sum over taps of w * x, then y = clip(y * scale + shift, low, high) if scale is given.
 * dots: the gradient of the weights, sums[tap] += sum over pixels of dy * x.
 * The last vector of a row overlaps the one before; fewer channels than a vector go one by one.
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

/* `taps` is a constant where this is inlined with one. */
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
    for (int64_t at = 0; at < c; at += L) {
        const int64_t i = at + L <= c ? at : c - L;
        const F(fe_dv) bottom = (F(fe_dv)){0} + low, top = (F(fe_dv)){0} + high;
        F(fe_dv) k[9], a = {0}, b = {0};
        if (taps <= 9) {
            FE_DW_UNROLL for (int t = 0; t < (taps <= 9 ? taps : 9); t++) k[t] = F(fe_dload)(w + tap[t] * c + i);
        }
        if (scaled) a = F(fe_dload)(scale + i), b = F(fe_dload)(shift + i);
        for (int64_t p = 0; p < pixels; p++) {
            const REAL *from = x + p * xstep + i;
            F(fe_dv) s = {0}, u = {0};
            if (taps <= 9) {
                FE_DW_UNROLL for (int t = 0; t < (taps <= 9 ? taps : 9); t++) {
                    if (t & 1) u += k[t] * F(fe_dload)(from + off[t]);
                    else s += k[t] * F(fe_dload)(from + off[t]);
                }
            } else {
                for (int t = 0; t < taps; t++) s += F(fe_dload)(w + tap[t] * c + i) * F(fe_dload)(from + off[t]);
            }
            s += u;
            if (scaled) s = (F(fe_dv))F(FE_CLIP)(s * a + b, bottom, top);
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
