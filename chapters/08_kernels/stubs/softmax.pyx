from libc.math cimport INFINITY, expf
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *

cdef extern from "scalarmath.h" nogil:
    float fe_expf(float) noexcept                                # has no branch, so gcc can vectorize it


cdef int softmax(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    cdef const float *x = <const float *>call.args[0].data
    cdef float *y = <float *>call.args[1].data
    # n: row length. fe_numel(&call.args[0]) is the size of x.
    cdef int64_t n = call.args[0].shape[call.args[0].ndim - 1]
    # 8.2: your turn
    return FE_OK


def table():
    return {"softmax": {FE_F32: (<size_t><void *>softmax, 0)}}
