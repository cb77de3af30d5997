#include "view.h"

extern "C" __global__ void add(index_t n, const float *x, const float *y, float *z) {
    /* 8.7: your turn */
}
