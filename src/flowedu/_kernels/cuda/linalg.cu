/* Determinants, inverses and solutions of linear systems: elimination with partial pivoting, one block per
 * matrix.
 *
 * A block copies its n x n matrix, followed by the k columns of the right-hand side, into scratch of doubles;
 * for an inverse these are the columns of the identity. A pivot of 0 is reported as a singular matrix. */
#include "view.h"

/* The row, from c on, with the largest element in column c. The first warp finds it for the whole block. */
__device__ index_t pivot_row(const Wide *w, index_t n, index_t m, index_t c) {
    __shared__ index_t found;
    if (threadIdx.x < 32) {
        Wide best = -1;
        index_t at = n;
        for (index_t i = c + threadIdx.x; i < n; i += 32) {
            const Wide size = w[i * m + c] < 0 ? -w[i * m + c] : w[i * m + c];
            if (size > best) best = size, at = i;
        }
        for (int step = 16; step > 0; step /= 2) {
            const Wide other = __shfl_xor_sync(0xffffffffu, best, step);
            const index_t there = __shfl_xor_sync(0xffffffffu, at, step);
            if (other > best || (other == best && there < at)) best = other, at = there;
        }
        if (threadIdx.x == 0) found = at < n ? at : c;             /* a column of NaN has no largest element */
    }
    __syncthreads();
    return found;
}

/* Make the matrix in w upper triangular, together with the columns to its right. Returns false if it is singular.
 * All threads receive the determinant (which may underflow to 0). */
__device__ bool eliminate(Wide *w, index_t n, index_t m, Wide &det) {
    det = 1;
    for (index_t c = 0; c < n; c++) {
        const index_t row = pivot_row(w, n, m, c);
        for (index_t j = c + threadIdx.x; j < m && row != c; j += blockDim.x) {
            const Wide held = w[c * m + j];
            w[c * m + j] = w[row * m + j];
            w[row * m + j] = held;
        }
        __syncthreads();
        const Wide pivot = w[c * m + c];
        det *= row == c ? pivot : -pivot;
        if (pivot == 0) return false;
        const index_t cols = m - c - 1;
        for (index_t e = threadIdx.x; e < (n - c - 1) * cols; e += blockDim.x) {
            const index_t i = c + 1 + e / cols, j = c + 1 + e % cols;
            w[i * m + j] -= w[i * m + c] / pivot * w[c * m + j];
        }
        __syncthreads();
    }
    return true;
}

/* a (batches, n, n); b (batches, n, k), or null: the identity, and k is n. y (batches, n, k) with a y = b. */
extern "C" __global__ void solve(index_t batches, index_t n, index_t k, const T *a, const T *b, T *y, Wide *work,
                                 Fault *fault) {
    const index_t m = n + k;
    Wide *w = work + blockIdx.x * n * m;
    for (EACH_BLOCK(p, batches)) {
        for (index_t e = threadIdx.x; e < n * m; e += blockDim.x) {
            const index_t i = e / m, j = e % m;
            w[e] = j < n ? (Wide)a[(p * n + i) * n + j] : b ? (Wide)b[(p * n + i) * k + j - n] : (Wide)(i == j - n);
        }
        __syncthreads();
        Wide d;
        if (!eliminate(w, n, m, d) && threadIdx.x == 0) singular(fault, p);
        __syncthreads();
        for (index_t c = n - 1; c >= 0; c--) {                       /* the last unknown first */
            for (index_t j = n + threadIdx.x; j < m; j += blockDim.x) w[c * m + j] /= w[c * m + c];
            __syncthreads();
            for (index_t e = threadIdx.x; e < c * k; e += blockDim.x)
                w[e / k * m + n + e % k] -= w[e / k * m + c] * w[c * m + n + e % k];
            __syncthreads();
        }
        for (index_t e = threadIdx.x; e < n * k; e += blockDim.x) y[p * n * k + e] = (T)w[e / k * m + n + e % k];
        __syncthreads();
    }
}

extern "C" __global__ void det(index_t batches, index_t n, const T *a, T *y, Wide *work) {
    Wide *w = work + blockIdx.x * n * n;
    for (EACH_BLOCK(p, batches)) {
        for (index_t e = threadIdx.x; e < n * n; e += blockDim.x) w[e] = a[p * n * n + e];
        __syncthreads();
        Wide d;
        eliminate(w, n, n, d);
        if (threadIdx.x == 0) y[p] = (T)d;
        __syncthreads();
    }
}
