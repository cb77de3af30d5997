#include "view.h"

extern "C" __global__ void row_sum(index_t n, const float *x, float *y) {
    /* 8.8: your turn */
}
