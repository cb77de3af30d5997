# cython: language_level=3
"""The kernels softmax and log_softmax, with their gradients.

Both subtract the largest element first, so that exp cannot overflow. Three orders of memory access share one
idea, a vector loop over 64 to 256 softmaxes:

- a long last axis: row after row; each row stays in cache between its passes (max, exp and sum, scale);
- any other axis: adjacent columns together, in storage order;
- a short last axis (10 classes): 64 rows at a time are transposed into a small buffer and treated as columns.

ints: [axis]. Threads split the softmaxes.
"""
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.extent cimport *
from flowedu._kernels.ops.expsum cimport *
from flowedu._kernels.core.table cimport *


cdef inline void columns(const real *x, real *y, int64_t step, int64_t n, int64_t r, bint log) noexcept nogil:
    cdef real top[COLS]
    cdef real s[COLS]
    cdef int64_t i, j
    column_sums(x, y, step, n, r, top, s, not log)
    if log:
        for j in range(r):
            s[j] = vlog(s[j])
        for i in range(n):
            for j in range(r):
                y[i * step + j] = x[i * step + j] - top[j]
            for j in range(r):                         # two loops: x - (top + s), if fused by the compiler,
                y[i * step + j] -= s[j]                  # loses s to the rounding of a large top
    else:
        for j in range(r):
            s[j] = 1 / s[j]
        for i in range(n):
            for j in range(r):
                y[i * step + j] = y[i * step + j] * s[j]


cdef void row(const real *x, real *y, int64_t n, bint log) noexcept nogil:
    cdef real top = row_max(x, n), s
    cdef int64_t j
    s = <real>row_sum(x, y, n, top, not log)
    if log:
        s = vlog(s)
        for j in range(n):
            y[j] = x[j] - top
        for j in range(n):                             # two loops: as in columns
            y[j] -= s
    else:
        s = 1 / s
        for j in range(n):
            y[j] *= s


cdef void short_rows(const real *x, real *y, int64_t r, int64_t n, bint log) noexcept nogil:
    cdef real t[ROWS * SHORT]
    transpose_in(x, t, r, n)
    columns(<const real *>t, t, ROWS, n, r, log)
    transpose_out(<const real *>t, y, r, n)


cdef void forward(fe_call *call, const fe_team *team, real *tag, bint log) noexcept nogil:
    cdef Extent e = extent(&call.args[0], call.ints[0])
    cdef const real *x = <const real *>call.args[0].data
    cdef real *y = <real *>call.args[1].data
    cdef int64_t i, at, lo, hi, tiles
    if e.outer * e.n * e.inner == 0:
        return
    if e.inner == 1:
        fe_split(e.outer, 1 if e.n > SHORT else 16, team, &lo, &hi)
        if e.n > SHORT:
            for i in range(lo, hi):
                row(x + i * e.n, y + i * e.n, e.n, log)
        else:
            while lo < hi:
                short_rows(x + lo * e.n, y + lo * e.n, min(ROWS, hi - lo), e.n, log)
                lo += ROWS
        return
    tiles = (e.inner + COLS - 1) // COLS
    fe_split(e.outer * tiles, 1, team, &lo, &hi)
    for i in range(lo, hi):
        at = i // tiles * e.n * e.inner + i % tiles * COLS
        columns(x + at, y + at, e.inner, e.n, min(COLS, e.inner - i % tiles * COLS), log)


cdef int softmax(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    forward(call, team, tag, False)
    return FE_OK


cdef int log_softmax(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    forward(call, team, tag, True)
    return FE_OK


# ---- gradients: softmax: y * (dy - sum(dy * y)); log_softmax: dy - exp(y) * sum(dy)
cdef void row_grad(const real *dy, const real *y, real *dx, int64_t n, bint log) noexcept nogil:
    cdef double total = 0
    cdef real s
    cdef int64_t i = 0, j, end
    while i < n:
        end = min(n, i + BLOCK)
        s = 0
        if log:
            for j in range(i, end):
                s += dy[j]
        else:
            for j in range(i, end):
                s += dy[j] * y[j]
        total += s
        i = end
    s = <real>total
    if log:
        for j in range(n):
            dx[j] = dy[j] - vexp(y[j]) * s
    else:
        for j in range(n):
            dx[j] = y[j] * (dy[j] - s)


cdef void column_grad(const real *dy, const real *y, real *dx, int64_t step, int64_t n, int64_t r,
                      bint log) noexcept nogil:
    cdef double total[COLS]
    cdef real s[COLS]
    cdef int64_t i = 0, j, end
    for j in range(r):
        total[j] = 0
    while i < n:
        end = min(n, i + FLUSH)
        for j in range(r):
            s[j] = 0
        while i < end:
            if log:
                for j in range(r):
                    s[j] += dy[i * step + j]
            else:
                for j in range(r):
                    s[j] += dy[i * step + j] * y[i * step + j]
            i += 1
        for j in range(r):
            total[j] += s[j]
    for j in range(r):
        s[j] = <real>total[j]
    for i in range(n):
        if log:
            for j in range(r):
                dx[i * step + j] = dy[i * step + j] - vexp(y[i * step + j]) * s[j]
        else:
            for j in range(r):
                dx[i * step + j] = y[i * step + j] * (dy[i * step + j] - s[j])


cdef void backward(fe_call *call, const fe_team *team, real *tag, bint log) noexcept nogil:
    cdef Extent e = extent(&call.args[0], call.ints[0])
    cdef const real *dy = <const real *>call.args[0].data
    cdef const real *y = <const real *>call.args[1].data
    cdef real *dx = <real *>call.args[2].data
    cdef int64_t i, at, lo, hi, tiles
    if e.outer * e.n * e.inner == 0:
        return
    tiles = (e.inner + COLS - 1) // COLS
    fe_split(e.outer * tiles, 1, team, &lo, &hi)
    for i in range(lo, hi):
        at = i // tiles * e.n * e.inner + i % tiles * COLS
        if e.inner == 1:
            row_grad(dy + at, y + at, dx + at, e.n, log)
        else:
            column_grad(dy + at, y + at, dx + at, e.inner, e.n, min(COLS, e.inner - i % tiles * COLS), log)


cdef int softmax_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    backward(call, team, tag, False)
    return FE_OK


cdef int log_softmax_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    backward(call, team, tag, True)
    return FE_OK


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}"""
    return {"softmax": of_reals(<void *>softmax[float], <void *>softmax[double], NULL),
            "log_softmax": of_reals(<void *>log_softmax[float], <void *>log_softmax[double], NULL),
            "softmax_grad": of_reals(<void *>softmax_grad[float], <void *>softmax_grad[double], NULL),
            "log_softmax_grad": of_reals(<void *>log_softmax_grad[float], <void *>log_softmax_grad[double],
                                         NULL)}
