/* Vector clip(v, low, high): FE_CLIP_f, FE_CLIP_d. NaN stays NaN, because the max and min instructions return
 * their second operand if either operand is NaN. */
#ifndef FLOWEDU_CLIP_VECTOR_H
#define FLOWEDU_CLIP_VECTOR_H

#if defined(__AVX512F__)
#include <immintrin.h>
#define FE_CLIP_f(v, low, high) _mm512_min_ps((__m512)(high), _mm512_max_ps((__m512)(low), (__m512)(v)))
#define FE_CLIP_d(v, low, high) _mm512_min_pd((__m512d)(high), _mm512_max_pd((__m512d)(low), (__m512d)(v)))
#elif defined(__AVX2__)
#include <immintrin.h>
#define FE_CLIP_f(v, low, high) _mm256_min_ps((__m256)(high), _mm256_max_ps((__m256)(low), (__m256)(v)))
#define FE_CLIP_d(v, low, high) _mm256_min_pd((__m256d)(high), _mm256_max_pd((__m256d)(low), (__m256d)(v)))
#else
#define FE_PICK(m, a, b) ((__typeof__(b))(((m) & (__typeof__(m))(a)) | (~(m) & (__typeof__(m))(b))))
#define FE_CLIP_f(v, low, high)                                                                                       \
    ({ __typeof__(v) fe_v = (v); fe_v = FE_PICK(fe_v < (low), (low), fe_v); FE_PICK(fe_v > (high), (high), fe_v); })
#define FE_CLIP_d FE_CLIP_f
#endif
#endif
