/* Convolution and its two gradients as matrix products (product.h) whose matrices are never stored: the kernel
 * reads each element from the image when the product needs it ("implicit GEMM"). For every group:
 *
 *                 rows            columns            summed over
 *   y             out channels    output pixels      (channel, i, j) of the kernel
 *   dx            channels        input pixels       (out channel, i, j)
 *   dw            out channels    (channel, i, j)    output pixels, in `parts` that conv_add_parts adds up
 */
#include "conv.h"
#include "product.h"

struct Weights {                       /* y's A: a row of weights is contiguous */
    typedef index_t Place;
    const T *data;
    index_t depth;
    static const bool along_k = true;
    __device__ __forceinline__ Place place(index_t row) const { return row * depth; }
    __device__ __forceinline__ T at(Place p, index_t k) const { return data[p + k]; }
};

struct Pixel { index_t image; int row, col; };

struct Windows {                       /* y's B: the input windows of output pixels */
    typedef Pixel Place;
    const Conv &c;
    const T *x;
    index_t channel;                   /* the group's first channel */
    static const bool along_k = false;
    __device__ __forceinline__ Place place(index_t pixel) const {
        const Digits d(pixel, c.oh, c.ow);
        return {d.first, (int)(d.middle * c.sh - c.top), (int)(d.last * c.sw - c.left)};
    }
    __device__ __forceinline__ T at(Place p, index_t k) const {
        const Digits d(k, c.kh, c.kw);
        const index_t at = c.input(p.image, channel + d.first, p.row + d.middle * c.dh, p.col + d.last * c.dw);
        return at < 0 ? (T)0 : x[at];
    }
};

struct Outputs {
    const Conv &c;
    T *y;
    index_t channel;
    const T *gamma, *beta, *mean, *var;   /* optional batch norm and clipping after the convolution */
    T epsilon, low, high;
    __device__ __forceinline__ void put(index_t row, index_t col, T v) const {
        const Digits d(col, c.oh, c.ow);
        const index_t o = channel + row;
        if (gamma) v = clipped((v - mean[o]) * (gamma[o] / sqrt(var[o] + epsilon)) + beta[o], low, high);
        y[d.first * c.y[0] + o * c.y[1] + d.middle * c.y[2] + d.last * c.y[3]] = v;
    }
};

extern "C" __global__ void __launch_bounds__(256) conv_forward(
        Conv c, const T *x, const T *w, T *y, const T *gamma, const T *beta, const T *mean, const T *var, double epsilon,
        double low, double high) {
    const index_t depth = c.cg * c.kh * c.kw, pixels = c.n * c.oh * c.ow;
    const index_t down = (c.og + TILE - 1) / TILE, right = (pixels + TILE - 1) / TILE;
    for (EACH_BLOCK(t, c.groups * down * right)) {
        const index_t g = t / (down * right);
        product_tile(Weights{w + g * c.og * depth, depth}, Windows{c, x, g * c.cg},
                     Outputs{c, y, g * c.og, gamma, beta, mean, var, (T)epsilon, (T)low, (T)high}, t / right % down * TILE,
                     t % right * TILE, c.og, pixels, 0, depth);
    }
}

/* ---- dx */
struct Turned {                        /* dx's A: weights by input channel */
    typedef index_t Place;
    const Conv &c;
    const T *w;
    static const bool along_k = true;
    __device__ __forceinline__ Place place(index_t channel) const { return channel * c.kh * c.kw; }
    __device__ __forceinline__ T at(Place p, index_t k) const {
        const index_t area = c.kh * c.kw, o = k / area;
        return w[o * c.cg * area + p + (k - o * area)];
    }
};

struct Readers {                       /* dx's B: the outputs that read an input pixel */
    typedef Pixel Place;
    const Conv &c;
    const T *dy;
    index_t channel;
    static const bool along_k = false;
    __device__ __forceinline__ Place place(index_t pixel) const {
        const Digits d(pixel, c.h, c.w);
        return {d.first, (int)(d.middle + c.top), (int)(d.last + c.left)};
    }
    __device__ __forceinline__ T at(Place p, index_t k) const {
        const Digits d(k, c.kh, c.kw);
        const index_t at = c.reader(p.image, channel + d.first, p.row, p.col, d.middle, d.last);
        return at < 0 ? (T)0 : dy[at];
    }
};

