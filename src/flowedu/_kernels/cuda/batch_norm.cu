/* Batch norm: training, its gradient, and inference; also with the result clipped (relu, relu6). x is (outer,
 * channels, inner), with element (o, c, i) at (o * channels + c) * inner + i.
 *
 * First the sums of each channel, then, in a second kernel, the elements. If a channel's elements are
 * contiguous (NCHW), a block of 256 threads sums the channel; if channels are contiguous (inner == 1: NHWC),
 * a column of 8 threads does, 32 channels to a block. Sums are in Wide; the variance is computed from
 * differences from the mean. */
#include "fold.h"

struct Norm { index_t outer, channels, inner; double epsilon, low, high; };

/* The threads that share a channel, and how they combine their sums. */
struct Rows {
    static __device__ __forceinline__ index_t channel(index_t block) { return block; }
    static __device__ __forceinline__ index_t first() { return threadIdx.x; }
    static __device__ __forceinline__ index_t step() { return blockDim.x; }
    static __device__ __forceinline__ bool speaks() { return threadIdx.x == 0; }
    static __device__ __forceinline__ Wide sum(Wide v) { return fold_block<Sum>(v); }
};
struct Columns {
    static __device__ __forceinline__ index_t channel(index_t block) { return block * 32 + threadIdx.x; }
    static __device__ __forceinline__ index_t first() { return threadIdx.y; }
    static __device__ __forceinline__ index_t step() { return 8; }
    static __device__ __forceinline__ bool speaks() { return threadIdx.y == 0; }
    static __device__ __forceinline__ Wide sum(Wide v) {
        __shared__ Wide part[8][32];
        __syncthreads();
        part[threadIdx.y][threadIdx.x] = v;
        __syncthreads();
        v = 0;
        for (int k = 0; k < 8; k++) v += part[k][threadIdx.x];
        return v;
    }
};

/* Offset of element i of a channel. */
__device__ __forceinline__ index_t place(const Norm &k, index_t c, index_t i) {
    return k.inner == 1 ? i * k.channels + c : (i / k.inner * k.channels + c) * k.inner + i % k.inner;
}

template <class Threads> __device__ void moments(const Norm &k, const T *x, T *mean, T *var) {
    const index_t c = Threads::channel(blockIdx.x), n = c < k.channels ? k.outer * k.inner : 0;
    Wide sum = 0, square = 0;
    for (index_t i = Threads::first(); i < n; i += Threads::step()) sum += x[place(k, c, i)];
    const Wide m = Threads::sum(sum) / n;
    for (index_t i = Threads::first(); i < n; i += Threads::step()) {
        const Wide d = x[place(k, c, i)] - m;
        square += d * d;
    }
    square = Threads::sum(square);
    if (Threads::speaks() && c < k.channels) mean[c] = (T)m, var[c] = (T)(square / n);
}
extern "C" __global__ void moments_rows(Norm k, const T *x, T *mean, T *var) { moments<Rows>(k, x, mean, var); }
extern "C" __global__ void moments_columns(Norm k, const T *x, T *mean, T *var) { moments<Columns>(k, x, mean, var); }

extern "C" __global__ void normalise(Norm k, const T *x, const T *gamma, const T *beta, const T *mean, const T *var, T *y) {
    for (EACH(i, k.outer * k.channels * k.inner)) {
        const index_t c = i / k.inner % k.channels;
        y[i] = clipped((x[i] - mean[c]) * (T)(gamma[c] / sqrt(var[c] + k.epsilon)) + beta[c], (T)k.low, (T)k.high);
    }
}

/* ---- gradient: dbeta = sum(dy), dgamma = sum(dy * xhat), dx = gamma * r * (dy - dbeta / n - xhat * dgamma / n); dy counts
 * where the result was not clipped. */
__device__ __forceinline__ T passed(const Norm &k, index_t clip, T dy, T x, T mean, T scale, T beta) {
    const T v = (x - mean) * scale + beta;
    return !clip || (v > (T)k.low && v < (T)k.high) ? dy : (T)0;
}

template <class Threads>
__device__ void sums(const Norm &k, index_t clip, const T *dy, const T *x, const T *gamma, const T *beta, const T *mean,
                     const T *var, T *dgamma, T *dbeta, Wide *both) {
    const index_t c = Threads::channel(blockIdx.x), n = c < k.channels ? k.outer * k.inner : 0;
    Wide sum = 0, dot = 0;
    for (index_t i = Threads::first(); i < n; i += Threads::step()) {
        const index_t at = place(k, c, i);
        const T g = passed(k, clip, dy[at], x[at], mean[c], (T)(gamma[c] / sqrt(var[c] + k.epsilon)), beta[c]);
        sum += g;
        dot += g * (x[at] - mean[c]);
    }
    sum = Threads::sum(sum);
    dot = Threads::sum(dot);
    if (!Threads::speaks() || c >= k.channels) return;
    both[2 * c] = sum, both[2 * c + 1] = dot;
    dbeta[c] = (T)sum, dgamma[c] = (T)(dot / sqrt(var[c] + k.epsilon));
}
#define SUMS(name, Threads)                                                                                              \
    extern "C" __global__ void sums_##name(Norm k, index_t clip, const T *dy, const T *x, const T *gamma, const T *beta, \
                                           const T *mean, const T *var, T *dgamma, T *dbeta, Wide *both) {               \
        sums<Threads>(k, clip, dy, x, gamma, beta, mean, var, dgamma, dbeta, both);                                      \
    }
SUMS(rows, Rows)
SUMS(columns, Columns)

extern "C" __global__ void norm_grad(Norm k, index_t clip, const T *dy, const T *x, const T *gamma, const T *beta,
                                     const T *mean, const T *var, const Wide *both, T *dx) {
    const Wide n = k.outer * k.inner;
    for (EACH(i, k.outer * k.channels * k.inner)) {
        const index_t c = i / k.inner % k.channels;
        const Wide r = 1 / sqrt(var[c] + k.epsilon);
        const T scale = (T)(gamma[c] / sqrt(var[c] + k.epsilon));
        const T slope = (T)(-gamma[c] * r * r * r * both[2 * c + 1] / n), rest = (T)(-gamma[c] * r * both[2 * c] / n);
        dx[i] = scale * passed(k, clip, dy[i], x[i], mean[c], scale, beta[c]) + (slope * (x[i] - mean[c]) + rest);
    }
}
