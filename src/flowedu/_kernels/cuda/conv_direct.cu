/* Direct convolution: one thread per result loops over the terms of its sum. Used where groups have so few
 * channels that a matrix product would be mostly empty: depthwise convolutions. */
#include "conv.h"

/* image, channel, row and column of element i of an array (n, channels, rows, cols), numbered so that
 * adjacent threads write adjacent elements: channels last where their stride is 1. */
__device__ __forceinline__ void place(index_t i, index_t channels, index_t rows, index_t cols, bool last, index_t at[4]) {
    if (last) { at[1] = i % channels; i /= channels; }
    at[3] = i % cols; i /= cols;
    at[2] = i % rows; i /= rows;
    if (!last) { at[1] = i % channels; i /= channels; }
    at[0] = i;
}

extern "C" __global__ void conv_forward_direct(Conv c, const T *x, const T *w, T *y, const T *gamma, const T *beta,
                                               const T *mean, const T *var, double epsilon, double low, double high) {
    for (EACH(t, c.n * c.o * c.oh * c.ow)) {
        index_t at[4];
        place(t, c.o, c.oh, c.ow, c.y[1] == 1, at);
        const index_t first = at[1] / c.og * c.cg, row = at[2] * c.sh - c.top, col = at[3] * c.sw - c.left;
        T sum = 0;
        for (index_t k = 0; k < c.cg; k++)
            for (index_t i = 0; i < c.kh; i++)
                for (index_t j = 0; j < c.kw; j++) {
                    const index_t from = c.input(at[0], first + k, row + i * c.dh, col + j * c.dw);
                    if (from >= 0) sum += x[from] * w[((at[1] * c.cg + k) * c.kh + i) * c.kw + j];
                }
        if (gamma) {
            const T scale = gamma[at[1]] / sqrt(var[at[1]] + (T)epsilon);
            sum = clipped((sum - mean[at[1]]) * scale + beta[at[1]], (T)low, (T)high);
        }
        y[at[0] * c.y[0] + at[1] * c.y[1] + at[2] * c.y[2] + at[3] * c.y[3]] = sum;
    }
}

extern "C" __global__ void conv_input_grad_direct(Conv c, const T *dy, const T *w, T *dx) {
    for (EACH(t, c.n * c.c * c.h * c.w)) {
        index_t at[4];
        place(t, c.c, c.h, c.w, c.x[1] == 1, at);
        const index_t first = at[1] / c.cg * c.og;
        T sum = 0;
        for (index_t o = first; o < first + c.og; o++)
            for (index_t i = 0; i < c.kh; i++)
                for (index_t j = 0; j < c.kw; j++) {
                    const index_t from = c.reader(at[0], o, at[2] + c.top, at[3] + c.left, i, j);
                    if (from >= 0) sum += dy[from] * w[((o * c.cg + at[1] % c.cg) * c.kh + i) * c.kw + j];
                }
        dx[c.input(at[0], at[1], at[2], at[3])] = sum;
    }
}
