from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *


cdef int sum_all(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    cdef const float *x = <const float *>call.args[0].data
    cdef double *part = <double *>call.work                         # work() returns its size in bytes
    # 8.5: your turn
    return FE_OK


cdef int64_t work(const fe_call *call, int nt) noexcept nogil:
    return nt * sizeof(double)


def table():
    return {"sum": {FE_F32: (<size_t><void *>sum_all, <size_t><void *>work)}}
