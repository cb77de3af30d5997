// Warp functions: the lanes of a mask exchange values.
#pragma once

namespace cudasim {

template <class T> inline uint64_t packed(T v) {
    static_assert(sizeof(T) <= 8, "a warp function takes values of at most 8 bytes");
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &v, sizeof v);
    return bits;
}
template <class T> inline T unpacked(uint64_t bits) {
    T v;
    __builtin_memcpy(&v, &bits, sizeof v);
    return v;
}
template <class T> __forceinline__ T shuffle(unsigned mask, T v, int source) {
    return unpacked<T>(cudasim_shuffle(mask, packed(v), source));
}
// For parts of `width` lanes: the first lane of this lane's part, and its position in the part.
inline int part(int width) { return cudasim_lane() & ~(width - 1); }
inline int within(int width) { return cudasim_lane() & (width - 1); }

}  // namespace cudasim

template <class T> __forceinline__ T __shfl_sync(unsigned mask, T v, int source, int width = 32) {
    return cudasim::shuffle(mask, v, cudasim::part(width) + (source & (width - 1)));
}
template <class T> __forceinline__ T __shfl_up_sync(unsigned mask, T v, unsigned d, int width = 32) {
    return cudasim::shuffle(mask, v, (int)cudasim_lane() - (cudasim::within(width) >= (int)d ? (int)d : 0));
}
template <class T> __forceinline__ T __shfl_down_sync(unsigned mask, T v, unsigned d, int width = 32) {
    return cudasim::shuffle(mask, v, (int)cudasim_lane() + (cudasim::within(width) + (int)d < width ? (int)d : 0));
}
template <class T> __forceinline__ T __shfl_xor_sync(unsigned mask, T v, int d, int width = 32) {
    int source = (int)cudasim_lane() ^ d;               // earlier parts may be read, later ones not
    return cudasim::shuffle(mask, v, source < cudasim::part(width) + width ? source : (int)cudasim_lane());
}

__forceinline__ void __syncwarp(unsigned mask = ~0u) { cudasim_syncwarp(mask); }
__forceinline__ unsigned __ballot_sync(unsigned mask, int p) { return cudasim_ballot(mask, p); }
__forceinline__ int __any_sync(unsigned mask, int p) { return cudasim_ballot(mask, p) != 0; }
__forceinline__ int __all_sync(unsigned mask, int p) { return cudasim_ballot(mask, !p) == 0; }
template <class T> __forceinline__ unsigned __match_any_sync(unsigned mask, T v) {
    return cudasim_match_any(mask, cudasim::packed(v));
}
template <class T> __forceinline__ unsigned __match_all_sync(unsigned mask, T v, int* all) {
    int same;
    unsigned lanes = cudasim_match_all(mask, cudasim::packed(v), &same);
    *all = same;
    return lanes;
}
// CUDA does not define which lanes run together. Here each runs alone.
inline unsigned __activemask() { return 1u << cudasim_lane(); }

#define CUDASIM_REDUCE(NAME, WHAT)                                                                                   \
    __forceinline__ int NAME(unsigned mask, int v) { return (int)cudasim_reduce(mask, v, WHAT); }                     \
    __forceinline__ unsigned NAME(unsigned mask, unsigned v) { return (unsigned)cudasim_reduce(mask, v, WHAT); }
CUDASIM_REDUCE(__reduce_add_sync, 0)
CUDASIM_REDUCE(__reduce_min_sync, 1)
CUDASIM_REDUCE(__reduce_max_sync, 2)
CUDASIM_REDUCE(__reduce_and_sync, 3)
CUDASIM_REDUCE(__reduce_or_sync, 4)
CUDASIM_REDUCE(__reduce_xor_sync, 5)
