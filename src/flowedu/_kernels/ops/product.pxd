# One matrix product of strided operands, shared by the kernels of matmul.
# Compiled into every module that cimports it.
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.matrix cimport *
from flowedu._kernels.ops.blas cimport *


cdef inline bint blas_ready(Matrix m) noexcept nogil:
    return (m.cs == 1 and m.rs >= m.cols) or (m.rs == 1 and m.cs >= m.rows)


cdef inline void small(real *a, Matrix A, real *b, Matrix B, real *c, int64_t ldc, real alpha,
                       real beta) noexcept nogil:
    """Multiply with plain loops: below a few thousand multiplications a BLAS call costs more than the
    arithmetic."""
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


cdef inline void product(real *a, Matrix A, real *b, Matrix B, real *c, int64_t ldc, real alpha,
                         real beta) noexcept nogil:
    """Compute c = alpha * a b + beta * c, with beta 0 or 1."""
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
