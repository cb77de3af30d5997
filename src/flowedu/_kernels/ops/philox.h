/* Philox4x32-10 for many counters at once, in vectors of 64-bit lanes, because the 32 x 32 -> 64 bit product
 * needs a whole lane. The upper halves of the state's words may hold garbage until the end, because that
 * product ignores them.
 */
#ifndef FLOWEDU_PHILOX_H
#define FLOWEDU_PHILOX_H
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define FE_LANES 8
#define FE_MUL(a, m) (fe_u64v)_mm512_mul_epu32((__m512i)(a), _mm512_set1_epi64(m))
#elif defined(__AVX2__)
#define FE_LANES 4
#define FE_MUL(a, m) (fe_u64v)_mm256_mul_epu32((__m256i)(a), _mm256_set1_epi64x(m))
#elif defined(__SSE2__)
#define FE_LANES 2
#define FE_MUL(a, m) (fe_u64v)_mm_mul_epu32((__m128i)(a), _mm_set1_epi64x(m))
#else
#define FE_LANES 2
#define FE_MUL(a, m) (((a) & 0xffffffffu) * (m))
#endif
#define FE_GROUPS 4 /* independent vectors, which hide the latency of the products */

typedef uint64_t fe_u64v __attribute__((vector_size(8 * FE_LANES)));

/* 4 * n words from n consecutive counters; n is a multiple of FE_GROUPS * FE_LANES (at most 32). */
static void fe_philox(uint64_t seed, uint64_t draw, uint64_t block, int n, uint32_t *out) {
    fe_u64v lane;
    for (int i = 0; i < FE_LANES; i++) lane[i] = i;
    for (int i = 0; i < n; i += FE_GROUPS * FE_LANES) {
        fe_u64v c0[FE_GROUPS], c1[FE_GROUPS], c2[FE_GROUPS], c3[FE_GROUPS];
        uint64_t k0 = seed & 0xffffffffu, k1 = seed >> 32;
#pragma GCC unroll 4
        for (int g = 0; g < FE_GROUPS; g++) {
            c0[g] = lane + (block + i + g * FE_LANES);
            c1[g] = c0[g] >> 32;
            c2[g] = lane - lane + draw;
            c3[g] = c2[g] >> 32;
        }
#pragma GCC unroll 10
        for (int r = 0; r < 10; r++) {
#pragma GCC unroll 4
            for (int g = 0; g < FE_GROUPS; g++) {
                fe_u64v p0 = FE_MUL(c0[g], 0xD2511F53u), p1 = FE_MUL(c2[g], 0xCD9E8D57u);
                c0[g] = (p1 >> 32) ^ c1[g] ^ k0;
                c2[g] = (p0 >> 32) ^ c3[g] ^ k1;
                c1[g] = p1;
                c3[g] = p0;
            }
            k0 = (k0 + 0x9E3779B9u) & 0xffffffffu;
            k1 = (k1 + 0xBB67AE85u) & 0xffffffffu;
        }
#pragma GCC unroll 4
        for (int g = 0; g < FE_GROUPS; g++) {
            uint64_t a[FE_LANES], b[FE_LANES], ab[2 * FE_LANES]; /* words 0, 1 and words 2, 3 of each counter */
            fe_u64v va = (c0[g] & 0xffffffffu) | (c1[g] << 32), vb = (c2[g] & 0xffffffffu) | (c3[g] << 32);
            memcpy(a, &va, sizeof a);
            memcpy(b, &vb, sizeof b);
            for (int j = 0; j < FE_LANES; j++) { ab[2 * j] = a[j]; ab[2 * j + 1] = b[j]; }
            memcpy(out + 4 * (i + g * FE_LANES), ab, sizeof ab);
        }
    }
}
#endif
