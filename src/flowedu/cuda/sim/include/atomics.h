// Atomic operations. Only one thread runs at a time, so a read and a write are atomic.
#pragma once

namespace cudasim {

// Values are accessed as integers of their size. The hooks of g++ ignore these; cudasim_atomic checks them.
template <size_t Size> struct Word;
template <> struct Word<2> { typedef unsigned short type; };
template <> struct Word<4> { typedef unsigned type; };
template <> struct Word<8> { typedef unsigned long long type; };

template <class T> __forceinline__ T peek(T* p) {
    typedef typename Word<sizeof(T)>::type W;
    W w = __atomic_load_n((W*)p, __ATOMIC_RELAXED);
    T v;
    __builtin_memcpy((void*)&v, &w, sizeof v);
    return v;
}
template <class T> __forceinline__ void poke(T* p, T v) {
    typedef typename Word<sizeof(T)>::type W;
    W w;
    __builtin_memcpy(&w, &v, sizeof w);
    __atomic_store_n((W*)p, w, __ATOMIC_RELAXED);
}
template <class T> struct Same { typedef T type; };

}  // namespace cudasim

#define CUDASIM_ATOMIC(NAME, READS, EXPRESSION)                                                                      \
    template <class T> __forceinline__ T NAME(T* p, typename cudasim::Same<T>::type v) {                             \
        cudasim_atomic(p, sizeof(T), READS);                                                                         \
        T old = cudasim::peek(p);                                                                                    \
        cudasim::poke<T>(p, EXPRESSION);                                                                             \
        return old;                                                                                                  \
    }                                                                                                                \
    template <class T> __forceinline__ T NAME##_block(T* p, typename cudasim::Same<T>::type v) { return NAME(p, v); } \
    template <class T> __forceinline__ T NAME##_system(T* p, typename cudasim::Same<T>::type v) { return NAME(p, v); }

CUDASIM_ATOMIC(atomicAdd, 1, old + v)
CUDASIM_ATOMIC(atomicSub, 1, old - v)
CUDASIM_ATOMIC(atomicExch, 0, v)
CUDASIM_ATOMIC(atomicMin, 1, v < old ? v : old)
CUDASIM_ATOMIC(atomicMax, 1, old < v ? v : old)
CUDASIM_ATOMIC(atomicAnd, 1, old & v)
CUDASIM_ATOMIC(atomicOr, 1, old | v)
CUDASIM_ATOMIC(atomicXor, 1, old ^ v)
CUDASIM_ATOMIC(atomicInc, 1, old >= v ? 0 : old + 1)
CUDASIM_ATOMIC(atomicDec, 1, old == 0 || old > v ? v : old - 1)

template <class T>
__forceinline__ T atomicCAS(T* p, typename cudasim::Same<T>::type compare, typename cudasim::Same<T>::type v) {
    cudasim_atomic(p, sizeof(T), 1);
    T old = cudasim::peek(p);
    if (cudasim::packed(old) == cudasim::packed(compare)) cudasim::poke<T>(p, v);
    return old;
}
