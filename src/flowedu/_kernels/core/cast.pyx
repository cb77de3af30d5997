# cython: language_level=3
"""The kernels cast (any dtype to any, as in C) and fill; cast_halves.pyx adds 16-bit floats."""
from libc.stdint cimport int32_t, int64_t, int8_t, uint8_t
from flowedu._kernels.core.abi cimport *

cdef extern from "<stdbool.h>":
    # Cython needs a base type that differs from the others. The C code uses the quoted name.
    ctypedef short cbool "bool"            # C converts a number to bool with != 0

ctypedef fused number:
    float
    double
    int32_t
    int64_t
    int8_t
    uint8_t
    cbool

ctypedef fused other:        # the same types for the output
    float
    double
    int32_t
    int64_t
    int8_t
    uint8_t
    cbool


cdef int convert(const fe_view *x, number *s, const fe_view *y, other *d,
                 const fe_team *team) noexcept nogil:
    cdef int64_t lo, hi, i
    fe_split(fe_numel(y), 64, team, &lo, &hi)
    for i in range(lo, hi):
        d[fe_place(y, i)] = <other>s[fe_place(x, i)]
    return FE_OK


cdef int cast(fe_call *call, const fe_team *team, number *tag) noexcept nogil:
    cdef fe_view *x = &call.args[0]
    cdef fe_view *y = &call.args[1]
    cdef number *s = <number *>x.data
    if y.dtype == FE_F32: return convert(x, s, y, <float *>y.data, team)
    elif y.dtype == FE_F64: return convert(x, s, y, <double *>y.data, team)
    elif y.dtype == FE_I32: return convert(x, s, y, <int32_t *>y.data, team)
    elif y.dtype == FE_I64: return convert(x, s, y, <int64_t *>y.data, team)
    elif y.dtype == FE_I8: return convert(x, s, y, <int8_t *>y.data, team)
    elif y.dtype == FE_U8: return convert(x, s, y, <uint8_t *>y.data, team)
    else: return convert(x, s, y, <cbool *>y.data, team)


cdef int fill(fe_call *call, const fe_team *team, number *tag) noexcept nogil:
    """Fill the output. reals: [value] for floating outputs, ints: [value] for others."""
    cdef fe_view *y = &call.args[call.nargs - 1]
    cdef number *d = <number *>y.data
    cdef int64_t lo, hi, i
    fe_split(fe_numel(y), 64, team, &lo, &hi)
    for i in range(lo, hi):
        if number is float or number is double:
            d[i] = <number>call.reals[0]
        else:
            d[i] = <number>call.ints[0]
    return FE_OK


def table():
    """Return {kernel name: {dtype code of the input (fill: output): (kernel address, 0)}}."""
    casts = (<size_t><void *>cast[float], <size_t><void *>cast[double],
             <size_t><void *>cast[int32_t], <size_t><void *>cast[int64_t],
             <size_t><void *>cast[int8_t], <size_t><void *>cast[uint8_t],
             <size_t><void *>cast[cbool])
    fills = (<size_t><void *>fill[float], <size_t><void *>fill[double],
             <size_t><void *>fill[int32_t], <size_t><void *>fill[int64_t],
             <size_t><void *>fill[int8_t], <size_t><void *>fill[uint8_t],
             <size_t><void *>fill[cbool])
    return {name: {code: (at, 0) for code, at in enumerate(found)}
            for name, found in (("cast", casts), ("fill", fills))}
