/* The 16-bit floats on the device: conversion to float32, and from float32 with one rounding. */
#include "view.h"

struct Half { uint16_t bits; };
struct Bfloat { uint16_t bits; };

__device__ __forceinline__ float float_of(uint32_t bits) { float x; memcpy(&x, &bits, 4); return x; }
__device__ __forceinline__ uint32_t bits_of(float x) { uint32_t bits; memcpy(&bits, &x, 4); return bits; }

/* ---- reading */
template <class A> __device__ __forceinline__ A read(A x) { return x; }
__device__ __forceinline__ float read(Bfloat x) { return float_of((uint32_t)x.bits << 16); }
__device__ __forceinline__ float read(Half h) {
    const uint32_t sign = (uint32_t)(h.bits & 0x8000) << 16, rest = h.bits & 0x7fff;
    if (rest >= 0x7c00) return float_of(sign | 0x7f800000u | (rest & 0x3ff) << 13);              /* infinity, NaN */
    if (rest < 0x400) return sign ? -(float)rest * 0x1p-24f : (float)rest * 0x1p-24f;            /* denormal */
    return float_of(sign | ((rest << 13) + 0x38000000u));
}

/* ---- writing */
template <class B, class A> struct Write { static __device__ __forceinline__ B of(A x) { return (B)x; } };
template <class A> struct Write<Bfloat, A> {           /* the upper half of a float, to nearest, ties to even */
    static __device__ __forceinline__ Bfloat of(A x) {
        const uint32_t b = bits_of((float)x);
        if ((b & 0x7fffffffu) > 0x7f800000u) return {(uint16_t)(b >> 16 | 0x40)};                /* NaN stays NaN */
        return {(uint16_t)((b + 0x7fffu + (b >> 16 & 1)) >> 16)};
    }
};
/* Through double, which represents every half: rounded once, to nearest, ties to even. */
template <class A> struct Write<Half, A> {
    static __device__ __forceinline__ Half of(A x_) {
        const double x = (double)x_, a = fabs(x);
        const uint16_t sign = copysign(1.0, x) < 0 ? 0x8000 : 0;
        if (x != x) return {(uint16_t)(sign | 0x7e00)};
        if (a >= 65520) return {(uint16_t)(sign | 0x7c00)};
        if (a < 0x1p-14) return {(uint16_t)(sign | (int)rint(a * 0x1p24))};  /* denormal, or the first */
        int e;
        const int m = (int)rint(ldexp(frexp(a, &e), 11));                                        /* 1024 ... 2048 */
        return {(uint16_t)(sign | (((e + 13) << 10) + m))};      /* 2048 carries into the exponent, as it should */
    }
};
