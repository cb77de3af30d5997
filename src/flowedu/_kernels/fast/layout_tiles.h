/* Specialized inner loops of copy (layout_runs.pyx): a short run, a tile transposed in registers, three
 * channels (de)interleaved. */
#ifndef FLOWEDU_LAYOUT_TILES_H
#define FLOWEDU_LAYOUT_TILES_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Copy n bytes. Short runs (a few elements of a concat along the last axis) are too short for a call to
 * memcpy; two possibly overlapping moves cover any length between 4 and 32. */
static inline void fe_copy_run(void *to, const void *from, size_t n) {
    char *d = (char *)to;
    const char *s = (const char *)from;
    if (n > 32 || n < 4) { memcpy(d, s, n); return; }
#define FE_ENDS(T) { T a, b; memcpy(&a, s, sizeof a); memcpy(&b, s + n - sizeof b, sizeof b); \
                     memcpy(d, &a, sizeof a); memcpy(d + n - sizeof b, &b, sizeof b); }
    typedef struct { uint64_t x, y; } pair;
    if (n >= 16) FE_ENDS(pair) else if (n >= 8) FE_ENDS(uint64_t) else FE_ENDS(uint32_t)
}

/* Transpose an N x N tile in registers: N rows are loaded, log2(N) rounds of "interleave row i with row i +
 * N/2" transpose the tile, N rows are stored. Every cache line is touched once, so power-of-two strides,
 * where lines evict each other, cost nothing extra. */
#ifndef __has_builtin
#define __has_builtin(x) 0
#endif
#if defined(__AVX512F__)
#define FE_N32 16
#define FE_N64 8
#elif defined(__AVX2__)
#define FE_N32 8
#define FE_N64 4
#else
#define FE_N32 4
#define FE_N64 2
#endif
#define FE_LO2 0, 2
#define FE_HI2 1, 3
#define FE_LO4 0, 4, 1, 5
#define FE_HI4 2, 6, 3, 7
#define FE_LO8 0, 8, 1, 9, 2, 10, 3, 11
#define FE_HI8 4, 12, 5, 13, 6, 14, 7, 15
#define FE_LO16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define FE_HI16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#if __has_builtin(__builtin_shufflevector)
#define FE_TILE(T, N, LO, HI) static inline void fe_tile_##T(const T *s, int64_t ss, T *d, int64_t ds) { \
    typedef T V __attribute__((vector_size(N * sizeof(T)))); V a[N], b[N]; \
    _Pragma("GCC unroll 16") for (int i = 0; i < N; i++) memcpy(&a[i], s + i * ss, sizeof(V)); \
    _Pragma("GCC unroll 4") for (int h = 1; h < N; h *= 2) { \
        _Pragma("GCC unroll 8") for (int i = 0; i < N / 2; i++) { \
            b[2 * i] = __builtin_shufflevector(a[i], a[i + N / 2], LO); \
            b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + N / 2], HI); } \
        _Pragma("GCC unroll 16") for (int i = 0; i < N; i++) a[i] = b[i]; } \
    _Pragma("GCC unroll 16") for (int i = 0; i < N; i++) memcpy(d + i * ds, &a[i], sizeof(V)); }
#else
#define FE_TILE(T, N, LO, HI) static inline void fe_tile_##T(const T *s, int64_t ss, T *d, int64_t ds) { \
    for (int j = 0; j < N; j++) for (int i = 0; i < N; i++) d[j * ds + i] = s[i * ss + j]; }
#endif
#define FE_CAT_(a, b) a##b
#define FE_CAT(a, b) FE_CAT_(a, b)
FE_TILE(uint8_t, 16, FE_LO16, FE_HI16)
FE_TILE(uint16_t, 8, FE_LO8, FE_HI8)
FE_TILE(uint32_t, FE_N32, FE_CAT(FE_LO, FE_N32), FE_CAT(FE_HI, FE_N32))
FE_TILE(uint64_t, FE_N64, FE_CAT(FE_LO, FE_N64), FE_CAT(FE_HI, FE_N64))

/* Three interleaved channels (pixels) to three planes, and back: NHWC <-> NCHW images, where a tile would be
 * mostly empty. The constant 3 lets the compiler use vector permutations. */
