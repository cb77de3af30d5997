# cython: language_level=3
"""The kernels matmul_packed: y (..., n) = x (..., k) times the transpose of w (n, k), by flowedu's own
blocks.

w is packed into `work`, unless `kept` is set: then `work` already holds the packed w. matmul_packed_bias: + b
(n,). matmul_packed_residual: + b + z (..., n).
"""
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.table cimport *
from flowedu._kernels.fast.conv_tiles cimport *
from flowedu._kernels.fast.product_packed cimport *


cdef inline Conv product_of(const fe_call *call, const fe_view *y) noexcept nogil:
    return pointwise(fe_numel(y) // max(call.args[1].shape[0], 1), call.args[1].shape[1],
                     call.args[1].shape[0])


cdef int product(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """Compute the product. The arguments are x, w, the added terms (none, b, or b and z), and y."""
    cdef const fe_view *y = &call.args[call.nargs - 1]
    cdef Conv k = product_of(call, y)
    cdef Packed p = Packed(k.h, k.o, k.c, k.c, k.o, call.args[0].data, call.work, y.data,
                           Finish(NULL, NULL, 0, 0), NULL)
    if call.nargs > 3:
        p.f.shift = call.args[2].data
    if call.nargs > 4:
        p.plus = call.args[3].data
    if fe_numel(y) == 0:
        return FE_OK
    if not call.kept:
        pack_product(&k, team, <real *>call.args[1].data, call.work,
                     call.work + matrix_bytes(&k, sizeof(real)))
    packed_product(&p, team, tag)
    return FE_OK


cdef int64_t room(const fe_call *call, int nt) noexcept nogil:
    cdef Conv k = product_of(call, &call.args[2])
    return matrix_bytes(&k, item_of(call)) + nt * pack_room(&k)


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size)}}"""
    return {name: of_reals(<void *>product[float], <void *>product[double], <void *>room)
            for name in ("matmul_packed", "matmul_packed_bias", "matmul_packed_residual")}
