# OpenBLAS as function pointers. Each module that uses GEMM has its own pair, and a function `bind` that the
# loader calls at import (see _kernels/__init__.py), so no link-time dependency and no rpath are needed.
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport real

cdef extern from *:
    """
    typedef void (*fe_sgemm_t)(int, int, int, int, int, int, float, const float *, int, const float *, int,
                               float, float *, int);
    typedef void (*fe_dgemm_t)(int, int, int, int, int, int, double, const double *, int, const double *, int,
                               double, double *, int);
    static fe_sgemm_t fe_sgemm = 0;
    static fe_dgemm_t fe_dgemm = 0;
    """
    ctypedef void (*fe_sgemm_t)(int, int, int, int, int, int, float, const float *, int, const float *, int,
                                float, float *, int) noexcept nogil
    ctypedef void (*fe_dgemm_t)(int, int, int, int, int, int, double, const double *, int, const double *,
                                int, double, double *, int) noexcept nogil
    fe_sgemm_t fe_sgemm
    fe_dgemm_t fe_dgemm

cdef extern from *:
    """
    enum { FE_ROW = 101, FE_N = 111, FE_T = 112 };  /* CBLAS: row-major, no-transpose, transpose */
    /* C(m,n) = alpha * op(A)(m,k) . op(B)(k,n) + beta * C, all row-major with leading dimensions. */
    static inline void fe_gemm_f(int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
                                 const float *b, int ldb, float beta, float *c, int ldc) {
        fe_sgemm(FE_ROW, ta ? FE_T : FE_N, tb ? FE_T : FE_N, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    }
    static inline void fe_gemm_d(int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda,
                                 const double *b, int ldb, double beta, double *c, int ldc) {
        fe_dgemm(FE_ROW, ta ? FE_T : FE_N, tb ? FE_T : FE_N, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    }
    """
    void fe_gemm_f(int, int, int, int, int, float, const float *, int, const float *, int, float, float *,
                   int) noexcept nogil
    void fe_gemm_d(int, int, int, int, int, double, const double *, int, const double *, int, double,
                   double *, int) noexcept nogil

cdef struct Product:         # (m, n) = (m, k) x (k, n); ta, tb: transposed operands; ld: row stride
    bint ta, tb
    int64_t m, n, k, lda, ldb, ldc


cdef inline void gemm(Product p, real *a, real *b, real alpha, real beta, real *c) noexcept nogil:
    """Compute c = alpha * a b + beta * c. Empty sums are handled here, because BLAS rejects leading
    dimensions below 1."""
    cdef int64_t i, j
    if p.m == 0 or p.n == 0:
        return
    if p.k == 0:
        if beta == 0:
            for i in range(p.m):
                for j in range(p.n):
                    c[i * p.ldc + j] = 0
        return
    if real is float:
        fe_gemm_f(p.ta, p.tb, <int>p.m, <int>p.n, <int>p.k, alpha, a, <int>p.lda, b, <int>p.ldb, beta, c,
                  <int>p.ldc)
    else:
        fe_gemm_d(p.ta, p.tb, <int>p.m, <int>p.n, <int>p.k, alpha, a, <int>p.lda, b, <int>p.ldb, beta, c,
                  <int>p.ldc)
