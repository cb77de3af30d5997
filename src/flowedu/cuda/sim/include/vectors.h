// Vector types with CUDA's alignments: a float4 is read and written as 16 bytes at once.
#pragma once

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef long long longlong;
typedef unsigned long long ulonglong;

#define CUDASIM_VECTORS(T, N)                                                                                        \
    struct N##1 { T x; };                                                                                            \
    struct alignas(2 * sizeof(T)) N##2 { T x, y; };                                                                  \
    struct N##3 { T x, y, z; };                                                                                      \
    struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) N##4 { T x, y, z, w; };                                  \
    inline N##1 make_##N##1(T x) { return {x}; }                                                                     \
    inline N##2 make_##N##2(T x, T y) { return {x, y}; }                                                             \
    inline N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; }                                                     \
    inline N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }

CUDASIM_VECTORS(signed char, char)
CUDASIM_VECTORS(uchar, uchar)
CUDASIM_VECTORS(short, short)
CUDASIM_VECTORS(ushort, ushort)
CUDASIM_VECTORS(int, int)
CUDASIM_VECTORS(long, long)
CUDASIM_VECTORS(ulong, ulong)
CUDASIM_VECTORS(longlong, longlong)
CUDASIM_VECTORS(ulonglong, ulonglong)
CUDASIM_VECTORS(float, float)
CUDASIM_VECTORS(double, double)

// machine.h defines uint3.
struct uint1 { unsigned x; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
inline uint1 make_uint1(unsigned x) { return {x}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
