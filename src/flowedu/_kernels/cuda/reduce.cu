/* sum, prod, max and min over any axes.
 *
 * Each output is the fold of the elements at `start(output) + step(r)`, r = 0 ... reduced. Two shapes of blocks, so that
 * neighbouring threads read neighbouring elements:
 *
 *   rows     a block of 256 threads for one output: the innermost axis is folded
 *   columns  32 adjacent outputs, 8 threads for each: the innermost axis is kept
 *
 * One pass: if the outputs are too few to fill the device, `parts` blocks share an output. Each block stores its part in
 * scratch memory, and the last block adds up the parts in order, so the result is deterministic.
 * lessons/ has three steps to this kernel: fold in shared memory, by shuffles, in one pass. */
#include "fold.h"

struct Part { index_t lo, hi; };
__device__ __forceinline__ Part part_of(index_t n, index_t parts, index_t p) {
    const index_t each = (n + parts - 1) / parts, lo = min(p * each, n);
    return {lo, min(lo + each, n)};
}

/* Return true in all threads of the last of the `parts` blocks of this output. The last block sees the earlier writes of
 * all blocks: the writer has a fence before the counter, and the reader has one after it. */
__device__ __forceinline__ bool is_last(unsigned *arrived, index_t parts) {
    __shared__ unsigned before;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        before = atomicAdd(arrived, 1u);
        __threadfence();
    }
    __syncthreads();
    return before == parts - 1;
}

template <class F>
__device__ void rows(index_t outs, index_t reduced, const Walk<1> &kept, const Walk<1> &folded, index_t parts,
                     const T *x, T *y, Wide *scratch, unsigned *arrived) {
    for (EACH_BLOCK(b, outs * parts)) {
        const index_t out = b / parts;
        const Part p = part_of(reduced, parts, b % parts);
        index_t start, at;
        offsets(kept, out, &start);
        Wide v = F::template none<Wide>();
        for (index_t r = p.lo + threadIdx.x; r < p.hi; r += blockDim.x) {
            offsets(folded, r, &at);
            v = F::template join<Wide>(v, x[start + at]);
        }
        v = fold_block<F>(v);
        if (parts > 1) {
            if (threadIdx.x == 0) scratch[b] = v;
            if (!is_last(&arrived[out], parts)) continue;
            v = F::template none<Wide>();
            for (index_t q = threadIdx.x; q < parts; q += blockDim.x)
                v = F::template join<Wide>(v, scratch[out * parts + q]);
            v = fold_block<F>(v);
        }
        if (threadIdx.x == 0) y[out] = (T)v;
    }
}

template <class F>
__device__ void columns(index_t outs, index_t reduced, const Walk<1> &kept, const Walk<1> &folded, index_t parts,
                        const T *x, T *y, Wide *scratch, unsigned *arrived) {
    __shared__ Wide of_row[8][32];
    const index_t groups = (outs + 31) / 32;
    for (EACH_BLOCK(b, groups * parts)) {
        const index_t group = b / parts, out = group * 32 + threadIdx.x;
        const Part p = part_of(reduced, parts, b % parts);
        Wide v = F::template none<Wide>();
        if (out < outs) {
            index_t start, at;
            offsets(kept, out, &start);
            for (index_t r = p.lo + threadIdx.y; r < p.hi; r += 8) {
                offsets(folded, r, &at);
                v = F::template join<Wide>(v, x[start + at]);
            }
        }
        of_row[threadIdx.y][threadIdx.x] = v;
        __syncthreads();
        if (threadIdx.y == 0)
            for (int k = 1; k < 8; k++) v = F::template join<Wide>(v, of_row[k][threadIdx.x]);
        __syncthreads();
        if (parts > 1) {
            if (threadIdx.y == 0) scratch[b * 32 + threadIdx.x] = v;
            if (!is_last(&arrived[group], parts)) continue;
            v = F::template none<Wide>();
            for (index_t q = 0; threadIdx.y == 0 && q < parts; q++)
                v = F::template join<Wide>(v, scratch[(group * parts + q) * 32 + threadIdx.x]);
        }
        if (threadIdx.y == 0 && out < outs) y[out] = (T)v;
    }
}

#define REDUCE(name, F)                                                                                                  \
    extern "C" __global__ void name##_rows(index_t outs, index_t reduced, Walk<1> kept, Walk<1> folded, index_t parts,   \
                                           const T *x, T *y, Wide *scratch, unsigned *arrived) {                         \
        rows<F>(outs, reduced, kept, folded, parts, x, y, scratch, arrived);                                             \
    }                                                                                                                    \
    extern "C" __global__ void name##_columns(index_t outs, index_t reduced, Walk<1> kept, Walk<1> folded,               \
                                              index_t parts, const T *x, T *y, Wide *scratch, unsigned *arrived) {       \
        columns<F>(outs, reduced, kept, folded, parts, x, y, scratch, arrived);                                          \
    }
REDUCE(sum, Sum)
REDUCE(prod, Prod)
REDUCE(max, Max)
REDUCE(min, Min)
