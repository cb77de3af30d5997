# cython: language_level=3
"""matmul_update: w -= lr * scale * (a b). The gradient of a weight is subtracted in place and never stored.

args: a, b, lr, w. ints: [transpose_a, transpose_b]; reals: [scale].
"""
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.ops.blas cimport *
from flowedu._kernels.core.matrix cimport *
from flowedu._kernels.fast.few_rows_product cimport *
from flowedu._kernels.core.table cimport *


cdef int matmul_update(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef Matrix A = operand(&call.args[0], call.ints[0]), B = operand(&call.args[1], call.ints[1])
    band(<real *>call.args[0].data, A, <real *>call.args[1].data, B, <real *>call.args[3].data,
         <real>(-(<float *>call.args[2].data)[0] * call.reals[0]), 1, team)
    return FE_OK


def table():
    """{kernel name: {dtype code: (kernel address, 0)}}"""
    return {"matmul_update": of_reals(<void *>matmul_update[float], <void *>matmul_update[double], NULL)}


def bind(size_t sgemm, size_t dgemm):
    """Give this module OpenBLAS's two functions (see _kernels/__init__.py)."""
    global fe_sgemm, fe_dgemm
    fe_sgemm = <fe_sgemm_t>sgemm
    fe_dgemm = <fe_dgemm_t>dgemm
