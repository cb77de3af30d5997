from libc.math cimport INFINITY, expf
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *


cdef int softmax(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    cdef const float *x = <const float *>call.args[0].data
    cdef float *y = <float *>call.args[1].data
    cdef int64_t n = call.args[0].shape[call.args[0].ndim - 1], r, j, lo, hi
    cdef float top, total
    if n == 0:
        return FE_OK
    fe_split(fe_numel(&call.args[0]) // n, 1, team, &lo, &hi)
    for r in range(lo, hi):
        top = -INFINITY
        for j in range(n):
            top = max(top, x[r * n + j])
        total = 0
        for j in range(n):
            y[r * n + j] = expf(x[r * n + j] - top)
            total += y[r * n + j]
        for j in range(n):
            y[r * n + j] /= total
    return FE_OK


def table():
    return {"softmax": {FE_F32: (<size_t><void *>softmax, 0)}}
