// CUDA's math functions that the C library lacks. The fast ones (__expf) are as exact as the others.
#pragma once

template <class T> inline T __ldg(const T* p) { return *p; }
template <class T> inline T __ldcg(const T* p) { return *p; }
template <class T> inline T __ldca(const T* p) { return *p; }
template <class T> inline T __ldcs(const T* p) { return *p; }
template <class T> inline void __stcg(T* p, T v) { *p = v; }
template <class T> inline void __stcs(T* p, T v) { *p = v; }

#define CUDASIM_MIN_MAX(T)                                                                                           \
    inline T min(T a, T b) { return b < a ? b : a; }                                                                 \
    inline T max(T a, T b) { return a < b ? b : a; }
CUDASIM_MIN_MAX(int)
CUDASIM_MIN_MAX(unsigned)
CUDASIM_MIN_MAX(long)
CUDASIM_MIN_MAX(unsigned long)
CUDASIM_MIN_MAX(long long)
CUDASIM_MIN_MAX(unsigned long long)
inline unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
inline unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
inline unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
inline unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double min(float a, double b) { return fmin(a, b); }
inline double min(double a, float b) { return fmin(a, b); }
inline double max(float a, double b) { return fmax(a, b); }
inline double max(double a, float b) { return fmax(a, b); }

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / ::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
inline float sinpif(float x) { return (float)::sin(M_PI * x); }
inline float cospif(float x) { return (float)::cos(M_PI * x); }
inline double sinpi(double x) { return ::sin(M_PI * x); }
inline double cospi(double x) { return ::cos(M_PI * x); }
inline void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
inline float normcdff(float x) { return 0.5f * erfcf(-x * (float)M_SQRT1_2); }
inline float saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }       // NaN becomes 0, as on a GPU
#define __saturatef saturatef

inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return powf(10.0f, x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline void __sincosf(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }

// The compiler must not fuse these operations.
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
inline __attribute__((noinline)) float __fadd_rn(float a, float b) { return a + b; }
inline __attribute__((noinline)) float __fsub_rn(float a, float b) { return a - b; }
inline __attribute__((noinline)) float __fmul_rn(float a, float b) { return a * b; }
inline __attribute__((noinline)) float __fdiv_rn(float a, float b) { return a / b; }
inline __attribute__((noinline)) double __dadd_rn(double a, double b) { return a + b; }
inline __attribute__((noinline)) double __dsub_rn(double a, double b) { return a - b; }
inline __attribute__((noinline)) double __dmul_rn(double a, double b) { return a * b; }
inline __attribute__((noinline)) double __ddiv_rn(double a, double b) { return a / b; }
#pragma GCC pop_options

template <class To, class From> inline To cudasim_bits(From v) {
    static_assert(sizeof(To) == sizeof(From));
    To r;
    __builtin_memcpy(&r, &v, sizeof r);
    return r;
}
inline int __float_as_int(float v) { return cudasim_bits<int>(v); }
inline unsigned __float_as_uint(float v) { return cudasim_bits<unsigned>(v); }
inline float __int_as_float(int v) { return cudasim_bits<float>(v); }
inline float __uint_as_float(unsigned v) { return cudasim_bits<float>(v); }
inline long long __double_as_longlong(double v) { return cudasim_bits<long long>(v); }
inline double __longlong_as_double(long long v) { return cudasim_bits<double>(v); }

// A GPU's conversions saturate. In C, values out of range are undefined.
template <class T> inline T cudasim_clamped(double v) {
    constexpr double low = T(-1) < T(0) ? -(double)(1ull << (8 * sizeof(T) - 1)) : 0.0;
    constexpr double high = (T(-1) < T(0) ? 1.0 : 2.0) * (double)(1ull << (8 * sizeof(T) - 1));
    return v != v ? T(0) : v <= low ? (T)(T(-1) < T(0) ? T(1) << (8 * sizeof(T) - 1) : T(0))
           : v >= high ? (T)~(T(-1) < T(0) ? T(1) << (8 * sizeof(T) - 1) : T(0)) : (T)v;
}
inline int __float2int_rn(float v) { return cudasim_clamped<int>(rintf(v)); }
inline int __float2int_rz(float v) { return cudasim_clamped<int>(truncf(v)); }
inline int __float2int_rd(float v) { return cudasim_clamped<int>(floorf(v)); }
inline int __float2int_ru(float v) { return cudasim_clamped<int>(ceilf(v)); }
inline unsigned __float2uint_rn(float v) { return cudasim_clamped<unsigned>(rintf(v)); }
inline unsigned __float2uint_rz(float v) { return cudasim_clamped<unsigned>(truncf(v)); }
inline float __int2float_rn(int v) { return (float)v; }
inline float __uint2float_rn(unsigned v) { return (float)v; }
inline int __double2int_rn(double v) { return cudasim_clamped<int>(rint(v)); }
inline float __double2float_rn(double v) { return (float)v; }

inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __ffsll(long long v) { return __builtin_ffsll(v); }
inline int __clz(int v) { return v ? __builtin_clz(v) : 32; }
inline int __clzll(long long v) { return v ? __builtin_clzll(v) : 64; }
inline unsigned __brev(unsigned v) {
    unsigned r = 0;
    for (int i = 0; i < 32; ++i) r |= (v >> i & 1) << (31 - i);
    return r;
}
inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
inline unsigned __sad(int a, int b, unsigned c) { return (a > b ? a - b : b - a) + c; }
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
    unsigned long long both = (unsigned long long)b << 32 | a;
    unsigned r = 0;
    for (int i = 0; i < 4; ++i) r |= (unsigned)(both >> 8 * (s >> 4 * i & 7) & 0xff) << 8 * i;
    return r;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned n) {
    return (unsigned)(((unsigned long long)high << 32 | low) << (n & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned n) {
    return (unsigned)(((unsigned long long)high << 32 | low) >> (n & 31));
}

inline long long clock64() { return cudasim_clock(); }
inline int clock_() { return (int)cudasim_clock(); }
#define clock clock_
inline unsigned long long globaltimer() { return (unsigned long long)cudasim_clock(); }
inline void __nanosleep(unsigned) {}
