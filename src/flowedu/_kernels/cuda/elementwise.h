/* Elementwise formulas on the device: every formula of formulas.h and more_formulas.h as a function `op_NAME`
 * of Op<T>, and the loops that run one formula, or a chain, over whole arrays. flowedu/cuda/programs.py
 * generates one kernel per program, for its operands. */
#include "view.h"
#include "narrow.h"
#include "more_formulas.h"
#include "formulas.h"

template <class T> struct Numbers {                    /* formulas of any type */
#define UNARY(name, formula) static __device__ __forceinline__ T op_##name(T a) { return (T)(formula); }
#define BINARY(name, formula) static __device__ __forceinline__ T op_##name(T a, T b) { return (T)(formula); }
#define COMPARE(name, formula) static __device__ __forceinline__ int8_t op_##name(T a, T b) { return (int8_t)(formula); }
#define COMPARE_BOOL(name, same) static __device__ __forceinline__ int8_t op_##name(T a, T b) { return op_##same(a, b); }
    FE_UNARY_ANY(UNARY)
    FE_BINARY_ANY(BINARY)
    FE_COMPARE(COMPARE)
    FE_COMPARE_BOOL(COMPARE_BOOL)
    static __device__ __forceinline__ T op_where(int8_t c, T a, T b) { return c ? a : b; }
};
template <class T> struct Reals : Numbers<T> {         /* formulas of real numbers */
    FE_UNARY_REAL(UNARY)
    FE_BINARY_REAL(BINARY)
};
template <class T> struct Op : Numbers<T> {            /* formulas of integers */
    FE_BINARY_INT(BINARY)
};
template <> struct Op<float> : Reals<float> {};
template <> struct Op<double> : Reals<double> {};

/* Four adjacent elements, moved at once: one instruction for 16 bytes. */
template <class T> struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) Four { T v[4]; };
template <class T> __device__ __forceinline__ Four<T> four(const T *x, index_t i) { return ((const Four<T> *)x)[i]; }
template <class T> __device__ __forceinline__ void put_four(T *y, index_t i, Four<T> v) { ((Four<T> *)y)[i] = v; }
