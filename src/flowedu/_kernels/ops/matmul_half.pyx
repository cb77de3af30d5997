# cython: language_level=3
"""The kernel matmul for 16-bit floats.

Blocks of the operands are widened into float32 panels that fit the cache, multiplied by OpenBLAS, and each
block of the product is rounded once. With few rows (inference on one sample) each weight is read once, in 16
bits, widened, and used at once.

ints: [transpose_a, transpose_b]. Any strides are accepted: a panel has the layout of its operand. Scratch of
a thread: [panel of a][panel of b][block of the product].
"""
from libc.stdint cimport int64_t
from libc.string cimport memset
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.ops.blas cimport *
from flowedu._kernels.core.matrix cimport *
from flowedu._kernels.ops.product cimport *
from flowedu._kernels.ops.carry cimport bfloat, rounded, run

cdef extern from "few_rows.h" nogil:
    void fe_few_dots(int64_t, int64_t, const float *, int64_t, const float *, float *, int64_t) noexcept
    float fe_dot_bf16(int64_t, const float *, const bfloat *) noexcept
    void fe_few_sums(int64_t, int64_t, const float *, int64_t, const float *, float *, int64_t) noexcept

cdef enum:
    ROWS = 256                   # of a block of the product
    COLS = 256
    DEPTH = 512                  # of the panels
    FEW = 8                      # rows below which nothing is packed
    FEW_COLS = 1024
    FEW_DEPTH = 2048

cdef struct Half:                # one operand or the result: its type, and a matrix in it
    const fe_view *v
    char *at
    Matrix m


cdef Half half_operand(const fe_view *v, bint transpose, int64_t offset) noexcept nogil:
    cdef Half h
    h.v, h.at, h.m = v, v.data + 2 * offset, operand(v, transpose)
    return h


cdef Matrix panel(Half h, int64_t r, int64_t rows, int64_t c, int64_t cols, float *to) noexcept nogil:
    """Widen a block; contiguous columns stay contiguous."""
    cdef Matrix p
    cdef char *at = h.at + 2 * (r * h.m.rs + c * h.m.cs)
    cdef int64_t i
    p.rows, p.cols = rows, cols
    if h.m.cs == 1 or h.m.rs != 1:
        p.rs, p.cs = cols, 1
        for i in range(rows):
            run(h.v, at + 2 * i * h.m.rs, h.m.cs, to + i * cols, 1, cols, True)
    else:
        p.rs, p.cs = 1, rows
        for i in range(cols):
            run(h.v, at + 2 * i * h.m.cs, 1, to + i * rows, 1, rows, True)
    return p


cdef void written(Half y, int64_t r, int64_t rows, int64_t c, int64_t cols, float *block) noexcept nogil:
    cdef int64_t i
    for i in range(rows):
        run(y.v, y.at + 2 * ((r + i) * y.m.rs + c), 1, block + i * cols, 1, cols, False)


