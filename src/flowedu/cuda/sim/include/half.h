// __half: stored in 16 bits, computed in float and rounded, as CUDA defines it.
#pragma once

struct __half {
    unsigned short bits;
    __half() = default;
    __half(float v) {
        _Float16 h = (_Float16)v;
        __builtin_memcpy(&bits, &h, 2);
    }
    __half(double v) : __half((float)v) {}
    __half(int v) : __half((float)v) {}
    operator float() const {
        _Float16 h;
        __builtin_memcpy(&h, &bits, 2);
        return (float)h;
    }
};
typedef __half half;
struct alignas(4) __half2 { __half x, y; };
typedef __half2 half2;

inline __half __float2half(float v) { return __half(v); }
inline __half __float2half_rn(float v) { return __half(v); }
inline float __half2float(__half v) { return (float)v; }
inline __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
inline float2 __half22float2(__half2 v) { return {(float)v.x, (float)v.y}; }
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half __low2half(__half2 v) { return v.x; }
inline __half __high2half(__half2 v) { return v.y; }

#define CUDASIM_HALF(NAME, OP)                                                                                       \
    inline __half operator OP(__half a, __half b) { return __half((float)a OP (float)b); }                           \
    inline __half& operator OP##=(__half& a, __half b) { return a = a OP b; }                                        \
    inline __half NAME(__half a, __half b) { return a OP b; }                                                        \
    inline __half2 NAME##2(__half2 a, __half2 b) { return {a.x OP b.x, a.y OP b.y}; }
CUDASIM_HALF(__hadd, +)
CUDASIM_HALF(__hsub, -)
CUDASIM_HALF(__hmul, *)
CUDASIM_HALF(__hdiv, /)
inline __half operator-(__half a) { return __half(-(float)a); }
inline __half __hfma(__half a, __half b, __half c) { return __half(fmaf((float)a, (float)b, (float)c)); }
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
inline bool operator<(__half a, __half b) { return (float)a < (float)b; }
inline bool operator>(__half a, __half b) { return (float)a > (float)b; }
inline bool operator==(__half a, __half b) { return (float)a == (float)b; }
