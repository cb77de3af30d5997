/* Conversion from one element type to another, with C's rules; and integer ranges. FROM is the source's type,
 * a number of abi.h: half types are stored as 16 bits that only these functions interpret. */
#include "narrow.h"

struct Truth { int8_t bits; };

__device__ __forceinline__ bool read(Truth x) { return x.bits != 0; }
template <class A> struct Write<Truth, A> {
    static __device__ __forceinline__ Truth of(A x) { return {(int8_t)(x != 0)}; }
};

template <int code> struct Type;
template <> struct Type<FE_F32> { typedef float type; };
template <> struct Type<FE_F64> { typedef double type; };
template <> struct Type<FE_I32> { typedef int32_t type; };
template <> struct Type<FE_I64> { typedef int64_t type; };
template <> struct Type<FE_I8> { typedef int8_t type; };
template <> struct Type<FE_U8> { typedef uint8_t type; };
template <> struct Type<FE_I16> { typedef int16_t type; };
template <> struct Type<FE_BOOL> { typedef Truth type; };
template <> struct Type<FE_F16> { typedef Half type; };
template <> struct Type<FE_BF16> { typedef Bfloat type; };

template <class B> __device__ void cast_to(index_t n, const Walk<1> &w, const Type<FROM>::type *x, B *y) {
    for (EACH(i, n)) {
        index_t at[1];
        offsets(w, i, at);
        y[i] = Write<B, decltype(read(x[0]))>::of(read(x[at[0]]));
    }
}

/* w: the source's strides over the shape of y, which is contiguous. */
#define CAST(name, code)                                                                                       \
    extern "C" __global__ void cast_to_##name(index_t n, Walk<1> w, const Type<FROM>::type *x, Type<code>::type *y) { \
        cast_to(n, w, x, y);                                                                                   \
    }
CAST(float32, FE_F32)
CAST(float64, FE_F64)
CAST(int32, FE_I32)
CAST(int64, FE_I64)
CAST(int8, FE_I8)
CAST(uint8, FE_U8)
CAST(int16, FE_I16)
CAST(bool, FE_BOOL)
CAST(float16, FE_F16)
CAST(bfloat16, FE_BF16)
