from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.extent cimport *


cdef int argmax(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    cdef const float *x = <const float *>call.args[0].data
    cdef int64_t *y = <int64_t *>call.args[1].data
    cdef Extent e = extent(&call.args[0], call.ints[0])
    cdef int64_t lo, hi, u, i
    cdef const float *p
    cdef float top
    if e.outer * e.inner == 0:
        return FE_OK
    fe_split(e.outer * e.inner, 1, team, &lo, &hi)
    for u in range(lo, hi):
        p = x + u // e.inner * e.n * e.inner + u % e.inner
        top = p[0]
        y[u] = 0
        for i in range(1, e.n):
            if p[i * e.inner] > top or (p[i * e.inner] != p[i * e.inner] and top == top):
                top = p[i * e.inner]
                y[u] = i
    return FE_OK


def table():
    return {"argmax": {FE_F32: (<size_t><void *>argmax, 0)}}
