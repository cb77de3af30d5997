/* Folding many numbers into one by sum, product, maximum or minimum: over a warp by shuffles, over a block by warps. */
#ifndef FLOWEDU_CUDA_FOLD_H
#define FLOWEDU_CUDA_FOLD_H
#include "view.h"

#define ALL_LANES 0xffffffffu

template <class W> struct Limit;                        /* of a type: its upper and lower limit */
template <> struct Limit<float> {
    static __device__ float top() { return INFINITY; }
    static __device__ float bottom() { return -INFINITY; }
};
template <> struct Limit<double> {
    static __device__ double top() { return INFINITY; }
    static __device__ double bottom() { return -INFINITY; }
};
template <> struct Limit<int64_t> {
    static __device__ int64_t top() { return INT64_MAX; }
    static __device__ int64_t bottom() { return INT64_MIN; }
};

struct Sum {
    template <class W> static __device__ __forceinline__ W none() { return 0; }
    template <class W> static __device__ __forceinline__ W join(W a, W b) { return a + b; }
};
struct Prod {
    template <class W> static __device__ __forceinline__ W none() { return 1; }
    template <class W> static __device__ __forceinline__ W join(W a, W b) { return a * b; }
};
struct Max {                                            /* a NaN wins */
    template <class W> static __device__ __forceinline__ W none() { return Limit<W>::bottom(); }
    template <class W> static __device__ __forceinline__ W join(W a, W b) { return b > a || b != b ? b : a; }
};
struct Min {
    template <class W> static __device__ __forceinline__ W none() { return Limit<W>::top(); }
    template <class W> static __device__ __forceinline__ W join(W a, W b) { return b < a || b != b ? b : a; }
};

/* Every lane of the warp receives the fold of all lanes' values. */
template <class F, class W> __device__ __forceinline__ W fold_warp(W v) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) v = F::template join<W>(v, __shfl_xor_sync(ALL_LANES, v, step));
    return v;
}

/* Every thread of the block receives the result. Blocks are whole warps along x. Can be called repeatedly. */
template <class F, class W> __device__ __forceinline__ W fold_block(W v) {
    __shared__ W of_warp[32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = (blockDim.x + 31) / 32;
    v = fold_warp<F>(v);
    if (warps == 1) return v;
    __syncthreads();                                    /* of_warp may still be in use by the previous call */
    if (lane == 0) of_warp[warp] = v;
    __syncthreads();
    return fold_warp<F>(lane < warps ? of_warp[lane] : F::template none<W>());
}
#endif
