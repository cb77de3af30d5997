/* Attention, second step: no scores in memory ("flash attention"). A block takes 32 queries and iterates over
 * the keys in tiles of 32. For each query it keeps the largest score so far, the sum of exp(score - largest),
 * and the weighted sum of the values so far; when a larger score comes, both sums are rescaled (online.h). A
 * warp has 4 queries; a lane has one key of the tile, and the result columns `lane` and `lane + 32`. Blocks
 * of 256 threads; width: at most 64. */
#include "fold.h"

enum { KEYS = 32, WIDTH = 64, OWN = 4 };

/* Rows first ... first + 31 of a matrix, with zeros past its end. */
template <int PITCH>
__device__ __forceinline__ void bring(T (*tile)[PITCH], const T *x, index_t first, index_t rows, index_t width) {
    for (int i = threadIdx.x; i < KEYS * WIDTH; i += 256) {
        const int row = i / WIDTH, col = i % WIDTH;
        tile[row][col] = first + row < rows && col < width ? x[(first + row) * width + col] : (T)0;
    }
}

extern "C" __global__ void __launch_bounds__(256) attention_online(index_t queries, index_t keys, index_t width, const T *q,
                                                                   const T *k, const T *v, T *y) {
    __shared__ T q_tile[KEYS][WIDTH], k_tile[KEYS][WIDTH + 1], v_tile[KEYS][WIDTH];
    const int lane = threadIdx.x % 32, own = threadIdx.x / 32 * OWN;
    const index_t first = (index_t)blockIdx.x * KEYS;
    const T factor = rsqrt((T)width);
    T top[OWN], sum[OWN], out[OWN][2];
#pragma unroll
    for (int i = 0; i < OWN; i++) top[i] = -INFINITY, sum[i] = out[i][0] = out[i][1] = 0;
    bring<WIDTH>(q_tile, q, first, queries, width);
    for (index_t j = 0; j < keys; j += KEYS) {
        bring<WIDTH + 1>(k_tile, k, j, keys, width);
        bring<WIDTH>(v_tile, v, j, keys, width);
        __syncthreads();
        T score[OWN] = {};
        for (int e = 0; e < width; e++) {
            const T here = k_tile[lane][e];
#pragma unroll
            for (int i = 0; i < OWN; i++) score[i] += q_tile[own + i][e] * here;
        }
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            const T own_score = j + lane < keys ? score[i] * factor : -INFINITY;
            const T larger = max(top[i], fold_warp<Max>(own_score)), scale = exp(top[i] - larger);
            score[i] = exp(own_score - larger);              /* the weight of this lane's key */
            top[i] = larger;
            sum[i] = sum[i] * scale + fold_warp<Sum>(score[i]);
            out[i][0] *= scale;
            out[i][1] *= scale;
        }
        for (int s = 0; s < KEYS; s++) {
            const T near = v_tile[s][lane], far = v_tile[s][lane + 32];
#pragma unroll
            for (int i = 0; i < OWN; i++) {
                const T weight = __shfl_sync(ALL_LANES, score[i], s);
                out[i][0] += weight * near;
                out[i][1] += weight * far;
            }
        }
        __syncthreads();                                     /* the tiles may be written again */
    }
#pragma unroll
    for (int i = 0; i < OWN; i++)
#pragma unroll
        for (int half = 0; half < 2; half++)
            if (first + own + i < queries && lane + 32 * half < width)
                y[(first + own + i) * width + lane + 32 * half] = out[i][half] / sum[i];
}