struct Inputs {
    const Conv &c;
    T *dx;
    index_t channel;
    __device__ __forceinline__ void put(index_t row, index_t col, T v) const {
        const Digits d(col, c.h, c.w);
        dx[c.input(d.first, channel + row, d.middle, d.last)] = v;
    }
};

extern "C" __global__ void __launch_bounds__(256) conv_input_grad(Conv c, const T *dy, const T *w, T *dx) {
    const index_t depth = c.og * c.kh * c.kw, pixels = c.n * c.h * c.w;
    const index_t down = (c.cg + TILE - 1) / TILE, right = (pixels + TILE - 1) / TILE;
    for (EACH_BLOCK(t, c.groups * down * right)) {
        const index_t g = t / (down * right);
        product_tile(Turned{c, w + g * c.og * c.cg * c.kh * c.kw}, Readers{c, dy, g * c.og}, Inputs{c, dx, g * c.cg},
                     t / right % down * TILE, t % right * TILE, c.cg, pixels, 0, depth);
    }
}

/* ---- dw */
struct Pixels {                        /* dw's A: dy by out channel */
    typedef index_t Place;
    const Conv &c;
    const T *dy;
    static const bool along_k = true;
    __device__ __forceinline__ Place place(index_t o) const { return o * c.y[1]; }
    __device__ __forceinline__ T at(Place p, index_t k) const {
        const Digits d(k, c.oh, c.ow);
        return dy[p + d.first * c.y[0] + d.middle * c.y[2] + d.last * c.y[3]];
    }
};

struct Taps {                          /* dw's B: the inputs that output pixels read at one kernel position */
    struct Place { index_t channel; int row, col; };
    const Conv &c;
    const T *x;
    index_t channel;
    static const bool along_k = true;
    __device__ __forceinline__ Place place(index_t tap) const {
        const Digits d(tap, c.kh, c.kw);
        return {channel + d.first, (int)(d.middle * c.dh - c.top), (int)(d.last * c.dw - c.left)};
    }
    __device__ __forceinline__ T at(Place p, index_t k) const {
        const Digits d(k, c.oh, c.ow);
        const index_t at = c.input(d.first, p.channel, d.middle * c.sh + p.row, d.last * c.sw + p.col);
        return at < 0 ? (T)0 : x[at];
    }
};

struct Grid {
    T *data;
    index_t cols;
    __device__ __forceinline__ void put(index_t row, index_t col, T v) const { data[row * cols + col] = v; }
};

/* out: dw itself, or scratch of (parts, o, cg, kh, kw). */
extern "C" __global__ void __launch_bounds__(256) conv_weight_grad(Conv c, const T *dy, const T *x, T *out, index_t parts) {
    const index_t cols = c.cg * c.kh * c.kw, pixels = c.n * c.oh * c.ow, each = (pixels + parts - 1) / parts;
    const index_t down = (c.og + TILE - 1) / TILE, right = (cols + TILE - 1) / TILE;
    for (EACH_BLOCK(t, parts * c.groups * down * right)) {
        const index_t g = t / (down * right) % c.groups, p = t / (down * right * c.groups);
        product_tile(Pixels{c, dy + g * c.og * c.y[1]}, Taps{c, x, g * c.cg}, Grid{out + (p * c.o + g * c.og) * cols, cols},
                     t / right % down * TILE, t % right * TILE, c.og, cols, min(p * each, pixels),
                     min((p + 1) * each, pixels));
    }
}

extern "C" __global__ void conv_add_parts(index_t n, index_t parts, const T *scratch, T *dw) {
    for (EACH(i, n)) {
        T sum = 0;
        for (index_t p = 0; p < parts; p++) sum += scratch[p * n + i];
        dw[i] = sum;
    }
}
