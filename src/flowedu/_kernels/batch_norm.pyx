# cython: language_level=3
"""Batch norm: training, its gradient, and inference. ints: [axis]; reals: [epsilon].

x is seen as (outer, channels, inner). With inner > 1 (NCHW) a channel is `outer` runs of memory; all passes over one
channel follow each other, so that only the first reads from main memory. With inner == 1 (NHWC) channels are columns.

The variance is computed block by block in two passes (mean, then squares of differences), and the blocks are merged
with Chan's formula in double: as exact as two passes over everything, but a block stays in cache between them.
Threads split the channels.
"""
from libc.math cimport sqrt
from libc.stdint cimport int64_t
from flowedu._kernels.abi cimport *
from flowedu._kernels.fold cimport *

cdef enum:
    COLS = 256                   # channels side by side, when they are columns
    BLOCK = 2048                 # elements summed in `real` before the sum goes into a double

cdef struct Extent:
    int64_t outer, channels, inner


cdef struct Moments:             # count, mean, sum of squared differences from it
    double n, mean, m2


cdef Extent extent(const fe_view *v, int64_t axis) noexcept nogil:
    cdef Extent e
    cdef int d
    e.outer, e.channels, e.inner = 1, v.shape[axis], 1
    for d in range(v.ndim):
        if d < axis:
            e.outer *= v.shape[d]
        elif d > axis:
            e.inner *= v.shape[d]
    return e


cdef inline void merge(Moments *a, double n, double mean, double m2) noexcept nogil:
    cdef double d = mean - a.mean, total = a.n + n
    a.mean += d * n / total
    a.m2 += m2 + d * d * a.n * n / total
    a.n = total


cdef inline double squares(const real *x, int64_t n, real mean) noexcept nogil:
    cdef double total = 0
    cdef real s
    cdef int64_t i = 0, j, end
    while i < n:
        end = min(n, i + BLOCK)
        s = 0
        for j in range(i, end):
            s += (x[j] - mean) * (x[j] - mean)
        total += s
        i = end
    return total


