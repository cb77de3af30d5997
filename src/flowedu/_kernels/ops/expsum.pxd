# Functions of softmax and cross entropy: exp and log, and sums of exp over rows and over adjacent columns.
# Compiled into every module that cimports it.
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.fold cimport *
from flowedu._kernels.ops.runs cimport *

cdef extern from "scalarmath.h" nogil:
    float fe_expf(float) noexcept
    float fe_logf(float) noexcept
    double fe_exp(double) noexcept
    double fe_log(double) noexcept

cdef enum:
    COLS = 256                   # adjacent columns processed together
    ROWS = 64                    # rows transposed at a time
    SHORT = 64                   # the longest row that is transposed
    BLOCK = 2048                 # elements summed in float before the sum goes into a double


cdef inline real vexp(real x) noexcept nogil:
    if real is float:
        return fe_expf(x)
    else:
        return fe_exp(x)


cdef inline real vlog(real x) noexcept nogil:
    if real is float:
        return fe_logf(x)
    else:
        return fe_log(x)


# ---- columns: r softmaxes over n elements each, in adjacent columns; consecutive elements are `step` apart
cdef inline void column_sums(const real *x, real *y, int64_t step, int64_t n, int64_t r, real *top, real *s,
                             bint store) noexcept nogil:
    """Compute top, the largest element, and s = sum of exp(x - top); if `store`, y = exp(x - top) (y may be
    x)."""
    cdef double total[COLS]
    cdef int64_t i = 0, j, end
    cdef real e
    for j in range(r):
        top[j] = x[j]
        total[j] = 0
    for i in range(1, n):
        for j in range(r):
            top[j] = combine(top[j], x[i * step + j], <Max *>NULL)
    i = 0
    while i < n:
        end = min(n, i + FLUSH)
        for j in range(r):
            s[j] = 0
        while i < end:
            if store:
                for j in range(r):
                    e = vexp(x[i * step + j] - top[j])
                    s[j] += e
                    y[i * step + j] = e
            else:
                for j in range(r):
                    s[j] += vexp(x[i * step + j] - top[j])
            i += 1
        for j in range(r):
            total[j] += s[j]
    for j in range(r):
        s[j] = <real>total[j]


# ---- rows
cdef inline real row_max(const real *x, int64_t n) noexcept nogil:
    return <real>take_run(x, n, <double>-INFINITY, <Max *>NULL)


cdef inline double row_sum(const real *x, real *y, int64_t n, real top, bint store) noexcept nogil:
    """Return the sum of exp(x - top); if `store`, also write y = exp(x - top)."""
    cdef double total = 0
    cdef real s, e
    cdef int64_t i = 0, j, end
    while i < n:
        end = min(n, i + BLOCK)
        s = 0
        if store:
            for j in range(i, end):
                e = vexp(x[j] - top)
                y[j] = e
                s += e
        else:
            for j in range(i, end):
                s += vexp(x[j] - top)
        total += s
        i = end
    return total


cdef inline void transpose_in(const real *x, real *t, int64_t r, int64_t n) noexcept nogil:
    cdef int64_t i, j
    for i in range(r):
        for j in range(n):
            t[j * ROWS + i] = x[i * n + j]


cdef inline void transpose_out(const real *t, real *y, int64_t r, int64_t n) noexcept nogil:
    cdef int64_t i, j
    for i in range(r):
        for j in range(n):
            y[i * n + j] = t[j * ROWS + i]
