/* Launches over many arrays at once: a table describes the arrays, and the blocks of the grid process all
 * pieces of BLOCK elements. A row of the table has `n` elements, in the pieces from `first` on. The table is
 * passed by value, so it needs no device memory. */
#ifndef FLOWEDU_CUDA_MANY_H
#define FLOWEDU_CUDA_MANY_H
#include "fold.h"

enum { BLOCK = 2048 };                     /* of cuda/launches/many.py */

template <class Row, int ROWS> struct Table { index_t rows, pieces; Row row[ROWS]; };

/* The row of a piece: the last row that begins there or before (empty rows have no piece). */
template <class Table> __device__ __forceinline__ int row_of(const Table &t, index_t piece) {
    int low = 0, high = (int)t.rows;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (t.row[middle].first <= piece) low = middle;
        else high = middle;
    }
    return low;
}
#endif
