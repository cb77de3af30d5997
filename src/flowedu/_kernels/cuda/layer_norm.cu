/* Layer norm and its gradient: a block processes a row of n elements. The gradients of gamma and beta are
 * sums over all rows, computed for 32 adjacent columns with 8 threads each. */
#include "fold.h"

extern "C" __global__ void layer_norm(index_t rows, index_t n, double epsilon, const T *x, const T *gamma, const T *beta,
                                      T *y, T *mean, T *inv_std) {
    for (EACH_BLOCK(r, rows)) {
        const T *row = x + r * n;
        Wide sum = 0, square = 0;
        for (index_t j = threadIdx.x; j < n; j += blockDim.x) sum += row[j];
        const Wide exact = fold_block<Sum>(sum) / n;
        for (index_t j = threadIdx.x; j < n; j += blockDim.x) square += (row[j] - exact) * (row[j] - exact);
        const T m = (T)exact, s = (T)(1 / sqrt(fold_block<Sum>(square) / n + epsilon));
        for (index_t j = threadIdx.x; j < n; j += blockDim.x) y[r * n + j] = (row[j] - m) * s * gamma[j] + beta[j];
        if (threadIdx.x == 0) mean[r] = m, inv_std[r] = s;
    }
}

extern "C" __global__ void layer_norm_grad(index_t rows, index_t n, const T *dy, const T *x, const T *gamma, const T *mean,
                                           const T *inv_std, T *dx) {
    for (EACH_BLOCK(r, rows)) {
        const T m = mean[r], s = inv_std[r];
        Wide sum = 0, dot = 0;
        for (index_t i = r * n + threadIdx.x; i < (r + 1) * n; i += blockDim.x) {
            const T g = dy[i] * gamma[i - r * n];
            sum += g;
            dot += g * (x[i] - m);
        }
        const T a = (T)(fold_block<Sum>(sum) / n), b = (T)(fold_block<Sum>(dot) * s / n);
        for (index_t i = r * n + threadIdx.x; i < (r + 1) * n; i += blockDim.x)
            dx[i] = s * (dy[i] * gamma[i - r * n] - a - (x[i] - m) * (s * b));
    }
}

extern "C" __global__ void layer_norm_grad_columns(index_t rows, index_t n, const T *dy, const T *x, const T *mean,
                                                   const T *inv_std, T *dgamma, T *dbeta) {
    __shared__ Wide gammas[8][32], betas[8][32];
    const index_t j = (index_t)blockIdx.x * 32 + threadIdx.x;
    Wide g = 0, b = 0;
    for (index_t r = threadIdx.y; j < n && r < rows; r += 8) {
        g += dy[r * n + j] * ((x[r * n + j] - mean[r]) * inv_std[r]);
        b += dy[r * n + j];
    }
    gammas[threadIdx.y][threadIdx.x] = g, betas[threadIdx.y][threadIdx.x] = b;
    __syncthreads();
    if (threadIdx.y > 0 || j >= n) return;
    for (int k = 1; k < 8; k++) g += gammas[k][threadIdx.x], b += betas[k][threadIdx.x];
    dgamma[j] = (T)g, dbeta[j] = (T)b;
}
