# cython: language_level=3
"""The kernels cast (any dtype to any dtype, as C converts) and fill.

They replace the plain ones of core/cast.pyx, support 16-bit floats, and traverse the axes in the best order.
"""
from libc.stdint cimport int16_t, int32_t, int64_t, int8_t, uint8_t, uint16_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.ops.axes cimport *

cdef extern from *:
    """
    #include <stdbool.h>
    """
    pass

cdef extern from "halves.h" nogil:
    # Cython separates the versions by their base types, which only have to differ; C uses the quoted names.
    ctypedef short cbool "bool"            # converting to it means "!= 0"
    ctypedef long double half "fe_half"
    ctypedef unsigned short bfloat "fe_bf16"
    float fe_from_bf16(bfloat)
    bfloat fe_to_bf16(float)
    enum: FE_HAS_F16

ctypedef fused number:
    float
    double
    int32_t
    int64_t
    int8_t
    uint8_t
    int16_t
    cbool
    half
    bfloat

ctypedef fused other:        # the same types, because a cast has two
    float
    double
    int32_t
    int64_t
    int8_t
    uint8_t
    int16_t
    cbool
    half
    bfloat


cdef void convert(number *s, other *d, int64_t ss, int64_t n) noexcept nogil:
    cdef int64_t i
    if number is bfloat and other is not bfloat:
        for i in range(n):
            d[i] = <other>fe_from_bf16(s[i * ss])
    elif other is bfloat and number is not bfloat:
        for i in range(n):
            d[i] = fe_to_bf16(<float>s[i * ss])
    elif ss == 1:
        for i in range(n):
            d[i] = <other>s[i]
    else:
        for i in range(n):
            d[i] = <other>s[i * ss]


cdef void cast_part(number *s, other *d, Axis *ax, int rank, int64_t lo, int64_t hi) noexcept nogil:
    """Convert elements [lo, hi) of the contiguous destination, row by row."""
    cdef int64_t rest, n, off, i = lo, col = lo % ax[0].n
    cdef int k
    while i < hi:
        off, rest = col * ax[0].s, i // ax[0].n
        for k in range(1, rank):
            off += rest % ax[k].n * ax[k].s
            rest //= ax[k].n
        n = min(ax[0].n - col, hi - i)
        convert[number, other](s + off, d + i, ax[0].s, n)
        i += n
        col = 0


cdef int cast(fe_call *call, const fe_team *team, number *tag) noexcept nogil:
    cdef Axis ax[9]
    cdef int64_t lo, hi
    cdef fe_view *y = &call.args[1]
    cdef int rank = simplify(&call.args[0], y, ax), to = y.dtype
    cdef number *s = <number *>call.args[0].data
    if rank < 0:
        return FE_OK
    fe_split(fe_numel(y), 64, team, &lo, &hi)
    cdef char *d = y.data
    if to == FE_F32: cast_part[number, float](s, <float *>d, ax, rank, lo, hi)
    elif to == FE_F64: cast_part[number, double](s, <double *>d, ax, rank, lo, hi)
    elif to == FE_I32: cast_part[number, int32_t](s, <int32_t *>d, ax, rank, lo, hi)
    elif to == FE_I64: cast_part[number, int64_t](s, <int64_t *>d, ax, rank, lo, hi)
    elif to == FE_I8: cast_part[number, int8_t](s, <int8_t *>d, ax, rank, lo, hi)
    elif to == FE_U8: cast_part[number, uint8_t](s, <uint8_t *>d, ax, rank, lo, hi)
    elif to == FE_I16: cast_part[number, int16_t](s, <int16_t *>d, ax, rank, lo, hi)
    elif to == FE_BOOL: cast_part[number, cbool](s, <cbool *>d, ax, rank, lo, hi)
    elif to == FE_BF16: cast_part[number, bfloat](s, <bfloat *>d, ax, rank, lo, hi)
    else: cast_part[number, half](s, <half *>d, ax, rank, lo, hi)
    return FE_OK


cdef int fill(fe_call *call, const fe_team *team, number *tag) noexcept nogil:
    """Fill an array. reals: [value] for floating outputs, ints: [value] for others."""
    cdef fe_view *y = &call.args[call.nargs - 1]
    cdef number *d = <number *>y.data
    cdef number v
    cdef int64_t lo, hi, i
    if number is float or number is double or number is half:
        v = <number>call.reals[0]
    elif number is bfloat:
        v = fe_to_bf16(<float>call.reals[0])
    else:
        v = <number>call.ints[0]
    fe_split(fe_numel(y), 64, team, &lo, &hi)
    for i in range(lo, hi):
        d[i] = v
    return FE_OK


def table():
    """Return {kernel name: {dtype code: (kernel address, 0)}}. cast: of the input, fill: of the output."""
    codes = (FE_F32, FE_F64, FE_I32, FE_I64, FE_I8, FE_U8, FE_BOOL, FE_BF16, FE_I16, FE_F16)
    casts = (<size_t><void *>cast[float], <size_t><void *>cast[double], <size_t><void *>cast[int32_t],
             <size_t><void *>cast[int64_t], <size_t><void *>cast[int8_t], <size_t><void *>cast[uint8_t],
             <size_t><void *>cast[cbool], <size_t><void *>cast[bfloat], <size_t><void *>cast[int16_t],
             <size_t><void *>cast[half])
    fills = (<size_t><void *>fill[float], <size_t><void *>fill[double], <size_t><void *>fill[int32_t],
             <size_t><void *>fill[int64_t], <size_t><void *>fill[int8_t], <size_t><void *>fill[uint8_t],
             <size_t><void *>fill[cbool], <size_t><void *>fill[bfloat], <size_t><void *>fill[int16_t],
             <size_t><void *>fill[half])
    return {name: {code: (at, 0) for code, at in zip(codes, found) if code != FE_F16 or FE_HAS_F16}
            for name, found in (("cast", casts), ("fill", fills))}
