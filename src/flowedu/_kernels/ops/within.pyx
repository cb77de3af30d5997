# cython: language_level=3
"""The kernel within: copies x if all values of the last input are inside bounds.

A value outside the bounds ends the call with FE_BAD_INDEX; `detail` holds the bits of that value as a double.
"""
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy
from flowedu._kernels.core.abi cimport *

cdef enum:
    RUN = 256                    # values compared per test of the result: a vectorized loop

ctypedef fused number:
    float
    double
    int8_t
    uint8_t
    int16_t
    int32_t
    int64_t


cdef int within(fe_call *call, const fe_team *team, number *tag) noexcept nogil:
    """Check the values, then copy x. ints: [nan, low, high]; reals: [low, high]. Inputs: x, and the values to
    check (x itself if it is the only input). With nan=1 a NaN is inside."""
    cdef fe_view *x = &call.args[0]
    cdef fe_view *y = &call.args[call.nin]
    cdef number *v = <number *>call.args[call.nin - 1].data
    cdef int64_t lo, hi, i, end
    cdef number low, high
    cdef double bad_value
    cdef int bad, item = fe_item[x.dtype], nan = <int>call.ints[0]
    if number is float or number is double:
        low, high = <number>call.reals[0], <number>call.reals[1]
    else:
        low, high = <number>call.ints[1], <number>call.ints[2]
    fe_split(fe_numel(&call.args[call.nin - 1]), RUN, team, &lo, &hi)
    while lo < hi:
        end, bad = min(lo + RUN, hi), 0
        if nan:
            for i in range(lo, end):
                bad |= (v[i] < low) | (v[i] > high)
        else:
            for i in range(lo, end):
                bad |= (not v[i] >= low) | (not v[i] <= high)
        if bad:
            for i in range(lo, end):
                if v[i] < low or v[i] > high or not nan and v[i] != v[i]:
                    bad_value = <double>v[i]
                    memcpy(&call.detail, &bad_value, sizeof(double))
                    return FE_BAD_INDEX
        lo = end
    if x.data != y.data:
        fe_split(fe_numel(x), 64, team, &lo, &hi)
        memcpy(y.data + lo * item, x.data + lo * item, (hi - lo) * item)
    return FE_OK


def table():
    """{kernel name: {dtype code: (kernel address, 0)}}; the dtype is that of the values that are compared."""
    return {"within": {FE_F32: (<size_t><void *>within[float], 0), FE_F64: (<size_t><void *>within[double],
                                                                            0),
                       FE_I8: (<size_t><void *>within[int8_t], 0), FE_U8: (<size_t><void *>within[uint8_t],
                                                                           0),
                       FE_BOOL: (<size_t><void *>within[uint8_t], 0),
                       FE_I16: (<size_t><void *>within[int16_t], 0),
                       FE_I32: (<size_t><void *>within[int32_t], 0),
                       FE_I64: (<size_t><void *>within[int64_t], 0)}}
