from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.extent cimport *


cdef int cumsum(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    cdef const float *x = <const float *>call.args[0].data
    cdef float *y = <float *>call.args[1].data
    # x is (e.outer, e.n, e.inner), sums run along axis 1.
    cdef Extent e = extent(&call.args[0], call.ints[0])
    # 8.3: your turn
    return FE_OK


def table():
    return {"cumsum": {FE_F32: (<size_t><void *>cumsum, 0)}}
