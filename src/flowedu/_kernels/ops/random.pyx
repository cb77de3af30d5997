# cython: language_level=3
"""Random numbers from Philox4x32-10, and dropout.

Philox is described by Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011. It has no state:
block b of a draw is a function of (seed, draw, b), four 32-bit words each. Element i of a result comes from
block i // 4 (or i // 2 where an element takes two words), so results do not depend on threads, and a later
run of a plan gets fresh numbers by changing `draw` alone.

ints of every source: [seed, draw, ...]. The plan executor writes the run number over ints[1].
"""
from libc.math cimport cos, log, nextafter, nextafterf, sin, sqrt
from libc.stdint cimport int64_t, int8_t, uint32_t, uint64_t
from flowedu._kernels.core.abi cimport *

cdef enum:
    BLOCKS = 64              # blocks at once: enough for long vectors, few enough for the L1 cache
    WORDS = 256

cdef extern from "philox.h" nogil:
    void fe_philox(uint64_t, uint64_t, uint64_t, int, uint32_t *)


cdef inline void words(const fe_call *call, int64_t element, int per_block, uint32_t *w) noexcept nogil:
    """Generate the next WORDS words, from the block that `element` starts."""
    fe_philox(<uint64_t>call.ints[0], <uint64_t>call.ints[1], <uint64_t>(element // per_block), BLOCKS, w)


cdef inline double unit53(const uint32_t *w) noexcept nogil:
    """Return a double in [0, 1) from 53 bits of two words."""
    return ((w[0] >> 5) * 67108864.0 + (w[1] >> 6)) * (1.0 / 9007199254740992.0)


cdef int random_uniform(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """Draw low + (high - low) * u, kept below high where rounding would reach it. reals: [low, high]."""
    cdef fe_view *v = &call.args[call.nargs - 1]
    cdef real *y = <real *>v.data
    cdef uint32_t w[WORDS]
    cdef real low = <real>call.reals[0], high = <real>call.reals[1], width = high - low, top
    cdef int64_t lo, hi, i, j, n, part = 2 * BLOCKS if real is double else 4 * BLOCKS
    if real is double:
        top = nextafter(high, low)
    else:
        top = nextafterf(high, low)
    fe_split(fe_numel(v), part, team, &lo, &hi)
    i = lo
    while i < hi:
        n = min(part, hi - i)
        words(call, i, 2 if real is double else 4, w)
        if real is double:
            for j in range(n):
                y[i + j] = unit53(w + 2 * j) * width
        else:
            for j in range(n):
                y[i + j] = <float>(w[j] >> 8) * <float>(1.0 / 16777216.0) * width
        for j in range(n):             # separate loop, to prevent a fused multiply-add
            y[i + j] = min(y[i + j] + low, top)
        i += part
    return FE_OK


cdef int random_normal(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """Draw normal numbers by Box-Muller: a block gives two, the cosine and the sine of one angle. reals:
    [mean, std]."""
    cdef fe_view *v = &call.args[call.nargs - 1]
    cdef real *y = <real *>v.data
    cdef uint32_t w[WORDS]
    cdef double mean = call.reals[0], std = call.reals[1], radius, angle
    cdef int64_t lo, hi, i, j
    fe_split(fe_numel(v), 2 * BLOCKS, team, &lo, &hi)
    i = lo
    while i < hi:
        words(call, i, 2, w)
        for j in range(0, min(<int64_t>(2 * BLOCKS), hi - i), 2):
            radius = std * sqrt(-2.0 * log(1.0 - unit53(w + 2 * j)))
            angle = 6.283185307179586 * unit53(w + 2 * j + 2)
            y[i + j] = <real>(mean + radius * cos(angle))
            if i + j + 1 < hi:
                y[i + j + 1] = <real>(mean + radius * sin(angle))
        i += 2 * BLOCKS
    return FE_OK


cdef int random_mask_like(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    """Write 1 where u > rate, compared as integers: u = (word >> 8) / 2**24. reals: [rate]."""
    cdef fe_view *v = &call.args[call.nargs - 1]
    cdef int8_t *y = <int8_t *>v.data
    cdef uint32_t w[WORDS]
    cdef double bar = call.reals[0] * 16777216.0
    cdef uint32_t limit = 0 if bar < 0 else 16777216 if bar > 16777216.0 else <uint32_t>bar
    cdef int64_t lo, hi, i, j, n
    fe_split(fe_numel(v), WORDS, team, &lo, &hi)
    i = lo
    while i < hi:
        n = min(<int64_t>WORDS, hi - i)
        words(call, i, 4, w)
        for j in range(n):
            y[i + j] = (w[j] >> 8) > limit
        i += WORDS
    return FE_OK


cdef int random_randint(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    """Draw integers: the upper half of (64 random bits) * (high - low). ints: [seed, draw, low, high], high -
    low <= 2**32."""
    cdef fe_view *v = &call.args[call.nargs - 1]
    cdef int64_t *y = <int64_t *>v.data
    cdef uint32_t w[WORDS]
    cdef uint64_t width = <uint64_t>(call.ints[3] - call.ints[2])
    cdef int64_t lo, hi, i, j
    fe_split(fe_numel(v), 2 * BLOCKS, team, &lo, &hi)
    i = lo
    while i < hi:
        words(call, i, 2, w)
        for j in range(min(<int64_t>(2 * BLOCKS), hi - i)):
            y[i + j] = call.ints[2] + <int64_t>((w[2 * j + 1] * width + ((w[2 * j] * width) >> 32)) >> 32)
        i += 2 * BLOCKS
    return FE_OK


cdef int dropout(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """Scale the elements that the mask keeps. reals: [scale]. Inputs x, mask (int8)."""
    cdef real *x = <real *>call.args[0].data
    cdef int8_t *mask = <int8_t *>call.args[1].data
    cdef real *y = <real *>call.args[2].data
    cdef real scale = <real>call.reals[0]
    cdef int64_t lo, hi, i
    fe_split(fe_numel(&call.args[2]), 64, team, &lo, &hi)
    for i in range(lo, hi):
        y[i] = x[i] * scale if mask[i] else 0          # a product could give inf * 0
    return FE_OK


def table():
    """{kernel name: {dtype code: (kernel address, 0)}}; the key is the output's dtype, or x's."""
    mask = (<size_t><void *>random_mask_like, 0)
    return {"random_uniform": {FE_F32: (<size_t><void *>random_uniform[float], 0),
                               FE_F64: (<size_t><void *>random_uniform[double], 0)},
            "random_normal": {FE_F32: (<size_t><void *>random_normal[float], 0),
                              FE_F64: (<size_t><void *>random_normal[double], 0)},
            "random_mask_like": {code: mask for code in range(FE_NDTYPE)},
            "random_randint": {FE_I64: (<size_t><void *>random_randint, 0)},
            "dropout": {FE_F32: (<size_t><void *>dropout[float], 0),
                        FE_F64: (<size_t><void *>dropout[double], 0)}}
