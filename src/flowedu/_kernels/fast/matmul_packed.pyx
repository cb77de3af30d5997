# cython: language_level=3
"""matmul_packed: y (..., n) = x (..., k) times the transpose of w (n, k), by our own blocks over a packed w, which lies in
`work` already where `kept` says so."""
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.table cimport *
from flowedu._kernels.fast.conv_tiles cimport *
from flowedu._kernels.fast.product_packed cimport *


cdef inline Conv product_of(const fe_call *call) noexcept nogil:
    return pointwise(fe_numel(&call.args[2]) // max(call.args[1].shape[0], 1), call.args[1].shape[1], call.args[1].shape[0])


cdef int matmul_packed(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef Conv k = product_of(call)
    cdef Gather one = phase(&k, 0)
    cdef char *turned = call.work + round64(matrix_elements(&k, sizeof(real)) * sizeof(real))
    cdef Packed p = Packed(k.h, k.o, k.c, k.c, k.o, call.args[0].data, call.work, call.args[2].data,
                           Finish(NULL, NULL, 0, 0))
    if fe_numel(&call.args[2]) == 0:
        return FE_OK
    if not call.kept:
        pack_weights(&k, &one, team, <real *>call.args[1].data, <real *>call.work,
                     <real *>(turned + team.tid * channels_at_once(&k) * FE_VBYTES))
        fe_wait(team)
    packed_product(&p, team, tag)
    return FE_OK


cdef int64_t matmul_packed_work(const fe_call *call, int nt) noexcept nogil:
    cdef Conv k = product_of(call)
    return round64(matrix_elements(&k, item_of(call)) * item_of(call)) + nt * channels_at_once(&k) * FE_VBYTES


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size)}}"""
    return {"matmul_packed": of_reals(<void *>matmul_packed[float], <void *>matmul_packed[double],
                                      <void *>matmul_packed_work)}
