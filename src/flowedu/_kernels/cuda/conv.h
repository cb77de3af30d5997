/* A convolution, as its kernels take it. x is (n, c, h, w), y is (n, o, oh, ow); in memory the axes may come in any order,
 * so channels-last images differ in their strides alone. Weights are (o, cg, kh, kw), cg channels to a group. */
#ifndef FLOWEDU_CUDA_CONV_H
#define FLOWEDU_CUDA_CONV_H
#include "view.h"

struct Conv {
    index_t n, c, h, w, o, oh, ow, kh, kw, sh, sw, top, left, dh, dw, groups, cg, og;
    index_t x[4], y[4];            /* strides of images */

    /* Offset of input (image, channel, row, column); -1 in the padding. */
    __device__ __forceinline__ index_t input(index_t image, index_t channel, index_t row, index_t col) const {
        if (row < 0 || row >= h || col < 0 || col >= w) return -1;
        return image * x[0] + channel * x[1] + row * x[2] + col * x[3];
    }
    /* Offset of the output that reads input (row - top, col - left) at kernel position (i, j); -1 if there
     * isn't one. */
    __device__ __forceinline__ index_t reader(index_t image, index_t channel, index_t row, index_t col, index_t i,
                                              index_t j) const {
        row -= i * dh;
        col -= j * dw;
        if (row < 0 || col < 0 || row % sh || col % sw || row / sh >= oh || col / sw >= ow) return -1;
        return image * y[0] + channel * y[1] + row / sh * y[2] + col / sw * y[3];
    }
};

/* Splits a number into digits, the last one first: (image, row, column) of a pixel, (channel, i, j) of a
 * weight. */
struct Digits {
    uint32_t last, middle;
    index_t first;
    __device__ __forceinline__ Digits(index_t i, index_t middles, index_t lasts) {
        const index_t rest = i / lasts;
        last = (uint32_t)(i - rest * lasts);
        first = rest / middles;
        middle = (uint32_t)(rest - first * middles);
    }
    __device__ __forceinline__ Digits() {}
};
#endif
