# Products that are small, or where one side has few rows or few columns: flowedu's own loops avoid the
# start-up cost of a BLAS call and its copy of the matrix.
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.matrix cimport *
from flowedu._kernels.ops.product cimport *
from flowedu._kernels.fast.transpose cimport transpose

cdef extern from "few_rows_tile.h" nogil:
    enum: FE_FEW
    void fe_few_dots_f(int64_t, int64_t, int64_t, const float *, int64_t, const float *, int64_t, float *,
                       int64_t, int64_t) noexcept
    void fe_few_dots_d(int64_t, int64_t, int64_t, const double *, int64_t, const double *, int64_t, double *,
                       int64_t, int64_t) noexcept
    void fe_few_sums_f(int64_t, int64_t, int64_t, const float *, int64_t, int64_t, const float *, int64_t,
                       float *, int64_t) noexcept
    void fe_few_sums_d(int64_t, int64_t, int64_t, const double *, int64_t, int64_t, const double *, int64_t,
                       double *, int64_t) noexcept

cdef extern from "small_product.h" nogil:
    enum: FE_VBYTES
    void fe_small_f(int64_t, int64_t, int64_t, const float *, int64_t, int64_t, const float *, int64_t,
                    float *, int64_t) noexcept
    void fe_small_d(int64_t, int64_t, int64_t, const double *, int64_t, int64_t, const double *, int64_t,
                    double *, int64_t) noexcept

cdef enum:
    SMALL_PRODUCT = 4096         # multiplications; `product` has loops for other small cases
    WORTH_TURNING = 4            # rows that justify a transposition
    TURNED_ROOM = 1024           # elements that a transposed matrix has at most


cdef inline bint is_small(Matrix A, Matrix B, int64_t item) noexcept nogil:
    cdef int64_t size = A.rows * B.cols * A.cols, width = B.cols * item
    cdef bint tall = A.rows >= WORTH_TURNING
    if size <= SMALL_PRODUCT:
        return width >= FE_VBYTES and (B.cs == 1 or B.rs == 1 and tall)
    return size <= 8 * SMALL_PRODUCT and width >= 2 * FE_VBYTES and B.cs == 1 and tall


cdef inline void small_product(real *a, Matrix A, real *b, Matrix B, real *c, int64_t ldc) noexcept nogil:
    cdef real room[TURNED_ROOM]
    if B.cs != 1:
        transpose(b, room, B.cols, B.rows, B.cs)
        b, B.rs = room, B.cols
    if real is float:
        fe_small_f(A.rows, B.cols, A.cols, a, A.rs, A.cs, b, B.rs, c, ldc)
    else:
        fe_small_d(A.rows, B.cols, A.cols, a, A.rs, A.cs, b, B.rs, c, ldc)


cdef inline void dots(real *x, Matrix X, real *w, int64_t n, int64_t ldw, real *y, int64_t rs,
                      int64_t cs) noexcept nogil:
    if real is float:
        fe_few_dots_f(X.rows, n, X.cols, x, X.rs, w, ldw, y, rs, cs)
    else:
        fe_few_dots_d(X.rows, n, X.cols, x, X.rs, w, ldw, y, rs, cs)


cdef inline void sums(real *x, Matrix X, real *w, int64_t n, int64_t ldw, real *y,
                      int64_t ldy) noexcept nogil:
    if real is float:
        fe_few_sums_f(X.rows, n, X.cols, x, X.rs, X.cs, w, ldw, y, ldy)
    else:
        fe_few_sums_d(X.rows, n, X.cols, x, X.rs, X.cs, w, ldw, y, ldy)


cdef inline Matrix turned(Matrix m) noexcept nogil:
    m.rows, m.cols, m.rs, m.cs = m.cols, m.rows, m.cs, m.rs
    return m


cdef inline void multiply(real *a, Matrix A, real *b, Matrix B, real *c, int64_t ldc, real alpha,
                          real beta) noexcept nogil:
    """Compute c = alpha * a b + beta * c, with beta 0 or 1."""
    cdef bint plain = alpha == 1 and beta == 0, own = plain and A.rows * B.cols * A.cols > SMALL_PRODUCT
    if plain and is_small(A, B, sizeof(real)):
        small_product(a, A, b, B, c, ldc)
    elif own and A.rows <= FE_FEW and A.cs == 1 and B.rs == 1:
        dots(a, A, b, B.cols, B.cs, c, ldc, 1)
    elif own and A.rows <= FE_FEW and B.cs == 1:
        sums(a, A, b, B.cols, B.rs, c, ldc)
    elif own and B.cols <= FE_FEW and A.cs == 1 and B.rs == 1:
        dots(b, turned(B), a, A.rows, A.rs, c, 1, ldc)
    else:
        product(a, A, b, B, c, ldc, alpha, beta)


cdef inline void band(real *a, Matrix A, real *b, Matrix B, real *c, real alpha, real beta,
                      const fe_team *team) noexcept nogil:
    """Compute this thread's band of one product, which is split along the longer side."""
    cdef int64_t lo, hi, ldc = B.cols
    if A.rows >= B.cols:
        fe_split(A.rows, 8, team, &lo, &hi)
        A.rows = hi - lo
        multiply(a + lo * A.rs, A, b, B, c + lo * ldc, ldc, alpha, beta)
    else:
        fe_split(B.cols, 16, team, &lo, &hi)
        B.cols = hi - lo
        multiply(a, A, b + lo * B.cs, B, c + lo, ldc, alpha, beta)
