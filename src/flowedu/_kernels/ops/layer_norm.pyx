# cython: language_level=3
"""Layer norm and its gradient. ints: [begin_norm_axis]; reals: [epsilon] (not for the gradient).

x is viewed as rows of n elements; a row stays in cache between the passes over it. Threads split the rows.
The gradients of gamma and beta are sums over all rows, so every thread sums its own rows, and the threads
then combine their sums.
"""
from libc.math cimport sqrt
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.fold cimport *
from flowedu._kernels.ops.runs cimport *
from flowedu._kernels.ops.moments cimport *
from flowedu._kernels.core.table cimport *


cdef void shape_of(const fe_view *v, int64_t begin, int64_t *rows, int64_t *n) noexcept nogil:
    cdef int d
    rows[0] = n[0] = 1
    for d in range(v.ndim):
        if d < begin:
            rows[0] *= v.shape[d]
        else:
            n[0] *= v.shape[d]


cdef int layer_norm(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef const real *x = <const real *>call.args[0].data
    cdef const real *gamma = <const real *>call.args[1].data
    cdef const real *beta = <const real *>call.args[2].data
    cdef real *y = <real *>call.args[3].data
    cdef real *mean = <real *>call.args[4].data
    cdef real *inv_std = <real *>call.args[5].data
    cdef int64_t rows, n, i, j, lo, hi
    cdef double exact, var
    cdef real m, r
    shape_of(&call.args[0], call.ints[0], &rows, &n)
    fe_split(rows, 1, team, &lo, &hi)
    for i in range(lo, hi):
        exact = take_run(x + i * n, n, <double>0, <Sum *>NULL) / n
        m = <real>exact
        var = squares(x + i * n, n, m) / n - (exact - m) * (exact - m)      # m was rounded
        r = <real>(1 / sqrt(max(var, 0.0) + call.reals[0]))
        for j in range(n):
            y[i * n + j] = (x[i * n + j] - m) * r * gamma[j] + beta[j]
        mean[i], inv_std[i] = m, r
    return FE_OK


cdef inline void add_to(double *total, real *s, int64_t n) noexcept nogil:
    """Add the accumulators s to total, and clear them."""
    cdef int64_t j
    for j in range(n):
        total[j] += s[j]
        s[j] = 0


cdef void row_grad(const real *dy, const real *x, const real *gamma, real *dx, int64_t n, real mean, real r,
                   real *sums) noexcept nogil:
    """Compute dx of one row, and add its part of the gradients of gamma and beta to sums (2, n)."""
    cdef real *dg = sums
    cdef real *db = sums + n
    cdef double sum = 0, dot = 0
    cdef real s, d, g
    cdef int64_t i = 0, j, end
    while i < n:
        end = min(n, i + BLOCK)
        s = d = 0
        for j in range(i, end):
            g = dy[j] * gamma[j]
            s += g
            d += g * (x[j] - mean)
        sum += s
        dot += d
        i = end
    s, d = <real>(sum / n), <real>(dot * r / n)
    for j in range(n):
        dx[j] = r * (dy[j] * gamma[j] - s - (x[j] - mean) * (r * d))
    for j in range(n):                       # separate loop: gcc does not vectorize one with six arrays
        dg[j] += dy[j] * ((x[j] - mean) * r)
        db[j] += dy[j]


cdef int layer_norm_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef const real *dy = <const real *>call.args[0].data
    cdef const real *x = <const real *>call.args[1].data
    cdef const real *gamma = <const real *>call.args[2].data
    cdef const real *mean = <const real *>call.args[3].data
    cdef const real *inv_std = <const real *>call.args[4].data
    cdef real *dx = <real *>call.args[5].data
    cdef real *dgamma = <real *>call.args[6].data
    cdef real *dbeta = <real *>call.args[7].data
    cdef int64_t rows, n, i, j, lo, hi
    # Per thread: sums of dgamma, of dbeta; then the same, recent rows only.
    cdef double *total
    cdef real *recent
    cdef double g, b
    shape_of(&call.args[1], call.ints[0], &rows, &n)
    total = <double *>call.work + team.tid * 4 * n
    recent = <real *>(total + 2 * n)
    for j in range(2 * n):
        total[j] = recent[j] = 0
    fe_split(rows, 1, team, &lo, &hi)
    for i in range(lo, hi):
        row_grad(dy + i * n, x + i * n, gamma, dx + i * n, n, mean[i], inv_std[i], recent)
        if (i - lo) % FLUSH == FLUSH - 1 or i == hi - 1:
            add_to(total, recent, 2 * n)
    fe_wait(team)
    fe_split(n, 16, team, &lo, &hi)
    total = <double *>call.work
    for j in range(lo, hi):
        g = b = 0
        for i in range(team.nt):
            g += total[i * 4 * n + j]
            b += total[(i * 4 + 1) * n + j]
        dgamma[j], dbeta[j] = <real>g, <real>b
    return FE_OK


cdef int64_t layer_norm_grad_work(const fe_call *call, int nt) noexcept nogil:
    cdef int64_t rows, n
    shape_of(&call.args[1], call.ints[0], &rows, &n)
    return nt * 4 * n * 8


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}"""
    return {"layer_norm": of_reals(<void *>layer_norm[float], <void *>layer_norm[double], NULL),
            "layer_norm_grad": of_reals(<void *>layer_norm_grad[float], <void *>layer_norm_grad[double],
                                        <void *>layer_norm_grad_work)}
