# cython: language_level=3
"""Running results along an axis: cumsum, and linear_scan, the recurrence h[t] = a[t] * h[t-1] + b[t].

An array is (outer, n, inner) with n along the axis. Adjacent columns are processed together, so the inner
loop is a vector loop; sums are accumulated in double or int64. Threads split the columns. ints: [axis,
backwards].
"""
from libc.stdint cimport int32_t, int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.extent cimport *
from flowedu._kernels.core.elements cimport *

cdef enum:
    COLS = 128


cdef int cumsum(fe_call *call, const fe_team *team, num *tag) noexcept nogil:
    cdef Extent b = extent(&call.args[0], call.ints[0])
    cdef int64_t tiles = (b.inner + COLS - 1) // COLS
    cdef const num *x
    cdef num *y
    cdef double real_sum[COLS]
    cdef int64_t whole_sum[COLS]
    cdef int64_t lo, hi, u, i, j, k, c, off
    if fe_numel(&call.args[0]) == 0:
        return FE_OK
    fe_split(b.outer * tiles, 1, team, &lo, &hi)
    for u in range(lo, hi):
        c = u % tiles * COLS
        k = min(COLS, b.inner - c)
        off = u // tiles * b.n * b.inner + c
        for j in range(k):
            real_sum[j] = 0
            whole_sum[j] = 0
        for i in range(b.n):
            x = <const num *>call.args[0].data + off + (b.n - 1 - i if call.ints[1] else i) * b.inner
            y = <num *>call.args[1].data + off + (b.n - 1 - i if call.ints[1] else i) * b.inner
            if num is float or num is double:
                for j in range(k):
                    real_sum[j] += x[j]
                    y[j] = <num>real_sum[j]
            else:
                for j in range(k):
                    whole_sum[j] += x[j]
                    y[j] = <num>whole_sum[j]
    return FE_OK


cdef int linear_scan(fe_call *call, const fe_team *team, num *tag) noexcept nogil:
    """Compute the recurrence. Inputs a, b."""
    cdef Extent v = extent(&call.args[0], call.ints[0])
    cdef int64_t tiles = (v.inner + COLS - 1) // COLS
    cdef const num *a
    cdef const num *b
    cdef num *y
    cdef num h[COLS]
    cdef int64_t lo, hi, u, i, j, k, c, off, at
    if fe_numel(&call.args[0]) == 0:
        return FE_OK
    fe_split(v.outer * tiles, 1, team, &lo, &hi)
    for u in range(lo, hi):
        c = u % tiles * COLS
        k = min(COLS, v.inner - c)
        off = u // tiles * v.n * v.inner + c
        for i in range(v.n):
            at = off + (v.n - 1 - i if call.ints[1] else i) * v.inner
            a = <const num *>call.args[0].data + at
            b = <const num *>call.args[1].data + at
            y = <num *>call.args[2].data + at
            if i == 0:
                for j in range(k):               # the first step ignores a, which may be inf
                    h[j] = b[j]
                    y[j] = h[j]
            else:
                for j in range(k):
                    h[j] = a[j] * h[j] + b[j]
                    y[j] = h[j]
    return FE_OK


def table():
    """{kernel name: {dtype code: (kernel address, 0)}}"""
    return {"cumsum": {FE_F32: (<size_t><void *>cumsum[float], 0), FE_F64: (<size_t><void *>cumsum[double],
                                                                            0),
                       FE_I32: (<size_t><void *>cumsum[int32_t], 0),
                       FE_I64: (<size_t><void *>cumsum[int64_t], 0)},
            "linear_scan": {FE_F32: (<size_t><void *>linear_scan[float], 0),
                            FE_F64: (<size_t><void *>linear_scan[double], 0),
                            FE_I32: (<size_t><void *>linear_scan[int32_t], 0),
                            FE_I64: (<size_t><void *>linear_scan[int64_t], 0)}}
