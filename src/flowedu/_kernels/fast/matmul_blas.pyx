# cython: language_level=3
"""matmul: batched matrix product over OpenBLAS, one serial GEMM per thread on a split of the longer side.
Products with few rows or columns use loops that read the other operand once (few_rows_product.pxd).

ints: [transpose_a, transpose_b]. Inputs may be strided: a matrix with a unit stride on either axis is passed
to BLAS without a copy (a transposed view costs nothing); any other is packed into scratch first.
"""
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.table cimport *
from flowedu._kernels.ops.blas cimport *
from flowedu._kernels.core.matrix cimport *
from flowedu._kernels.ops.product cimport *
from flowedu._kernels.fast.few_rows_product cimport *

cdef void pack(real *src, Matrix *m, real *dst) noexcept nogil:
    cdef int64_t i, j
    for i in range(m.rows):
        for j in range(m.cols):
            dst[i * m.cols + j] = src[i * m.rs + j * m.cs]
    m.rs, m.cs = m.cols, 1


cdef int matmul(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef fe_view *y = &call.args[2]
    cdef Matrix A = operand(&call.args[0], call.ints[0]), B = operand(&call.args[1], call.ints[1]), A1, B1
    cdef int64_t batches = 1, i, lo, hi, d, ldc = B.cols
    cdef real *a
    cdef real *b
    cdef real *c = <real *>y.data
    cdef real *scratch
    for d in range(y.ndim - 2):
        batches *= y.shape[d]
    if batches > 1 and call.args[1].ndim == 2 and not call.ints[0] and A.cs == 1 \
            and rows_flat(&call.args[0]) and blas_ready(A) and blas_ready(B):
        A.rows *= batches                      # (b, m, k) x (k, n): one tall product
        batches = 1
    if not blas_ready(A) or not blas_ready(B):
        scratch = <real *>(call.work + team.tid * scratch_bytes(A, B, sizeof(real)))
        fe_split(batches, 1, team, &lo, &hi)
        for i in range(lo, hi):
            A1, B1 = A, B
            a = <real *>call.args[0].data + batch_offset(&call.args[0], y, i)
            b = <real *>call.args[1].data + batch_offset(&call.args[1], y, i)
            if not blas_ready(A):
                pack(a, &A1, scratch)
                a = scratch
            if not blas_ready(B):
                pack(b, &B1, scratch + A.rows * A.cols)
                b = scratch + A.rows * A.cols
            multiply(a, A1, b, B1, c + i * A.rows * ldc, ldc, 1, 0)
        return FE_OK
    if batches >= team.nt:                     # whole products per thread
        fe_split(batches, 1, team, &lo, &hi)
        for i in range(lo, hi):
            multiply(<real *>call.args[0].data + batch_offset(&call.args[0], y, i), A,
                     <real *>call.args[1].data + batch_offset(&call.args[1], y, i), B, c + i * A.rows * ldc,
                     ldc, 1, 0)
        return FE_OK
    for i in range(batches):
        a = <real *>call.args[0].data + batch_offset(&call.args[0], y, i)
        b = <real *>call.args[1].data + batch_offset(&call.args[1], y, i)
        band(a, A, b, B, c + i * A.rows * ldc, 1, 0, team)
    return FE_OK


cdef bint rows_flat(const fe_view *v) noexcept nogil:
    """Return True if all leading axes and the row axis form one long row axis with a constant step."""
    cdef int d
    for d in range(v.ndim - 2):
        if v.stride[d] != v.stride[d + 1] * v.shape[d + 1]:
            return False
    return True


cdef int64_t scratch_bytes(Matrix A, Matrix B, int64_t item) noexcept nogil:
    return ((A.rows * A.cols + B.rows * B.cols) * item + 63) // 64 * 64


cdef int64_t matmul_work(const fe_call *call, int nt) noexcept nogil:
    cdef Matrix A = operand(&call.args[0], call.ints[0]), B = operand(&call.args[1], call.ints[1])
    if blas_ready(A) and blas_ready(B):
        return 0
    return scratch_bytes(A, B, 8) * nt


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}"""
    return {"matmul": of_reals(<void *>matmul[float], <void *>matmul[double], <void *>matmul_work)}


def bind(size_t sgemm, size_t dgemm):
    """Give this module OpenBLAS's two functions (see _kernels/__init__.py)."""
    global fe_sgemm, fe_dgemm
    fe_sgemm = <fe_sgemm_t>sgemm
    fe_dgemm = <fe_dgemm_t>dgemm
