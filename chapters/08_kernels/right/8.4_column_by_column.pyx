from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.extent cimport *


cdef int argmax(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    cdef const float *x = <const float *>call.args[0].data
    cdef int64_t *y = <int64_t *>call.args[1].data
    cdef Extent e = extent(&call.args[0], call.ints[0])
    cdef int64_t u, i, at, lo, hi
    fe_split(e.outer * e.inner, 1, team, &lo, &hi)
    for u in range(lo, hi):
        at = u // e.inner * e.n * e.inner + u % e.inner
        y[u] = 0
        for i in range(1, e.n):
            if x[at] != x[at]:                       # a NaN is there, and stays
                break
            if not x[at + (i - y[u]) * e.inner] <= x[at]:
                at += (i - y[u]) * e.inner
                y[u] = i
    return FE_OK


def table():
    return {"argmax": {FE_F32: (<size_t><void *>argmax, 0)}}
