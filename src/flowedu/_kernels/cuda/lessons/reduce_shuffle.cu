/* A sum, second step: the 32 threads of a warp hand each other their numbers directly, without memory and barriers; shared
 * memory holds one number of each warp, and there is one barrier instead of eight. ../fold.h is made of this. The third
 * step, ../reduce.cu, needs no second launch: the block that finds itself the last adds up what the others left. */
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
