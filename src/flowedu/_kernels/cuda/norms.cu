/* The norm of all elements of many arrays: the squares of each piece, then the root of their sum. The order
 * is fixed, so the result is reproducible. */
#include "many.h"

struct Row { index_t n, first; const T *x; };

extern "C" __global__ void square_sums(const Table<Row, 128> table, double *sums) {
    for (EACH_BLOCK(piece, table.pieces)) {
        const Row &r = table.row[row_of(table, piece)];
        const index_t from = (piece - r.first) * BLOCK, to = min(from + BLOCK, r.n);
        double sum = 0;
        for (index_t i = from + threadIdx.x; i < to; i += blockDim.x) sum += (double)r.x[i] * r.x[i];
        sum = fold_block<Sum>(sum);
        if (threadIdx.x == 0) sums[piece] = sum;
    }
}

extern "C" __global__ void root(index_t n, const double *sums, T *y) {
    double sum = 0;
    for (index_t i = threadIdx.x; i < n; i += blockDim.x) sum += sums[i];
    sum = fold_block<Sum>(sum);
    if (threadIdx.x == 0) *y = (T)sqrt(sum);
}
