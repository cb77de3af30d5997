/* Copies between arrays with different layouts, and filling. Elements are only moved, so kernels depend on
 * their size alone: T is uint8_t, uint16_t, uint32_t or uint64_t. */
#include "view.h"

/* w: operand 0 is the source, operand 1 the destination. */
extern "C" __global__ void copy_strided(index_t n, Walk<2> w, const T *x, T *y) {
    for (EACH(i, n)) {
        index_t at[2];
        offsets(w, i, at);
        y[at[1]] = x[at[0]];
    }
}

/* Swap the last two axes: x steps along rows, y along columns. A block moves a tile of 32 x 32 elements
 * through shared memory, so that it reads and writes adjacent elements; rows of 33 avoid bank conflicts.
 * `outer`: the other axes. */
extern "C" __global__ void copy_transposed(index_t outers, Walk<2> outer, index_t rows, index_t cols, index_t x_step,
                                           index_t y_step, const T *x, T *y) {
    __shared__ T tile[32][33];
    const index_t down = (rows + 31) / 32, right = (cols + 31) / 32;
    for (EACH_BLOCK(b, outers * down * right)) {
        const index_t row = b / right % down * 32, col = b % right * 32;
        index_t at[2];
        offsets(outer, b / (down * right), at);
        for (int k = threadIdx.y; k < 32; k += blockDim.y)
            if (row + threadIdx.x < rows && col + k < cols)
                tile[k][threadIdx.x] = x[at[0] + (col + k) * x_step + row + threadIdx.x];
        __syncthreads();
        for (int k = threadIdx.y; k < 32; k += blockDim.y)
            if (row + k < rows && col + threadIdx.x < cols)
                y[at[1] + (row + k) * y_step + col + threadIdx.x] = tile[threadIdx.x][k];
        __syncthreads();
    }
}

/* bits: an element, in the lowest bytes. */
extern "C" __global__ void fill(index_t n, index_t bits, T *y) {
    for (EACH(i, n)) y[i] = (T)bits;
}
