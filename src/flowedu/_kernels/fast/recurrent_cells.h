/* One row of a recurrent cell, forward and backward: n hidden units; the gates are consecutive arrays of `n`
 * elements.
 *
 * dh is the gradient of the row's state, without dy, the gradient of the layer's output. The part left in dh
 * is passed to the step before, together with the product of the gates' gradients. Formulas:
 * flowedu/ops/recurrent.py. The file includes itself once per element type.
 */
#ifndef REAL
#ifndef FLOWEDU_RECURRENT_CELLS_H
#define FLOWEDU_RECURRENT_CELLS_H
#include "scalarmath.h"

/* The logistic function, a quarter of a cell's time: fe_sigmoidf, except that the result stays at 1.6e-38
 * below -87. */
FE_FN float fe_gatef(float x) {
    float a = x > 87.0f ? -87.0f : -x;
    fe_reduced e = fe_reduce(a > 87.0f ? 87.0f : a);
    return 1.0f / (1.0f + (1.0f + e.q) * fe_power2(e.n));
}

#define REAL float
#define F(name) name##_f
#define SIGMOID fe_gatef
#define TANH fe_tanhf
#include "recurrent_cells.h"
#undef REAL
#undef F
#undef SIGMOID
#undef TANH
#define REAL double
#define F(name) name##_d
#define SIGMOID fe_sigmoid
#define TANH fe_tanh
#include "recurrent_cells.h"
#undef REAL
#undef F
#undef SIGMOID
#undef TANH
#endif
#else

/* gates: on entry the arguments of the activations of i, f, g, o; on exit their results. */
static inline void F(fe_lstm)(int64_t n, REAL *restrict gates, const REAL *restrict before, REAL *restrict cell,
                              REAL *restrict y) {
    REAL *restrict i = gates, *restrict f = gates + n, *restrict g = gates + 2 * n, *restrict o = gates + 3 * n;
    for (int64_t j = 0; j < n; j++) {
        REAL a = SIGMOID(i[j]), b = SIGMOID(f[j]), e = TANH(g[j]), s = SIGMOID(o[j]), c = b * before[j] + a * e;
        i[j] = a, f[j] = b, g[j] = e, o[j] = s;
        cell[j] = c;
        y[j] = s * TANH(c);
    }
}

static inline void F(fe_lstm_grad)(int64_t n, const REAL *restrict gates, const REAL *restrict before,
                                   const REAL *restrict cell, const REAL *restrict dy, const REAL *restrict dh,
                                   REAL *restrict dc, REAL *restrict dgates) {
    const REAL *restrict i = gates, *restrict f = gates + n, *restrict g = gates + 2 * n, *restrict o = gates + 3 * n;
    REAL *restrict di = dgates, *restrict df = dgates + n, *restrict dg = dgates + 2 * n, *restrict ds = dgates + 3 * n;
    for (int64_t j = 0; j < n; j++) {
        REAL d = dy[j] + dh[j], t = TANH(cell[j]), a = i[j], b = f[j], e = g[j], s = o[j];
        REAL c = dc[j] + d * s * (1 - t * t);
        di[j] = c * e * a * (1 - a);
        df[j] = c * before[j] * b * (1 - b);
        dg[j] = c * a * (1 - e * e);
        ds[j] = d * t * s * (1 - s);
        dc[j] = c * b;
    }
}

/* gates: on entry the state's products for r, z and n; on exit r, z, n and the third product. */
static inline void F(fe_gru)(int64_t n, const REAL *restrict given, REAL *restrict gates, const REAL *restrict before,
                             REAL *restrict y) {
    const REAL *restrict gr = given, *restrict gz = given + n, *restrict gn = given + 2 * n;
    REAL *restrict r = gates, *restrict z = gates + n, *restrict m = gates + 2 * n, *restrict p = gates + 3 * n;
    for (int64_t j = 0; j < n; j++) {
        REAL mixed = m[j], a = SIGMOID(gr[j] + r[j]), b = SIGMOID(gz[j] + z[j]), e = TANH(gn[j] + a * mixed);
        r[j] = a, z[j] = b, m[j] = e, p[j] = mixed;
        y[j] = e + b * (before[j] - e);
    }
}

static inline void F(fe_gru_grad)(int64_t n, const REAL *restrict gates, const REAL *restrict before,
                                  const REAL *restrict dy, REAL *restrict dh, REAL *restrict dgiven,
                                  REAL *restrict dmixed) {
    const REAL *restrict r = gates, *restrict z = gates + n, *restrict m = gates + 2 * n, *restrict p = gates + 3 * n;
    REAL *restrict dr = dgiven, *restrict dz = dgiven + n, *restrict dn = dgiven + 2 * n;
    REAL *restrict mr = dmixed, *restrict mz = dmixed + n, *restrict mn = dmixed + 2 * n;
    for (int64_t j = 0; j < n; j++) {
        REAL d = dy[j] + dh[j], a = r[j], b = z[j], e = m[j], c = d * (1 - b) * (1 - e * e);
        mr[j] = dr[j] = c * p[j] * a * (1 - a);
        mz[j] = dz[j] = d * (before[j] - e) * b * (1 - b);
        dn[j] = c;
        mn[j] = c * a;
        dh[j] = d * b;
    }
}

static inline void F(fe_rnn)(int64_t n, REAL *restrict y, int relu) {
    if (relu)
        for (int64_t j = 0; j < n; j++) y[j] = y[j] < 0 ? 0 : y[j];
    else
        for (int64_t j = 0; j < n; j++) y[j] = TANH(y[j]);
}

static inline void F(fe_rnn_grad)(int64_t n, const REAL *restrict y, const REAL *restrict dy, const REAL *restrict dh,
                                  REAL *restrict dgiven, int relu) {
    if (relu)
        for (int64_t j = 0; j < n; j++) dgiven[j] = y[j] > 0 ? dy[j] + dh[j] : 0;
    else
        for (int64_t j = 0; j < n; j++) dgiven[j] = (dy[j] + dh[j]) * (1 - y[j] * y[j]);
}
#endif
