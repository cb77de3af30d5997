from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *

cdef enum:
    BLOCK = 1024


cdef int64_t blocks(const fe_call *call) noexcept nogil:
    return (fe_numel(&call.args[0]) + BLOCK - 1) // BLOCK


cdef int sum_all(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    cdef const float *x = <const float *>call.args[0].data
    cdef double *part = <double *>call.work            # one for each block of the array, whoever adds it
    cdef int64_t n = fe_numel(&call.args[0]), b, i, lo, hi
    cdef double total = 0
    fe_split(blocks(call), 1, team, &lo, &hi)
    for b in range(lo, hi):
        part[b] = 0
        for i in range(b * BLOCK, min(n, (b + 1) * BLOCK)):
            part[b] += x[i]
    fe_wait(team)                                                   # all parts are there
    if team.tid == 0:
        for b in range(blocks(call)):
            total += part[b]
        (<float *>call.args[1].data)[0] = <float>total
    return FE_OK


cdef int64_t work(const fe_call *call, int nt) noexcept nogil:
    return blocks(call) * sizeof(double)


def table():
    return {"sum": {FE_F32: (<size_t><void *>sum_all, <size_t><void *>work)}}
