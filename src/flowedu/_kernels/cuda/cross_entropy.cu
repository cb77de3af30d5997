/* Softmax and cross entropy in one pass: the loss of class `label`, or of a distribution, and the
 * probabilities, which the gradient uses: dloss * (prob - 1 at the label). A block processes a row of n
 * classes.
 *
 * loss = log(sum(exp(x - top))) - (x[label] - top). This avoids the logarithm of a rounded probability. */
#include "fold.h"

/* prob = softmax(x) of one row. Every thread receives the largest element and the sum of exp(x - largest). */
__device__ __forceinline__ void probabilities(const T *x, T *prob, index_t n, T *top, T *sum) {
    T most = Max::none<T>();
    for (index_t j = threadIdx.x; j < n; j += blockDim.x) most = Max::join(most, x[j]);
    most = fold_block<Max>(most);
    Wide total = 0;
    for (index_t j = threadIdx.x; j < n; j += blockDim.x) total += prob[j] = exp(x[j] - most);
    *top = most;
    *sum = (T)fold_block<Sum>(total);
    for (index_t j = threadIdx.x; j < n; j += blockDim.x) prob[j] /= *sum;
}

/* An out-of-range label is not used as an index; the loss of an ignored label is 0. */
extern "C" __global__ void sparse_softmax_cross_entropy(index_t rows, index_t n, View labels, index_t ignored, const T *x,
                                                        T *loss, T *prob, Fault *fault) {
    for (EACH_BLOCK(r, rows)) {
        T top, sum;
        probabilities(x + r * n, prob + r * n, n, &top, &sum);
        if (threadIdx.x > 0) continue;
        const index_t label = index_at(labels, r);
        loss[r] = label == ignored || !in_range(label, n, fault) ? (T)0 : log(sum) - (x[r * n + label] - top);
    }
}

extern "C" __global__ void sparse_softmax_cross_entropy_grad(index_t rows, index_t n, const T *dloss, View labels,
                                                             index_t ignored, const T *prob, T *dx, Fault *fault) {
    for (EACH(i, rows * n)) {
        const index_t row = i / n, label = index_at(labels, row);
        if (label == ignored || !in_range(label, n, fault)) dx[i] = 0;
        else dx[i] = dloss[row] * (prob[i] - (T)(i - row * n == label));
    }
}

/* Labels are distributions: loss = -sum(labels * log_softmax(x)) = log(sum) * sum(labels) - sum(labels * (x - top)). */
extern "C" __global__ void softmax_cross_entropy(index_t rows, index_t n, const T *labels, const T *x, T *loss, T *prob) {
    for (EACH_BLOCK(r, rows)) {
        T top, sum;
        probabilities(x + r * n, prob + r * n, n, &top, &sum);
        Wide weights = 0, shifted = 0;
        for (index_t i = r * n + threadIdx.x; i < (r + 1) * n; i += blockDim.x) {
            weights += labels[i];
            shifted += labels[i] * (x[i] - top);
        }
        weights = fold_block<Sum>(weights);
        shifted = fold_block<Sum>(shifted);
        if (threadIdx.x == 0) loss[r] = (T)(log(sum) * weights - shifted);
    }
}
