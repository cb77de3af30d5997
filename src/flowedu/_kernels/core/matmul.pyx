# cython: language_level=3
"""matmul: batched matrix product over OpenBLAS, one serial GEMM per thread on a split of the longer side.

ints: [transpose_a, transpose_b]. Inputs may be strided: a matrix with a unit stride on either axis goes to BLAS as
it is (a transposed view costs nothing); any other is packed into scratch first.
"""
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.table cimport *
from flowedu._kernels.core.blas cimport *

cdef struct Matrix:          # one operand as (rows, cols) with its strides
    int64_t rows, cols, rs, cs


cdef Matrix operand(const fe_view *v, bint transpose) noexcept nogil:
    cdef Matrix m
    cdef int d = v.ndim
    m.rows, m.cols, m.rs, m.cs = v.shape[d - 2], v.shape[d - 1], v.stride[d - 2], v.stride[d - 1]
    if transpose:
        m.rows, m.cols, m.rs, m.cs = m.cols, m.rows, m.cs, m.rs
    return m


cdef bint blas_ready(Matrix m) noexcept nogil:
    return (m.cs == 1 and m.rs >= m.cols) or (m.rs == 1 and m.cs >= m.rows)


cdef int64_t batch_offset(const fe_view *v, const fe_view *y, int64_t i) noexcept nogil:
    """Where batch i of operand v starts, in elements; v's batch axes are y's, or absent."""
    cdef int64_t off = 0
    cdef int d = y.ndim - 3, shift = y.ndim - v.ndim
    while d >= 0 and d - shift >= 0:
        off += (i % y.shape[d]) * v.stride[d - shift]
        i //= y.shape[d]
        d -= 1
    return off


cdef void small(real *a, Matrix A, real *b, Matrix B, real *c, int64_t ldc, real alpha, real beta) noexcept nogil:
    """Plain loops: below a few thousand multiplications a BLAS call costs more than the work."""
    cdef int64_t i, j, p
    cdef real s
    for i in range(A.rows):
        if beta == 0:
            for j in range(B.cols):
                c[i * ldc + j] = 0
        if B.cs == 1:
            for p in range(A.cols):
                s = alpha * a[i * A.rs + p * A.cs]
                for j in range(B.cols):
                    c[i * ldc + j] += s * b[p * B.rs + j]
        else:
            for j in range(B.cols):
                s = 0
                for p in range(A.cols):
                    s += a[i * A.rs + p * A.cs] * b[p * B.rs + j * B.cs]
                c[i * ldc + j] += alpha * s


cdef void product(real *a, Matrix A, real *b, Matrix B, real *c, int64_t ldc, real alpha, real beta) noexcept nogil:
    """c = alpha * a b + beta * c, with beta 0 or 1."""
    cdef bint ta = A.cs != 1, tb = B.cs != 1
    if A.rows == 0 or B.cols == 0:
        return
    if A.rows * B.cols * A.cols <= 4096 or A.cols == 0:
        small(a, A, b, B, c, ldc, alpha, beta)
        return
    # a single row or column may carry any stride on its unit axis; BLAS only wants a valid leading dimension
    cdef int64_t lda = max(A.rs if not ta else A.cs, A.cols if not ta else A.rows)
    cdef int64_t ldb = max(B.rs if not tb else B.cs, B.cols if not tb else B.rows)
    gemm(Product(ta, tb, A.rows, B.cols, A.cols, lda, ldb, ldc), a, b, alpha, beta, c)


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
    if batches > 1 and call.args[1].ndim == 2 and not call.ints[0] and A.cs == 1 and rows_flat(&call.args[0]) \
            and blas_ready(A) and blas_ready(B):
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
            product(a, A1, b, B1, c + i * A.rows * ldc, ldc, 1, 0)
        return FE_OK
    if batches >= team.nt:                     # whole products per thread
        fe_split(batches, 1, team, &lo, &hi)
        for i in range(lo, hi):
            product(<real *>call.args[0].data + batch_offset(&call.args[0], y, i), A,
                    <real *>call.args[1].data + batch_offset(&call.args[1], y, i), B, c + i * A.rows * ldc, ldc, 1, 0)
        return FE_OK
    for i in range(batches):
        a = <real *>call.args[0].data + batch_offset(&call.args[0], y, i)
        b = <real *>call.args[1].data + batch_offset(&call.args[1], y, i)
        band(a, A, b, B, c + i * A.rows * ldc, 1, 0, team)
    return FE_OK


cdef void band(real *a, Matrix A, real *b, Matrix B, real *c, real alpha, real beta, const fe_team *team) noexcept nogil:
    """This thread's band of one product, cut along the longer side."""
    cdef int64_t lo, hi, ldc = B.cols
    if A.rows >= B.cols:
        fe_split(A.rows, 8, team, &lo, &hi)
        A.rows = hi - lo
        product(a + lo * A.rs, A, b, B, c + lo * ldc, ldc, alpha, beta)
    else:
        fe_split(B.cols, 16, team, &lo, &hi)
        B.cols = hi - lo
        product(a, A, b + lo * B.cs, B, c + lo, ldc, alpha, beta)


cdef int matmul_update(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """w -= lr * scale * (a b): args a, b, lr, w. The gradient of a weight is added where it belongs and never stored."""
    cdef Matrix A = operand(&call.args[0], call.ints[0]), B = operand(&call.args[1], call.ints[1])
    band(<real *>call.args[0].data, A, <real *>call.args[1].data, B, <real *>call.args[3].data,
         <real>(-(<float *>call.args[2].data)[0] * call.reals[0]), 1, team)
    return FE_OK


cdef bint rows_flat(const fe_view *v) noexcept nogil:
    """True if all leading axes and the row axis step through memory evenly, as one long row axis."""
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
    return {"matmul": of_reals(<void *>matmul[float], <void *>matmul[double], <void *>matmul_work),
            "matmul_update": of_reals(<void *>matmul_update[float], <void *>matmul_update[double], NULL)}


def bind(size_t sgemm, size_t dgemm):
    """Give this module OpenBLAS's two functions (see _kernels/__init__.py)."""
    global fe_sgemm, fe_dgemm
    fe_sgemm = <fe_sgemm_t>sgemm
    fe_dgemm = <fe_dgemm_t>dgemm
