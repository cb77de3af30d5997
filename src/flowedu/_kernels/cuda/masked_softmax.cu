/* softmax(mask ? fill : scale * x) along rows, and its gradient. `mask` is a view with the shape of x, which
 * may be broadcast along any axis. A block processes a row. */
#include "fold.h"

__device__ __forceinline__ bool masked(const Walk<1> &w, const int8_t *mask, index_t i) {
    index_t at;
    offsets(w, i, &at);
    return mask[at] != 0;
}

extern "C" __global__ void masked_softmax(index_t rows, index_t n, const T *x, Walk<1> w, const int8_t *mask, double scale,
                                          double fill, T *y) {
    for (EACH_BLOCK(r, rows)) {
        T top = Max::none<T>();
        for (index_t i = r * n + threadIdx.x; i < (r + 1) * n; i += blockDim.x) {
            y[i] = masked(w, mask, i) ? (T)fill : (T)scale * x[i];
            top = Max::join(top, y[i]);
        }
        top = fold_block<Max>(top);
        Wide sum = 0;
        for (index_t i = r * n + threadIdx.x; i < (r + 1) * n; i += blockDim.x) sum += y[i] = exp(y[i] - top);
        const T s = 1 / (T)fold_block<Sum>(sum);
        for (index_t i = r * n + threadIdx.x; i < (r + 1) * n; i += blockDim.x) y[i] *= s;
    }
}

/* dx = mask ? 0 : scale * y * (dy - sum(dy * y)) */
extern "C" __global__ void masked_softmax_grad(index_t rows, index_t n, const T *dy, const T *y, Walk<1> w,
                                               const int8_t *mask, double scale, T *dx) {
    for (EACH_BLOCK(r, rows)) {
        Wide sum = 0;
        for (index_t i = r * n + threadIdx.x; i < (r + 1) * n; i += blockDim.x) sum += dy[i] * y[i];
        const T s = (T)fold_block<Sum>(sum);
        for (index_t i = r * n + threadIdx.x; i < (r + 1) * n; i += blockDim.x)
            dx[i] = masked(w, mask, i) ? (T)0 : (T)scale * (y[i] * (dy[i] - s));
    }
}