cdef void blocks(Half a, Half b, Half y, char *scratch) noexcept nogil:
    cdef int64_t m = y.m.rows, n = y.m.cols, depth = a.m.cols, i, j, p, mb, nb, kb
    cdef float *pa = <float *>scratch
    cdef float *pb = pa + min(m, ROWS) * min(depth, DEPTH)
    cdef float *c = pb + min(n, COLS) * min(depth, DEPTH)
    cdef Matrix A, B
    for i in range((m + ROWS - 1) // ROWS):
        mb = min(ROWS, m - i * ROWS)
        for j in range((n + COLS - 1) // COLS):
            nb = min(COLS, n - j * COLS)
            memset(c, 0, mb * nb * 4)
            for p in range((depth + DEPTH - 1) // DEPTH):
                kb = min(DEPTH, depth - p * DEPTH)
                if j == 0 or depth > DEPTH:                     # else the panel is already packed
                    A = panel(a, i * ROWS, mb, p * DEPTH, kb, pa)
                if i == 0 or depth > DEPTH or n > COLS:
                    B = panel(b, p * DEPTH, kb, j * COLS, nb, pb)
                product(pa, A, pb, B, c, nb, <float>1, <float>(p > 0))
            written(y, i * ROWS, mb, j * COLS, nb, c)


cdef void few(Half a, Half b, Half y, char *scratch) noexcept nogil:
    """Multiply at most FEW rows."""
    cdef int64_t m = y.m.rows, n = y.m.cols, depth = a.m.cols, i, j, k, p, q, jb, nb, kb
    cdef float *x = <float *>scratch
    cdef float *w = x + m * min(depth, FEW_DEPTH)
    cdef float *c = w + FEW_DEPTH
    cdef char *at
    cdef int64_t item = 2
    for jb in range((n + FEW_COLS - 1) // FEW_COLS):
        j = jb * FEW_COLS
        nb = min(FEW_COLS, n - j)
        memset(c, 0, m * nb * 4)
        for q in range((depth + FEW_DEPTH - 1) // FEW_DEPTH):
            p = q * FEW_DEPTH
            kb = min(FEW_DEPTH, depth - p)
            for i in range(m):
                run(a.v, a.at + item * (i * a.m.rs + p * a.m.cs), a.m.cs, x + i * kb, 1, kb, True)
            at = b.at + item * (p * b.m.rs + j * b.m.cs)
            if b.m.rs == 1 and m == 1 and b.v.dtype == FE_BF16:
                for k in range(nb):
                    c[k] += fe_dot_bf16(kb, x, <bfloat *>(at + item * k * b.m.cs))
            elif b.m.rs == 1:
                for k in range(nb):
                    run(b.v, at + item * k * b.m.cs, 1, w, 1, kb, True)
                    fe_few_dots(m, kb, x, kb, w, c + k, nb)
            else:
                for k in range(kb):
                    run(b.v, at + item * k * b.m.rs, b.m.cs, w, 1, nb, True)
                    fe_few_sums(m, nb, x + k, kb, w, c, nb)
        written(y, 0, m, j, nb, c)


cdef bint is_few(int64_t m, int64_t n, int64_t depth) noexcept nogil:
    return m <= FEW and m * n * depth > 65536


cdef int64_t room(int64_t m, int64_t n, int64_t depth) noexcept nogil:
    """Return one thread's scratch."""
    cdef int64_t k = min(depth, DEPTH)
    if is_few(m, n, depth):
        return rounded(4 * (m * min(depth, FEW_DEPTH) + FEW_DEPTH + m * min(n, FEW_COLS)))
    return rounded(4 * (min(m, ROWS) * k + min(n, COLS) * k + min(m, ROWS) * min(n, COLS)))


cdef void multiply(Half a, Half b, Half y, bint narrow, char *scratch) noexcept nogil:
    if narrow:
        few(a, b, y, scratch)
    else:
        blocks(a, b, y, scratch)


cdef struct Batch:               # number of products, and the sizes of each
    int64_t count, m, n, depth
    bint tall                    # they are one tall product: (b, m, k) x (k, n)


cdef Batch batch(const fe_call *call) noexcept nogil:
    cdef const fe_view *a = &call.args[0]
    cdef const fe_view *y = &call.args[2]
    cdef Matrix A = operand(a, call.ints[0])
    cdef Batch s
    cdef int d
    s.count, s.m, s.depth, s.n = 1, A.rows, A.cols, y.shape[y.ndim - 1]
    for d in range(y.ndim - 2):
        s.count *= y.shape[d]
    s.tall = s.count > 1 and call.args[1].ndim == 2 and a.ndim == y.ndim
    for d in range(a.ndim - 2):
        s.tall = (s.tall and a.stride[d] == (A.rs * A.rows if d == a.ndim - 3
                                             else a.stride[d + 1] * a.shape[d + 1]))
    if s.tall:
        s.m *= s.count
        s.count = 1
    return s


cdef int matmul(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    cdef Batch s = batch(call)
    cdef Half a, b, y
    cdef int64_t lo, hi, i, rlo, rhi, clo = 0, chi = s.n
    cdef char *scratch = call.work + team.tid * room(s.m, s.n, s.depth)
    cdef bint narrow = is_few(s.m, s.n, s.depth)
    lo, hi, rlo, rhi = 0, s.count, 0, s.m
    if s.count >= team.nt:                      # whole products per thread
        fe_split(s.count, 1, team, &lo, &hi)
    elif s.m >= s.n:
        fe_split(s.m, 8, team, &rlo, &rhi)
    else:
        fe_split(s.n, 16, team, &clo, &chi)
    for i in range(lo, hi):
        a = half_operand(&call.args[0], call.ints[0], batch_offset(&call.args[0], &call.args[2], i))
        b = half_operand(&call.args[1], call.ints[1], batch_offset(&call.args[1], &call.args[2], i))
        y = half_operand(&call.args[2], False, i * s.m * s.n)
        a.at += 2 * rlo * a.m.rs
        b.at += 2 * clo * b.m.cs
        y.at += 2 * (rlo * y.m.rs + clo)
        a.m.rows = y.m.rows = rhi - rlo
        b.m.cols = y.m.cols = chi - clo
        if a.m.rows and b.m.cols:
            multiply(a, b, y, narrow, scratch)
    return FE_OK


cdef int64_t work(const fe_call *call, int nt) noexcept nogil:
    cdef Batch s = batch(call)
    return nt * room(s.m, s.n, s.depth)


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size)}}"""
    row = (<size_t><void *>matmul, <size_t><void *>work)
    return {"matmul": {FE_F16: row, FE_BF16: row}}


def bind(size_t sgemm, size_t dgemm):
    """Give this module OpenBLAS's two functions (see _kernels/__init__.py)."""
    global fe_sgemm, fe_dgemm
    fe_sgemm = <fe_sgemm_t>sgemm
    fe_dgemm = <fe_dgemm_t>dgemm
