/* Inner loops for resizing byte images and for reading images from Pillow. On x86-64 they are compiled a
 * second time for AVX2, and the library's loader selects the version that the processor supports. Both
 * perform the same operations in the same order, so results are bitwise equal. */
#ifndef FE_PIXEL_ROWS_H
#define FE_PIXEL_ROWS_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && \
    !defined(__SANITIZE_ADDRESS__)
#define FE_ROWS __attribute__((target_clones("avx2", "default")))
#else
#define FE_ROWS
#endif

/* y = u a + v b, and + w c, for n numbers. */
FE_ROWS static void fe_mix_two(const uint8_t *a, const uint8_t *b, float u, float v, ptrdiff_t n, float *restrict y) {
    for (ptrdiff_t j = 0; j < n; j++) y[j] = (float)a[j] * u + (float)b[j] * v;
}

FE_ROWS static void fe_mix_three(const uint8_t *a, const uint8_t *b, const uint8_t *c, float u, float v, float w,
                                 ptrdiff_t n, float *restrict y) {
    for (ptrdiff_t j = 0; j < n; j++) y[j] = (float)a[j] * u + (float)b[j] * v + (float)c[j] * w;
}

/* Round to the nearest integer in 0 to 255, ties to even; NaN becomes 0. Floats near 2 to the 23 have no
 * fraction bits. */
FE_ROWS static void fe_round(const float *x, ptrdiff_t n, uint8_t *restrict y) {
    for (ptrdiff_t j = 0; j < n; j++) {
        float v = x[j] > 0 ? x[j] : 0;
        v = v < 255 ? v : 255;
        y[j] = (uint8_t)(int32_t)((v + 8388608.0f) - 8388608.0f);
    }
}

/* Copy the first three of every four bytes; backwards: in reverse order. All but the last pixel are moved as
 * four bytes, and the next pixel overwrites the fourth. */
static void fe_pack_three(const uint8_t *x, ptrdiff_t n, int backwards, uint8_t *restrict y) {
    if (backwards) {
        for (ptrdiff_t i = 0; i < n; i++)
            for (int c = 0; c < 3; c++) y[3 * i + c] = x[4 * i + 2 - c];
        return;
    }
    for (ptrdiff_t i = 0; i + 1 < n; i++) memcpy(y + 3 * i, x + 4 * i, 4);
    if (n) memcpy(y + 3 * n - 3, x + 4 * n - 4, 3);
}

/* Resize a row of three-channel pixels horizontally: pixel j is the sum of x[index[k]] weight[k] over its
 * `taps`. Pixels are processed as vectors of four, where the fourth element belongs to the next pixel and is
 * overwritten later. So x and y need space for one more element. all: also add taps whose weight is 0 (0 *
 * infinity must give NaN). */
typedef float fe_four __attribute__((vector_size(16), aligned(4), may_alias));

static void fe_across_three(const float *x, const int32_t *index, const float *weight, ptrdiff_t taps, ptrdiff_t count,
                            int all, float *y) {
    for (ptrdiff_t j = 0; j < count; j++, index += taps, weight += taps) {
        ptrdiff_t n = taps;
        fe_four sum = *(const fe_four *)(x + 3 * index[0]) * weight[0];
        while (!all && n > 2 && weight[n - 1] == 0) n--;
        for (ptrdiff_t k = 1; k < n; k++) sum += *(const fe_four *)(x + 3 * index[k]) * weight[k];
        *(fe_four *)(y + 3 * j) = sum;
    }
}
#endif
