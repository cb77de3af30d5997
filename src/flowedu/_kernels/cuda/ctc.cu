/* ctc_loss and its gradient: the forward-backward algorithm in log space, as on the CPU (../ops/ctc.pyx
 * defines states, alpha and beta). A block processes a sequence step by step, its threads the states; sums
 * are in double. */
#include "view.h"

struct Batch {
    index_t time, batch, classes, longest, blank, states;
    View labels, steps, counts;        /* (batch, longest); lengths in time; lengths of the labels */
};
struct Sequence { index_t n, steps, states; };

/* Read a sequence; false if a length or label is out of range. */
__device__ __forceinline__ bool sequence(const Batch &b, index_t n, Sequence *q, Fault *fault) {
    const index_t k = index_at(b.counts, n);
    *q = {n, index_at(b.steps, n), 2 * k + 1};
    if (!in_range(k, b.longest + 1, fault) || !in_range(q->steps, b.time + 1, fault)) return false;
    for (index_t i = 0; i < k; i++) {
        const index_t label = index_at(b.labels, n * b.longest + i);
        if (!in_range(label == b.blank ? -1 - label : label, b.classes, fault)) return false;
    }
    return true;
}

/* The class that state s emits; and true if s may be entered from s - 2. */
__device__ __forceinline__ index_t label(const Batch &b, const Sequence &q, index_t s) {
    return s % 2 ? index_at(b.labels, q.n * b.longest + s / 2) : b.blank;
}
__device__ __forceinline__ bool skips(const Batch &b, const Sequence &q, index_t s) {
    return s % 2 && s > 1 && label(b, q, s) != label(b, q, s - 2);
}

/* log(exp(a) + exp(b) + exp(c)) */
__device__ __forceinline__ double add3(double a, double b, double c) {
    const double m = fmax(a, fmax(b, c));
    return m == -INFINITY ? m : m + log(exp(a - m) + exp(b - m) + exp(c - m));
}

__device__ __forceinline__ double at(const Batch &b, const Sequence &q, index_t t, index_t s, const T *x) {
    return x[(t * b.batch + q.n) * b.classes + label(b, q, s)];
}

/* alpha[t + 1] from alpha[t]; beta[t] from beta[t + 1]. All threads of the block take part. */
__device__ __forceinline__ void forward(const Batch &b, const Sequence &q, const T *x, index_t t, const double *from,
                                        double *to) {
    for (index_t s = threadIdx.x; s < q.states; s += blockDim.x)
        to[s] = at(b, q, t, s, x) + add3(from[s], s ? from[s - 1] : -INFINITY, skips(b, q, s) ? from[s - 2] : -INFINITY);
    __syncthreads();
}
__device__ __forceinline__ void backward(const Batch &b, const Sequence &q, const T *x, index_t t, const double *from,
                                         double *to) {
    for (index_t s = threadIdx.x; s < q.states; s += blockDim.x)
        to[s] = add3(from[s] + at(b, q, t, s, x), s + 1 < q.states ? from[s + 1] + at(b, q, t, s + 1, x) : -INFINITY,
                     s + 2 < q.states && skips(b, q, s + 2) ? from[s + 2] + at(b, q, t, s + 2, x) : -INFINITY);
    __syncthreads();
}
__device__ __forceinline__ void start(const Sequence &q, double *alpha) {
    for (index_t s = threadIdx.x; s < q.states; s += blockDim.x) alpha[s] = s ? -INFINITY : 0;
    __syncthreads();
}

/* Log probability of the sequence, which ends in the last label or in the blank after it. */
__device__ __forceinline__ double ends(const Sequence &q, const double *alpha) {
    return add3(alpha[q.states - 1], q.states > 1 ? alpha[q.states - 2] : -INFINITY, -INFINITY);
}

/* work: two rows of states for each sequence. */
extern "C" __global__ void ctc_loss(Batch b, index_t zero_infinity, const T *x, T *y, double *work, Fault *fault) {
    for (EACH_BLOCK(n, b.batch)) {
        Sequence q;
        double *from = work + n * 2 * b.states, *to = from + b.states;
        if (!sequence(b, n, &q, fault)) continue;
        start(q, from);
        for (index_t t = 0; t < q.steps; t++) {
            forward(b, q, x, t, from, to);
            double *const swap = from;
            from = to, to = swap;
        }
        if (threadIdx.x == 0) {
            const T loss = (T)-ends(q, from);
            y[n] = zero_infinity && loss == INFINITY ? (T)0 : loss;
        }
    }
}

/* dlog_probs = -dloss times the probability, given the labels, of emitting that class at that time; dx is 0 before.
 * work: time + 3 rows of states for each sequence. */
extern "C" __global__ void ctc_loss_grad(Batch b, const T *dloss, const T *x, T *dx, double *work, Fault *fault) {
    for (EACH_BLOCK(n, b.batch)) {
        Sequence q;
        double *const alpha = work + n * (b.time + 3) * b.states;
        double *from = alpha + (b.time + 1) * b.states, *to = from + b.states;
        if (!sequence(b, n, &q, fault)) continue;
        start(q, alpha);
        for (index_t t = 0; t < q.steps; t++) forward(b, q, x, t, alpha + t * b.states, alpha + (t + 1) * b.states);
        const double total = ends(q, alpha + q.steps * b.states);
        if (total == -INFINITY) continue;                         /* no path emits the labels */
        for (index_t s = threadIdx.x; s < q.states; s += blockDim.x) from[s] = s >= q.states - 2 ? 0 : -INFINITY;
        __syncthreads();
        for (index_t t = q.steps - 1; t >= 0; t--) {
            for (index_t s = threadIdx.x; s < q.states; s += blockDim.x)
                atomicAdd(dx + (t * b.batch + n) * b.classes + label(b, q, s),
                          (T)(-dloss[n] * exp(alpha[(t + 1) * b.states + s] + from[s] - total)));
            backward(b, q, x, t, from, to);
            double *const swap = from;
            from = to, to = swap;
        }
    }
}
