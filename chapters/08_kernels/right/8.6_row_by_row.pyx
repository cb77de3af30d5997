from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
cdef int matmul(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    cdef const float *a = <const float *>call.args[0].data
    cdef const float *b = <const float *>call.args[1].data
    cdef float *y = <float *>call.args[2].data
    cdef int64_t m = call.args[0].shape[0], k = call.args[0].shape[1], n = call.args[1].shape[1]
    cdef int64_t i, j, s, lo, hi
    cdef float t
    fe_split(m, 1, team, &lo, &hi)
    for i in range(lo, hi):
        for j in range(n):
            y[i*n+j] = 0
        for s in range(k):
            for j in range(n):
                y[i*n+j] += a[i*k+s]*b[s*n+j]
    return FE_OK
def table():
    return {"matmul": {FE_F32: (<size_t><void *>matmul, 0)}}
