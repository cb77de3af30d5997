/* Random numbers from Philox4x32-10, equal to the CPU's (see ../ops/random.pyx), and dropout.
 *
 * Block b of a draw is a function of (seed, draw, b), four words; element i comes from block i / 4, or from i
 * / 2 if an element takes two words. A thread generates the elements of one block. */
#include "view.h"

struct Words { uint32_t w[4]; };

__device__ __forceinline__ Words philox(uint64_t seed, uint64_t draw, uint64_t block) {
    uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = (uint32_t)draw, c3 = (uint32_t)(draw >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
#pragma unroll
    for (int r = 0; r < 10; r++) {
        const uint64_t p0 = (uint64_t)c0 * 0xD2511F53u, p1 = (uint64_t)c2 * 0xCD9E8D57u;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}

/* A double in [0, 1) from 53 bits of two words. */
__device__ __forceinline__ double unit53(const uint32_t *w) {
    return ((w[0] >> 5) * 67108864.0 + (w[1] >> 6)) * (1.0 / 9007199254740992.0);
}

/* low + (high - low) * u, never more than top, the number before high. Rounded twice, as on the CPU. */
__device__ __forceinline__ float scaled(float u, float width, float low) { return __fadd_rn(__fmul_rn(u, width), low); }
__device__ __forceinline__ double scaled(double u, double width, double low) { return __dadd_rn(__dmul_rn(u, width), low); }

/* A thread's elements are adjacent and stored at once: if 32 threads stored one element each, N apart, they
 * would touch N times as many sectors. */
template <class V, int N> struct alignas(N * sizeof(V)) Run {
    V v[N];
    __device__ __forceinline__ void put(V *y, index_t b, index_t n) const {
        if (b * N + N <= n && (size_t)y % sizeof(Run) == 0) {
            ((Run *)y)[b] = *this;
            return;
        }
#pragma unroll
        for (int j = 0; j < N; j++)
            if (b * N + j < n) y[b * N + j] = v[j];
    }
};

extern "C" __global__ void random_uniform(index_t n, index_t seed, index_t draw, double low_, double high_, double top,
                                          T *y) {
    const T low = (T)low_, width = (T)high_ - low;
    constexpr int each = sizeof(T) == 8 ? 2 : 4;
    for (EACH(b, (n + each - 1) / each)) {
        const Words w = philox(seed, draw, b);
        Run<T, each> made;
#pragma unroll
        for (int j = 0; j < each; j++) {
            const T u = sizeof(T) == 8 ? (T)unit53(w.w + 2 * (j % 2)) : (T)(w.w[j] >> 8) * (T)(1.0 / 16777216.0);
            made.v[j] = min(scaled(u, width, low), (T)top);
        }
        made.put(y, b, n);
    }
}

/* Box-Muller: a block makes two numbers, the cosine and the sine of one angle. */
extern "C" __global__ void random_normal(index_t n, index_t seed, index_t draw, double mean, double std, T *y) {
    for (EACH(b, (n + 1) / 2)) {
        const Words w = philox(seed, draw, b);
        const double radius = std * sqrt(-2.0 * log(1.0 - unit53(w.w))), angle = 6.283185307179586 * unit53(w.w + 2);
        Run<T, 2>{{(T)(mean + radius * cos(angle)), (T)(mean + radius * sin(angle))}}.put(y, b, n);
    }
}

/* 1 where u > rate: (word >> 8) > limit. */
extern "C" __global__ void random_mask(index_t n, index_t seed, index_t draw, index_t limit, int8_t *y) {
    for (EACH(b, (n + 3) / 4)) {
        const Words w = philox(seed, draw, b);
        Run<int8_t, 4> made;
#pragma unroll
        for (int j = 0; j < 4; j++) made.v[j] = (w.w[j] >> 8) > (uint32_t)limit;
        made.put(y, b, n);
    }
}

/* The upper half of (64 random bits) * width. */
extern "C" __global__ void random_randint(index_t n, index_t seed, index_t draw, index_t low, index_t width, int64_t *y) {
    for (EACH(b, (n + 1) / 2)) {
        const Words w = philox(seed, draw, b);
        Run<int64_t, 2> made;
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const uint64_t high = w.w[2 * j + 1] * (uint64_t)width, rest = w.w[2 * j] * (uint64_t)width;
            made.v[j] = low + (int64_t)((high + (rest >> 32)) >> 32);
        }
        made.put(y, b, n);
    }
}

/* A selection instead of a product: the largest numbers times 0 could be inf * 0. */
extern "C" __global__ void dropout(index_t n, double scale, const T *x, const int8_t *mask, T *y) {
    for (EACH(i, n)) y[i] = mask[i] ? x[i] * (T)scale : (T)0;
}
