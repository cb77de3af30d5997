from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.extent cimport *


cdef int argmax(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    cdef const float *x = <const float *>call.args[0].data
    cdef int64_t *y = <int64_t *>call.args[1].data
    # x is (e.outer, e.n, e.inner), y is (e.outer, e.inner).
    cdef Extent e = extent(&call.args[0], call.ints[0])
    # 8.4: your turn
    return FE_OK


def table():
    return {"argmax": {FE_F32: (<size_t><void *>argmax, 0)}}
