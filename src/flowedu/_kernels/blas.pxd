# OpenBLAS as function pointers. Each module that needs GEMM has its own pair and a `bind` the loader fills at
# import (see _kernels/__init__.py): no link-time dependency, no rpath.
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
    ctypedef void (*fe_dgemm_t)(int, int, int, int, int, int, double, const double *, int, const double *, int,
                                double, double *, int) noexcept nogil
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
    void fe_gemm_d(int, int, int, int, int, double, const double *, int, const double *, int, double, double *,
                   int) noexcept nogil
