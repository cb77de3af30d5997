// cuda.add_inside
#include "view.h"

extern "C" __global__ void add(index_t n, const float *x, const float *y, float *z) {
    const index_t i = (index_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) z[i] = x[i] + y[i];
}
