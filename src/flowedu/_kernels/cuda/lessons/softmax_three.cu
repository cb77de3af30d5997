/* softmax of rows, first step: the definition. A block takes a row and traverses it three times: for the
 * largest element (exp must not overflow), for the sum, and for the results. Each element is read three times
 * and written once. */
#include "fold.h"

extern "C" __global__ void softmax_three(index_t rows, index_t n, const T *x, T *y) {
    for (EACH_BLOCK(r, rows)) {
        T top = -INFINITY, sum = 0;
        for (index_t j = threadIdx.x; j < n; j += blockDim.x) top = max(top, x[r * n + j]);
        top = fold_block<Max>(top);
        for (index_t j = threadIdx.x; j < n; j += blockDim.x) sum += exp(x[r * n + j] - top);
        sum = fold_block<Sum>(sum);
        for (index_t j = threadIdx.x; j < n; j += blockDim.x) y[r * n + j] = exp(x[r * n + j] - top) / sum;
    }
}
