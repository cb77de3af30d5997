from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.extent cimport *


cdef int cumsum(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    cdef const float *x = <const float *>call.args[0].data
    cdef float *y = <float *>call.args[1].data
    cdef Extent e = extent(&call.args[0], call.ints[0])
    cdef int64_t lo, hi, u, i, at
    cdef double total
    if e.outer * e.inner == 0:
        return FE_OK
    fe_split(e.outer * e.inner, 1, team, &lo, &hi)
    for u in range(lo, hi):
        total = 0
        for i in range(e.n):
            at = (u // e.inner * e.n + (e.n - 1 - i if call.ints[1] else i)) * e.inner + u % e.inner
            total += x[at]
            y[at] = <float>total
    return FE_OK


def table():
    return {"cumsum": {FE_F32: (<size_t><void *>cumsum, 0)}}
