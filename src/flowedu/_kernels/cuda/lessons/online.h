/* The maximum of a sequence and the sum of exp(element - maximum), computed in one pass ("online"). If a larger
 * element follows, the partial sum is rescaled. Two such pairs can be merged into the pair of both sequences.
 */
#ifndef FLOWEDU_CUDA_LESSONS_ONLINE_H
#define FLOWEDU_CUDA_LESSONS_ONLINE_H
#include "fold.h"

struct Online {
    T top, sum;
    __device__ __forceinline__ T scaled(T to) const { return top == to ? sum : sum * exp(top - to); }
    __device__ __forceinline__ Online joined(const Online &other) const {
        const T to = max(top, other.top);
        return {to, scaled(to) + other.scaled(to)};
    }
};

/* Every lane of the warp receives the merged result. */
__device__ __forceinline__ Online joined_by_warp(Online v) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        v = v.joined({__shfl_xor_sync(ALL_LANES, v.top, step), __shfl_xor_sync(ALL_LANES, v.sum, step)});
    return v;
}
#endif