cdef Moments run_moments(const real *x, int64_t outer, int64_t step, int64_t inner) noexcept nogil:
    """Of one channel: `outer` runs of `inner` elements, `step` apart; short runs are taken several at a time."""
    cdef Moments m
    cdef int64_t block = max(1, BLOCK // max(1, inner)), i = 0, j, end
    cdef double s, q
    cdef real mean
    m.n = m.mean = m.m2 = 0
    while i < outer:
        end = min(outer, i + block)
        s = q = 0
        for j in range(i, end):
            s += take_run(x + j * step, inner, <double>0, <Sum *>NULL)
        s /= (end - i) * inner
        mean = <real>s
        for j in range(i, end):
            q += squares(x + j * step, inner, mean)
        q -= (s - mean) * (s - mean) * ((end - i) * inner)      # `mean` was rounded
        merge(&m, (end - i) * inner, s, q)
        i = end
    return m


cdef void column_moments(const real *x, int64_t rows, int64_t step, int64_t cols, Moments *m) noexcept nogil:
    """Of `cols` channels side by side, 64 rows at a time."""
    cdef real s[COLS]
    cdef real mean[COLS]
    cdef int64_t i = 0, j, k, n
    for k in range(cols):
        m[k].n = m[k].mean = m[k].m2 = 0
    while i < rows:
        n = min(rows - i, FLUSH)
        for k in range(cols):
            s[k] = 0
        for j in range(i, i + n):
            for k in range(cols):
                s[k] += x[j * step + k]
        for k in range(cols):
            mean[k] = s[k] / n
        for k in range(cols):
            s[k] = 0
        for j in range(i, i + n):
            for k in range(cols):
                s[k] += (x[j * step + k] - mean[k]) * (x[j * step + k] - mean[k])
        for k in range(cols):
            merge(&m[k], n, mean[k], s[k])
        i += n


cdef inline void normalise(const real *x, real *y, int64_t n, real mean, real scale, real shift) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        y[i] = (x[i] - mean) * scale + shift


cdef void normalise_columns(const real *x, real *y, int64_t rows, int64_t step, int64_t cols, const real *mean,
                            const real *var, const real *gamma, const real *beta, double eps) noexcept nogil:
    cdef real m[COLS]
    cdef real a[COLS]
    cdef real b[COLS]
    cdef int64_t i, k
    for k in range(cols):
        m[k], a[k], b[k] = mean[k], <real>(gamma[k] / sqrt(var[k] + eps)), beta[k]
    for i in range(rows):
        for k in range(cols):
            y[i * step + k] = (x[i * step + k] - m[k]) * a[k] + b[k]


cdef void forward(fe_call *call, const fe_team *team, real *tag, real *mean, real *var, real *y,
                  bint train) noexcept nogil:
    """y; and mean and var, if `train`."""
    cdef Extent e = extent(&call.args[0], call.ints[0])
    cdef const real *x = <const real *>call.args[0].data
    cdef const real *gamma = <const real *>call.args[1].data
    cdef const real *beta = <const real *>call.args[2].data
    cdef Moments m[COLS]
    cdef double eps = call.reals[0], count = <double>(e.outer * e.inner)
    cdef int64_t c, i, k, lo, hi, cols
    if e.inner == 1:
        fe_split(e.channels, 16, team, &lo, &hi)
        while lo < hi:
            cols = min(COLS, hi - lo)
            if train:
                column_moments(x + lo, e.outer, e.channels, cols, m)
                for k in range(cols):
                    mean[lo + k], var[lo + k] = <real>m[k].mean, <real>(m[k].m2 / count)
            normalise_columns(x + lo, y + lo, e.outer, e.channels, cols, mean + lo, var + lo, gamma + lo, beta + lo,
                              eps)
            lo += cols
        return
    fe_split(e.channels, 1, team, &lo, &hi)
    for c in range(lo, hi):
        if train:
            m[0] = run_moments(x + c * e.inner, e.outer, e.channels * e.inner, e.inner)
            mean[c], var[c] = <real>m[0].mean, <real>(m[0].m2 / count)
        for i in range(e.outer):
            k = (i * e.channels + c) * e.inner
            normalise(x + k, y + k, e.inner, mean[c], <real>(gamma[c] / sqrt(var[c] + eps)), beta[c])


cdef int batch_norm(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    forward(call, team, tag, <real *>call.args[4].data, <real *>call.args[5].data, <real *>call.args[3].data, True)
    return FE_OK


cdef int batch_norm_infer(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    forward(call, team, tag, <real *>call.args[3].data, <real *>call.args[4].data, <real *>call.args[5].data, False)
    return FE_OK


# ---- gradient: dbeta = sum(dy), dgamma = sum(dy * xhat), dx = gamma * r * (dy - dbeta / n - xhat * dgamma / n)
cdef inline void run_sums(const real *dy, const real *x, int64_t n, real mean, double *sum, double *dot) noexcept nogil:
    cdef real s, d
    cdef int64_t i = 0, j, end
    while i < n:
        end = min(n, i + BLOCK)
        s = d = 0
        for j in range(i, end):
            s += dy[j]
            d += dy[j] * (x[j] - mean)
        sum[0] += s
        dot[0] += d
        i = end


cdef void column_sums(const real *dy, const real *x, int64_t rows, int64_t step, int64_t cols, const real *mean,
                      double *sum, double *dot) noexcept nogil:
    cdef real s[COLS]
    cdef real d[COLS]
    cdef real m[COLS]
    cdef int64_t i = 0, k, end
    for k in range(cols):
        sum[k] = dot[k] = 0
        m[k] = mean[k]
    while i < rows:
        end = min(rows, i + FLUSH)
        for k in range(cols):
            s[k] = d[k] = 0
        while i < end:
            for k in range(cols):
                s[k] += dy[i * step + k]
                d[k] += dy[i * step + k] * (x[i * step + k] - m[k])
            i += 1
        for k in range(cols):
            sum[k] += s[k]
            dot[k] += d[k]


cdef inline void dx_run(const real *dy, const real *x, real *dx, int64_t n, real mean, real a, real b,
                        real c) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        dx[i] = a * dy[i] + (b * (x[i] - mean) + c)


cdef void dx_columns(const real *dy, const real *x, real *dx, int64_t rows, int64_t step, int64_t cols,
                     const real *mean, const real *a, const real *b, const real *c) noexcept nogil:
    cdef int64_t i, k
    for i in range(rows):
        for k in range(cols):
            dx[i * step + k] = a[k] * dy[i * step + k] + (b[k] * (x[i * step + k] - mean[k]) + c[k])


cdef int batch_norm_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef Extent e = extent(&call.args[1], call.ints[0])
    cdef const real *dy = <const real *>call.args[0].data
    cdef const real *x = <const real *>call.args[1].data
    cdef const real *gamma = <const real *>call.args[2].data
    cdef const real *mean = <const real *>call.args[3].data
    cdef const real *var = <const real *>call.args[4].data
    cdef real *dx = <real *>call.args[5].data
    cdef real *dgamma = <real *>call.args[6].data
    cdef real *dbeta = <real *>call.args[7].data
    cdef double sum[COLS]
    cdef double dot[COLS]
    cdef real mu[COLS]
    cdef real a[COLS]
    cdef real b[COLS]
    cdef real d[COLS]
    cdef double r, n = <double>(e.outer * e.inner), eps = call.reals[0]
    cdef int64_t c, i, k, at, lo, hi, cols
    fe_split(e.channels, 16 if e.inner == 1 else 1, team, &lo, &hi)
    while lo < hi:
        cols = min(COLS, hi - lo) if e.inner == 1 else 1
        if e.inner == 1:
            column_sums(dy + lo, x + lo, e.outer, e.channels, cols, mean + lo, sum, dot)
        else:
            sum[0] = dot[0] = 0
            for i in range(e.outer):
                at = (i * e.channels + lo) * e.inner
                run_sums(dy + at, x + at, e.inner, mean[lo], sum, dot)
        for k in range(cols):
            c = lo + k
            r = 1 / sqrt(var[c] + eps)
            dbeta[c], dgamma[c] = <real>sum[k], <real>(dot[k] * r)
            mu[k], a[k] = mean[c], <real>(gamma[c] * r)
            b[k], d[k] = <real>(-gamma[c] * r * r * r * dot[k] / n), <real>(-gamma[c] * r * sum[k] / n)
        if e.inner == 1:
            dx_columns(dy + lo, x + lo, dx + lo, e.outer, e.channels, cols, mu, a, b, d)
        else:
            for i in range(e.outer):
                at = (i * e.channels + lo) * e.inner
                dx_run(dy + at, x + at, dx + at, e.inner, mu[0], a[0], b[0], d[0])
        lo += cols
    return FE_OK


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}"""
    return {"batch_norm": {FE_F32: (<size_t><void *>batch_norm[float], 0),
                           FE_F64: (<size_t><void *>batch_norm[double], 0)},
            "batch_norm_infer": {FE_F32: (<size_t><void *>batch_norm_infer[float], 0),
                                 FE_F64: (<size_t><void *>batch_norm_infer[double], 0)},
            "batch_norm_grad": {FE_F32: (<size_t><void *>batch_norm_grad[float], 0),
                                FE_F64: (<size_t><void *>batch_norm_grad[double], 0)}}
