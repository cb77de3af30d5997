/* A sum, third step: one launch. Every block stores its partial sum and increments a counter; the last block adds
 * up all partial sums. The fence before the counter makes the partial sums visible to the last block. `arrived` is 0
 * before and afterwards. ../reduce.cu does the same along any axes. At most 256 blocks of 256 threads. */
#include "fold.h"

extern "C" __global__ void sum_one_pass(index_t n, const T *x, T *parts, unsigned *arrived, T *y) {
    __shared__ bool last;
    T own = 0;
    for (EACH(i, n)) own += x[i];
    own = fold_block<Sum>(own);
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = own;
        __threadfence();
        last = atomicAdd(arrived, 1u) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (!last) return;                                       /* the whole block, or none of it */
    own = fold_block<Sum>(threadIdx.x < gridDim.x ? parts[threadIdx.x] : (T)0);
    if (threadIdx.x == 0) {
        *y = own;
        *arrived = 0;
    }
}
