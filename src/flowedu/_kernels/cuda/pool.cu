/* Max and average pooling on NCHW arrays, and their gradients: a thread for each result. */
#include "view.h"

struct Pool { index_t planes, h, w, oh, ow, kh, kw, sh, sw, top, left; };

struct Window { index_t row, row_end, col, col_end; };                 /* of one output, without padding */
__device__ __forceinline__ index_t inside(index_t v, index_t size) { return v < 0 ? 0 : v > size ? size : v; }
__device__ __forceinline__ Window window(const Pool &p, index_t t, index_t u) {
    const index_t row = t * p.sh - p.top, col = u * p.sw - p.left;
    return {inside(row, p.h), inside(row + p.kh, p.h), inside(col, p.w), inside(col + p.kw, p.w)};
}
__device__ __forceinline__ T share(const Window &v) {
    const index_t n = (v.row_end - v.row) * (v.col_end - v.col);
    return (T)(n > 0 ? n : 1);
}

/* The largest element of each window, and its position in its plane: the first of equal elements, or the
 * first NaN. */
extern "C" __global__ void max_pool2d(Pool p, const T *x, T *y, int32_t *index) {
    for (EACH(q, p.planes * p.oh * p.ow)) {
        const Window v = window(p, q / p.ow % p.oh, q % p.ow);
        const T *plane = x + q / (p.oh * p.ow) * p.h * p.w;
        T best = -INFINITY;
        index_t at = -1;
        for (index_t i = v.row; i < v.row_end; i++)
            for (index_t j = v.col; j < v.col_end; j++) {
                const T here = plane[i * p.w + j];
                if (at < 0 || here > best || (here != here && best == best)) best = here, at = i * p.w + j;
            }
        y[q] = best;
        index[q] = (int32_t)(at < 0 ? 0 : at);
    }
}

/* dx[index] += dy, plane by plane; dx is initially 0. Overlapping windows may add to one element, in any
 * order. */
extern "C" __global__ void max_pool2d_grad(index_t n, index_t outs, index_t size, const T *dy, View index, T *dx,
                                           Fault *fault) {
    for (EACH(q, n)) {
        const index_t at = index_at(index, q);
        if (in_range(at, size, fault)) atomicAdd(dx + q / outs * size + at, dy[q]);
    }
}

/* The adjoint: ddy = ddx[index]. */
extern "C" __global__ void max_pool2d_gather(index_t n, index_t outs, index_t size, const T *x, View index, T *y,
                                             Fault *fault) {
    for (EACH(q, n)) {
        const index_t at = index_at(index, q);
        y[q] = in_range(at, size, fault) ? x[q / outs * size + at] : (T)0;
    }
}

extern "C" __global__ void avg_pool2d(Pool p, const T *x, T *y) {
    for (EACH(q, p.planes * p.oh * p.ow)) {
        const Window v = window(p, q / p.ow % p.oh, q % p.ow);
        const T *plane = x + q / (p.oh * p.ow) * p.h * p.w;
        T sum = 0;
        for (index_t i = v.row; i < v.row_end; i++)
            for (index_t j = v.col; j < v.col_end; j++) sum += plane[i * p.w + j];
        y[q] = sum / share(v);
    }
}

/* Every input pixel sums its shares of the outputs whose windows contain it, so no two threads write to one
 * element. */
extern "C" __global__ void avg_pool2d_grad(Pool p, const T *dy, T *dx) {
    for (EACH(q, p.planes * p.h * p.w)) {
        const index_t row = q / p.w % p.h + p.top, col = q % p.w + p.left;
        const T *plane = dy + q / (p.h * p.w) * p.oh * p.ow;
        const index_t t0 = row < p.kh ? 0 : (row - p.kh) / p.sh + 1, u0 = col < p.kw ? 0 : (col - p.kw) / p.sw + 1;
        T sum = 0;
        for (index_t t = t0; t < p.oh && t * p.sh <= row; t++)
            for (index_t u = u0; u < p.ow && u * p.sw <= col; u++) sum += plane[t * p.ow + u] / share(window(p, t, u));
        dx[q] = sum;
    }
}
