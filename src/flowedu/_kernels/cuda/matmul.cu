/* matmul: batched products of matrices with any strides; added terms; and a product that is subtracted from a
 * weight in place. */
#include "matrix.h"

/* y[batch] = a[batch] b[batch]; batch: the offsets of the batches of a and b. y is contiguous. */
extern "C" __global__ void __launch_bounds__(256) matmul(
        index_t batches, Walk<2> batch, index_t rows, index_t cols, index_t depth, const T *a, index_t a_row, index_t a_col,
        const T *b, index_t b_row, index_t b_col, T *y) {
    const index_t down = (rows + TILE - 1) / TILE, right = (cols + TILE - 1) / TILE;
    for (EACH_BLOCK(t, batches * down * right)) {
        const index_t n = t / (down * right);
        index_t at[2];
        offsets(batch, n, at);
        product_tile(Matrix(a + at[0], a_row, a_col), Matrix(b + at[1], b_col, b_row), Store{y + n * rows * cols, cols},
                     t / right % down * TILE, t % right * TILE, rows, cols, 0, depth);
    }
}

/* y[i] += bias[i % cols] + residual[i]; residual may be null. */
extern "C" __global__ void add_terms(index_t n, index_t cols, const T *bias, const T *residual, T *y) {
    for (EACH(i, n)) {
        const T sum = y[i] + bias[i % cols];
        y[i] = residual ? sum + residual[i] : sum;
    }
}

struct Subtract {
    T *data;
    index_t cols;
    T factor;
    __device__ __forceinline__ void put(index_t row, index_t col, T v) const { data[row * cols + col] -= factor * v; }
};

/* w -= lr * scale * (a b): the gradient of a weight is subtracted in place and never stored. */
extern "C" __global__ void __launch_bounds__(256) matmul_update(
        index_t rows, index_t cols, index_t depth, const T *a, index_t a_row, index_t a_col, const T *b, index_t b_row,
        index_t b_col, const float *lr, double scale, T *w) {
    const index_t right = (cols + TILE - 1) / TILE, down = (rows + TILE - 1) / TILE;
    for (EACH_BLOCK(t, down * right))
        product_tile(Matrix(a, a_row, a_col), Matrix(b, b_col, b_row), Subtract{w, cols, (T)(*lr * scale)},
                     t / right * TILE, t % right * TILE, rows, cols, 0, depth);
}
