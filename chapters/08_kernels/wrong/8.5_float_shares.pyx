# kernels.sum_same
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *


cdef int sum_all(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    cdef const float *x = <const float *>call.args[0].data
    cdef float *part = <float *>call.work
    cdef int64_t n = fe_numel(&call.args[0]), b, i, lo, hi, blocks = (n + 1023) // 1024
    cdef double total = 0
    fe_split(blocks, 1, team, &lo, &hi)
    for b in range(lo, hi):
        part[b] = 0
        for i in range(b * 1024, min(n, (b + 1) * 1024)):
            part[b] += x[i]
    fe_wait(team)
    if team.tid == 0:
        for b in range(blocks):
            total += part[b]
        (<float *>call.args[1].data)[0] = <float>total
    return FE_OK


cdef int64_t work(const fe_call *call, int nt) noexcept nogil:
    return (fe_numel(&call.args[0]) + 1023) // 1024 * sizeof(float)


def table():
    return {"sum": {FE_F32: (<size_t><void *>sum_all, <size_t><void *>work)}}
