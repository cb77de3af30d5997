/* A sum, second step: the 32 threads of a warp exchange their partial sums directly, without memory and barriers. Shared
 * memory holds one partial sum per warp, and one barrier replaces eight. ../fold.h uses this. The third step,
 * ../reduce.cu, needs no second launch: the last block adds up the partial sums of all blocks. */
#include "view.h"

extern "C" __global__ void sum_shuffle(index_t n, const T *x, T *y) {
    __shared__ T of_warp[32];
    T own = 0;
    for (EACH(i, n)) own += x[i];
    for (int step = 16; step > 0; step /= 2) own += __shfl_down_sync(0xffffffffu, own, step);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = own;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    own = threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x] : (T)0;
    for (int step = 16; step > 0; step /= 2) own += __shfl_down_sync(0xffffffffu, own, step);
    if (threadIdx.x == 0) y[blockIdx.x] = own;
}
