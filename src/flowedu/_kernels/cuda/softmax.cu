/* softmax and log_softmax, with their gradients. Both subtract the largest element first, so that exp cannot overflow.
 *
 * x is (outer, n, inner), the softmax is along n. If inner == 1, rows are contiguous. A warp computes a short row and keeps it
 * in registers, so that each element is read once (lessons/softmax_warp.cu). A block computes a long row. Neighbouring
 * threads read neighbouring elements and fold by shuffles (fold.h). If inner > 1, a thread computes a column, and
 * neighbouring threads compute neighbouring columns. */
#include "fold.h"

template <bool LOG> __device__ __forceinline__ T finished(T x, T top, T sum) {
    return LOG ? (x - top) - log(sum) : exp(x - top) / sum;
}

template <bool LOG> __device__ void rows(index_t outer, index_t n, const T *x, T *y) {
    for (EACH_BLOCK(r, outer)) {
        const T *in = x + r * n;
        T top = Max::none<T>();
        for (index_t j = threadIdx.x; j < n; j += blockDim.x) top = Max::join(top, in[j]);
        top = fold_block<Max>(top);
        Wide sum = 0;
        for (index_t j = threadIdx.x; j < n; j += blockDim.x) sum += exp(in[j] - top);
        const T s = (T)fold_block<Sum>(sum);
        for (index_t j = threadIdx.x; j < n; j += blockDim.x) y[r * n + j] = finished<LOG>(in[j], top, s);
    }
}

enum { SHORT = 1024 };                                  /* elements of a row that a warp keeps: 32 to a lane */

template <bool LOG> __device__ void short_rows(index_t outer, index_t n, const T *x, T *y) {
    const int lane = threadIdx.x % 32, rounds = (int)((n + 31) / 32);
    for (index_t r = thread_index() / 32; r < outer; r += thread_count() / 32) {
        T own[SHORT / 32], top = Max::none<T>();
#pragma unroll
        for (int i = 0; i < SHORT / 32; i++) {
            if (i >= rounds) break;
            own[i] = lane + 32 * i < n ? x[r * n + lane + 32 * i] : Max::none<T>();
            top = Max::join(top, own[i]);
        }
        top = fold_warp<Max>(top);
        Wide sum = 0;
#pragma unroll
        for (int i = 0; i < SHORT / 32; i++) {
            if (i >= rounds) break;
            if (lane + 32 * i < n) sum += exp(own[i] - top);
        }
        const T s = (T)fold_warp<Sum>(sum);
#pragma unroll
        for (int i = 0; i < SHORT / 32; i++) {
            if (i >= rounds) break;
            if (lane + 32 * i < n) y[r * n + lane + 32 * i] = finished<LOG>(own[i], top, s);
        }
    }
}

template <bool LOG> __device__ void columns(index_t outer, index_t n, index_t inner, const T *x, T *y) {
    for (EACH(c, outer * inner)) {
        const index_t first = c / inner * n * inner + c % inner;
        T top = Max::none<T>();
        for (index_t j = 0; j < n; j++) top = Max::join(top, x[first + j * inner]);
        Wide sum = 0;
        for (index_t j = 0; j < n; j++) sum += exp(x[first + j * inner] - top);
        for (index_t j = 0; j < n; j++) y[first + j * inner] = finished<LOG>(x[first + j * inner], top, (T)sum);
    }
}

/* softmax: y * (dy - sum(dy * y)); log_softmax: dy - exp(y) * sum(dy) */
template <bool LOG> __device__ __forceinline__ T term(T dy, T y) { return LOG ? dy : dy * y; }
template <bool LOG> __device__ __forceinline__ T slope(T dy, T y, T sum) {
    return LOG ? dy - exp(y) * sum : y * (dy - sum);
}

template <bool LOG> __device__ void grad_rows(index_t outer, index_t n, const T *dy, const T *y, T *dx) {
    for (EACH_BLOCK(r, outer)) {
        Wide sum = 0;
        for (index_t j = threadIdx.x; j < n; j += blockDim.x) sum += term<LOG>(dy[r * n + j], y[r * n + j]);
        const T s = (T)fold_block<Sum>(sum);
        for (index_t j = threadIdx.x; j < n; j += blockDim.x) dx[r * n + j] = slope<LOG>(dy[r * n + j], y[r * n + j], s);
    }
}

template <bool LOG> __device__ void grad_columns(index_t outer, index_t n, index_t inner, const T *dy, const T *y, T *dx) {
    for (EACH(c, outer * inner)) {
        const index_t first = c / inner * n * inner + c % inner;
        Wide sum = 0;
        for (index_t j = 0; j < n; j++) sum += term<LOG>(dy[first + j * inner], y[first + j * inner]);
        for (index_t j = 0; j < n; j++)
            dx[first + j * inner] = slope<LOG>(dy[first + j * inner], y[first + j * inner], (T)sum);
    }
}

#define SOFTMAX(name, LOG)                                                                                            \
    extern "C" __global__ void name##_rows(index_t outer, index_t n, const T *x, T *y) { rows<LOG>(outer, n, x, y); } \
    extern "C" __global__ void __launch_bounds__(128) name##_short_rows(index_t outer, index_t n, const T *x, T *y) { \
        short_rows<LOG>(outer, n, x, y);                                                                              \
    }                                                                                                                 \
    extern "C" __global__ void name##_columns(index_t outer, index_t n, index_t inner, const T *x, T *y) {            \
        columns<LOG>(outer, n, inner, x, y);                                                                          \
    }                                                                                                                 \
    extern "C" __global__ void name##_grad_rows(index_t outer, index_t n, const T *dy, const T *y, T *dx) {           \
        grad_rows<LOG>(outer, n, dy, y, dx);                                                                          \
    }                                                                                                                 \
    extern "C" __global__ void name##_grad_columns(index_t outer, index_t n, index_t inner, const T *dy, const T *y,  \
                                                   T *dx) {                                                           \
        grad_columns<LOG>(outer, n, inner, dy, y, dx);                                                                \
    }
SOFTMAX(softmax, false)
SOFTMAX(log_softmax, true)
