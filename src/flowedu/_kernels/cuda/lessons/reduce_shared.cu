/* A sum, first step: every block adds up its part in shared memory, half of its threads after the other half, and leaves
 * one number; a second launch adds up those. Blocks of 256 threads. */
#include "view.h"

extern "C" __global__ void sum_shared(index_t n, const T *x, T *y) {
    __shared__ T part[256];
    T own = 0;
    for (EACH(i, n)) own += x[i];
    part[threadIdx.x] = own;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