#define FE_THREE(T) \
    static void fe_split3_##T(const T *restrict s, T *d, int64_t ds, int64_t n) { \
        T *restrict r = d, *restrict g = d + ds, *restrict b = d + 2 * ds; \
        for (int64_t i = 0; i < n; i++) { r[i] = s[3 * i]; g[i] = s[3 * i + 1]; b[i] = s[3 * i + 2]; } } \
    static void fe_merge3_##T(const T *s, int64_t ss, T *restrict d, int64_t n) { \
        const T *restrict r = s, *restrict g = s + ss, *restrict b = s + 2 * ss; \
        for (int64_t i = 0; i < n; i++) { d[3 * i] = r[i]; d[3 * i + 1] = g[i]; d[3 * i + 2] = b[i]; } }
FE_THREE(uint8_t)
FE_THREE(uint16_t)
FE_THREE(uint32_t)
FE_THREE(uint64_t)

/* Transpose n x m items: `n` is fast in the destination, `m` in the source. Work is split into blocks, so
 * that both sides stay in cache, then into tiles of N x N where both sides are contiguous. The rest is copied
 * item by item. */
#define FE_LEAST(a, b) ((a) < (b) ? (a) : (b))
#define FE_TRANSPOSE(T, N)                                                                                     \
    static void fe_transpose_##T(const T *s, T *d, int64_t n, int64_t ss, int64_t ds, int64_t m, int64_t st, int64_t dt) { \
        const int unit = ds == 1 && st == 1;                                                                   \
        for (int64_t jb = 0; jb < m; jb += 64) {                                                               \
            const int64_t je = FE_LEAST(jb + 64, m), jt = unit ? je - (je - jb) % N : jb;                      \
            for (int64_t ib = 0; ib < n; ib += 64) {                                                           \
                const int64_t ie = FE_LEAST(ib + 64, n), it = unit ? ie - (ie - ib) % N : ib;                  \
                for (int64_t j = jb; j < jt; j += N)                                                           \
                    for (int64_t i = ib; i < it; i += N) fe_tile_##T(s + i * ss + j, ss, d + i + j * dt, dt);  \
                for (int64_t j = jb; j < jt; j++)                                                              \
                    for (int64_t i = it; i < ie; i++) d[i * ds + j * dt] = s[i * ss + j * st];                 \
                for (int64_t i = ib; i < ie; i++)                                                              \
                    for (int64_t j = jt; j < je; j++) d[i * ds + j * dt] = s[i * ss + j * st];                 \
            }                                                                                                  \
        }                                                                                                      \
    }                                                                                                          \
    static int fe_plane_##T(const T *s, T *d, int64_t n, int64_t ss, int64_t ds, int64_t m, int64_t st, int64_t dt) { \
        if (ds == 1 && st == 1 && ss == 3 && m == 3) fe_split3_##T(s, d, dt, n);                               \
        else if (ds == 1 && st == 1 && n == 3 && dt == 3) fe_merge3_##T(s, ss, d, m);                          \
        else if (ss != 0 && llabs(st) < llabs(ss) && m > 1 && n > 1) fe_transpose_##T(s, d, n, ss, ds, m, st, dt); \
        else return 0;                                                                                         \
        return 1;                                                                                              \
    }
FE_TRANSPOSE(uint8_t, 16)
FE_TRANSPOSE(uint16_t, 8)
FE_TRANSPOSE(uint32_t, FE_N32)
FE_TRANSPOSE(uint64_t, FE_N64)

/* Copy n x m items, given the steps of both axes in the source and in the destination. Returns 0 if the case
 * is not covered. */
static inline int fe_plane(const void *s, void *d, int64_t n, int64_t ss, int64_t ds, int64_t m, int64_t st, int64_t dt,
                           int item) {
    switch (item) {
    case 1: return fe_plane_uint8_t((const uint8_t *)s, (uint8_t *)d, n, ss, ds, m, st, dt);
    case 2: return fe_plane_uint16_t((const uint16_t *)s, (uint16_t *)d, n, ss, ds, m, st, dt);
    case 4: return fe_plane_uint32_t((const uint32_t *)s, (uint32_t *)d, n, ss, ds, m, st, dt);
    default: return fe_plane_uint64_t((const uint64_t *)s, (uint64_t *)d, n, ss, ds, m, st, dt);
    }
}
#endif
