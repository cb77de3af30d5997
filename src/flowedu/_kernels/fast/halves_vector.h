/* Conversion of arrays between float16 and float32, written with intrinsics because gcc does not vectorize
 * it. */
#ifndef FLOWEDU_HALVES_VECTOR_H
#define FLOWEDU_HALVES_VECTOR_H
#if defined(__F16C__) && defined(__FLT16_MAX__)
#include <immintrin.h>
#endif

static inline void fe_widen_f16(const fe_half *x, float *y, int64_t n) {
    int64_t i = 0;
#if defined(__AVX512F__) && defined(__FLT16_MAX__)
    for (; i + 16 <= n; i += 16) _mm512_storeu_ps(y + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(x + i))));
#elif defined(__F16C__) && defined(__FLT16_MAX__)
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
#endif
    for (; i < n; i++) y[i] = fe_from_f16(x[i]);
}

static inline void fe_round_f16(const float *x, fe_half *y, int64_t n) {
    int64_t i = 0;
#if defined(__AVX512F__) && defined(__FLT16_MAX__)
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(y + i), _mm512_cvtps_ph(_mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__) && defined(__FLT16_MAX__)
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; i++) y[i] = fe_to_f16(x[i]);
}
#endif
