# cython: language_level=3
"""The kernel matmul: the batched matrix product, as three loops.

_kernels/fast/matmul_blas.pyx, which calls OpenBLAS, replaces it. The innermost loop reads a row of
b and updates a row of y. With k innermost, it would read a column of b. ints: [transpose_a,
transpose_b]. A transposed matrix, like any other view, only changes the strides.
"""
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.matrix cimport *
from flowedu._kernels.core.table cimport *


cdef int matmul(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef fe_view *y = &call.args[2]
    cdef Matrix A = operand(&call.args[0], call.ints[0]), B = operand(&call.args[1], call.ints[1])
    cdef int64_t batches = 1, lo, hi, row, i, j, k
    cdef real *a
    cdef real *b
    cdef real *c
    for i in range(y.ndim - 2):
        batches *= y.shape[i]
    fe_split(batches * A.rows, 1, team, &lo, &hi)
    for row in range(lo, hi):
        a = <real *>call.args[0].data + batch_offset(&call.args[0], y, row // A.rows)
        a += row % A.rows * A.rs
        b = <real *>call.args[1].data + batch_offset(&call.args[1], y, row // A.rows)
        c = <real *>y.data + row * B.cols
        for j in range(B.cols):
            c[j] = 0
        for k in range(A.cols):
            for j in range(B.cols):
                c[j] += a[k * A.cs] * b[k * B.rs + j * B.cs]
    return FE_OK


def table():
    """Return {kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}."""
    return {"matmul": of_reals(<void *>matmul[float], <void *>matmul[double], NULL)}
