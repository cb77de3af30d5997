/* A convolution, first step: the definition, with one thread per result. x is (n, c, h, w), the weights are
 * (o, c, kh, kw), y is (n, o, oh, ow). Every product takes two loads: each pixel is read o * kh * kw times.
 */
#include "view.h"

extern "C" __global__ void conv_direct(index_t n, index_t c, index_t h, index_t w, index_t o, index_t kh, index_t kw,
                                       const T *x, const T *weights, T *y) {
    const index_t oh = h - kh + 1, ow = w - kw + 1;
    for (EACH(t, n * o * oh * ow)) {
        const index_t col = t % ow, row = t / ow % oh, out = t / (ow * oh) % o, image = t / (ow * oh * o);
        T sum = 0;
        for (index_t k = 0; k < c; k++)
            for (index_t i = 0; i < kh; i++)
                for (index_t j = 0; j < kw; j++)
                    sum += x[((image * c + k) * h + row + i) * w + col + j] * weights[((out * c + k) * kh + i) * kw + j];
        y[t] = sum;
    }
}
