/* resize2d and its adjoint on NCHW arrays: every output pixel is a mixture of two rows and two columns of the input. */
#include "view.h"

struct Taps {                          /* of a plane (h, w) and its resized plane (oh, ow) */
    index_t planes, h, w, oh, ow, interpolate;
    const int64_t *places;             /* first and second row of each output row; then columns */
    const double *shares;              /* weights of the second row or column, in the same order */
};

struct Mixture { index_t a, b, row1, row2, col1, col2; T down, right; };
__device__ __forceinline__ Mixture mixture(const Taps &t, index_t i) {
    const index_t r = i / t.ow % t.oh, c = i % t.ow;
    const int64_t *cols = t.places + 2 * t.oh;
    const index_t row1 = t.places[r], row2 = t.interpolate ? t.places[t.oh + r] : 0, first = i / (t.oh * t.ow) * t.h;
    return {(first + row1) * t.w, (first + row2) * t.w, row1, row2, cols[c], t.interpolate ? cols[t.ow + c] : 0,
            t.interpolate ? (T)t.shares[r] : (T)0, t.interpolate ? (T)t.shares[t.oh + c] : (T)0};
}

extern "C" __global__ void resize2d(Taps t, const T *x, T *y) {
    for (EACH(i, t.planes * t.oh * t.ow)) {
        const Mixture m = mixture(t, i);
        if (!t.interpolate) {
            y[i] = x[m.a + m.col1];
            continue;
        }
        const T left = x[m.a + m.col1] * (1 - m.down) + x[m.b + m.col1] * m.down;
        const T right = x[m.a + m.col2] * (1 - m.down) + x[m.b + m.col2] * m.down;
        y[i] = left * (1 - m.right) + right * m.right;
    }
}

/* dx is initially 0. Many output pixels may add to one input pixel, in any order. */
extern "C" __global__ void resize2d_grad(Taps t, const T *dy, T *dx) {
    for (EACH(i, t.planes * t.oh * t.ow)) {
        const Mixture m = mixture(t, i);
        if (!t.interpolate) {
            atomicAdd(dx + m.a + m.col1, dy[i]);
            continue;
        }
        const T left = dy[i] * (1 - m.right), right = dy[i] * m.right;
        atomicAdd(dx + m.a + m.col1, left * (1 - m.down));
        atomicAdd(dx + m.b + m.col1, left * m.down);
        atomicAdd(dx + m.a + m.col2, right * (1 - m.down));
        atomicAdd(dx + m.b + m.col2, right * m.down);
    }
}
