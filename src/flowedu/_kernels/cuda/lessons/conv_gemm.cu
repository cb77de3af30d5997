/* A convolution, second step: a matrix product (matmul_shared.cu). A row of A holds the weights of an output
 * channel; a column of B holds the c * kh * kw inputs of an output pixel. B is never stored: an element is
 * read from the image when a tile needs it ("implicit GEMM"). ../conv.cu combines this with ../product.h, and
 * has the two gradients. Blocks of 16 x 16. */
#include "view.h"

enum { SIDE = 16 };

extern "C" __global__ void conv_gemm(index_t n, index_t c, index_t h, index_t w, index_t o, index_t kh, index_t kw,
                                     const T *x, const T *weights, T *y) {
    __shared__ T a_tile[SIDE][SIDE], b_tile[SIDE][SIDE];
    const index_t oh = h - kh + 1, ow = w - kw + 1, depth = c * kh * kw, pixels = n * oh * ow;
    const index_t out = (index_t)blockIdx.y * SIDE + threadIdx.y, pixel = (index_t)blockIdx.x * SIDE + threadIdx.x;
    const index_t col = pixel % ow, row = pixel / ow % oh, image = pixel / (ow * oh);
    T sum = 0;
    for (index_t k = 0; k < depth; k += SIDE) {
        const index_t s = k + threadIdx.x, t = k + threadIdx.y;              /* t: which number of a window */
        const index_t channel = t / (kh * kw), i = t / kw % kh, j = t % kw;
        a_tile[threadIdx.y][threadIdx.x] = out < o && s < depth ? weights[out * depth + s] : (T)0;
        b_tile[threadIdx.y][threadIdx.x] =
            pixel < pixels && t < depth ? x[((image * c + channel) * h + row + i) * w + col + j] : (T)0;
        __syncthreads();
        for (int q = 0; q < SIDE; q++) sum += a_tile[threadIdx.y][q] * b_tile[q][threadIdx.x];
        __syncthreads();
    }
    if (out < o && pixel < pixels) y[((image * o + out) * oh + row) * ow + col] = sum;
}
