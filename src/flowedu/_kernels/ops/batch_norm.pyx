# cython: language_level=3
"""Batch norm: training, its gradient, and inference; the first two also with the result clipped (relu, relu6).
ints: [axis]; reals: [epsilon], with clipping [epsilon, low, high].

x is seen as (outer, channels, inner). With inner == 1 (NHWC) channels are columns: batch_norm_columns.pxd. With inner > 1
(NCHW) a channel is `outer` runs of memory; all passes over one channel follow each other, so that only the first reads from
main memory, and threads split the channels.

The variance is computed block by block in two passes (mean, then squares of differences), and the blocks are merged
with Chan's formula in double: as exact as two passes over everything, but a block stays in cache between them.
"""
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.extent cimport *
from flowedu._kernels.ops.batch_norm_columns cimport *
from flowedu._kernels.core.fold cimport Sum, take_run

cdef enum:
    BLOCK = 2048                 # elements summed in `real` before the sum goes into a double

cdef struct Moments:             # count, mean, sum of squared differences from it
    double n, mean, m2


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
    cdef double s, q, n
    cdef real mean
    m.n = m.mean = m.m2 = 0
    while i < outer:
        end = min(outer, i + block)
        n = (end - i) * inner
        s = q = 0
        for j in range(i, end):
            s += take_run(x + j * step, inner, <double>0, <Sum *>NULL)
        s /= n
        mean = <real>s
        for j in range(i, end):
            q += squares(x + j * step, inner, mean)
        q -= (s - mean) * (s - mean) * n                        # `mean` was rounded
        merge(&m.mean, &m.m2, m.n, &s, &q, n, 1)
        m.n += n
        i = end
    return m


cdef inline void normalise(const real *x, real *y, int64_t n, real mean, real scale, real shift, real low,
                           real high) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        y[i] = clipped((x[i] - mean) * scale + shift, low, high)


cdef void forward(fe_call *call, const fe_team *team, real *tag, real *mean, real *var, real *y, bint train, double low,
                  double high) noexcept nogil:
    """y; and mean and var, if `train`."""
    cdef Extent e = extent(&call.args[0], call.ints[0])
    cdef const real *x = <const real *>call.args[0].data
    cdef const real *gamma = <const real *>call.args[1].data
    cdef const real *beta = <const real *>call.args[2].data
    cdef Moments m
    cdef double eps = call.reals[0], count = <double>(e.outer * e.inner)
    cdef int64_t c, i, k, lo, hi
    if e.inner == 1:
        columns_forward(e.outer, e.n, team, x, gamma, beta, mean, var, y, eps, low, high, train, call.work)
        return
    fe_split(e.n, 1, team, &lo, &hi)
    for c in range(lo, hi):
        if train:
            m = run_moments(x + c * e.inner, e.outer, e.n * e.inner, e.inner)
            mean[c], var[c] = <real>m.mean, <real>(m.m2 / count)
        for i in range(e.outer):
            k = (i * e.n + c) * e.inner
            normalise(x + k, y + k, e.inner, mean[c], <real>(gamma[c] / sqrt(var[c] + eps)), beta[c], <real>low, <real>high)


cdef int batch_norm(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    forward(call, team, tag, <real *>call.args[4].data, <real *>call.args[5].data, <real *>call.args[3].data, True, -INFINITY,
            INFINITY)
    return FE_OK


cdef int batch_norm_clip(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    forward(call, team, tag, <real *>call.args[4].data, <real *>call.args[5].data, <real *>call.args[3].data, True,
            call.reals[1], call.reals[2])
    return FE_OK


cdef int batch_norm_infer(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    forward(call, team, tag, <real *>call.args[3].data, <real *>call.args[4].data, <real *>call.args[5].data, False,
            -INFINITY, INFINITY)
    return FE_OK


# ---- gradient: dbeta = sum(dy), dgamma = sum(dy * xhat), dx = gamma * r * (dy - dbeta / n - xhat * dgamma / n)
cdef struct Channel:             # what backward needs to know about one
    double mean, scale, beta, low, high


cdef inline void run_sums(const real *dy, const real *x, int64_t n, Channel k, bint clip, real *tag, double *sum,
                          double *dot) noexcept nogil:
    cdef real s, d, g, mean = <real>k.mean, a = <real>k.scale, b = <real>k.beta, low = <real>k.low, high = <real>k.high
    cdef int64_t i = 0, j, end
    while i < n:
        end = min(n, i + BLOCK)
        s = d = 0
        for j in range(i, end):
            g = passed(dy[j], (x[j] - mean) * a + b, low, high, clip)
            s += g
            d += g * (x[j] - mean)
        sum[0] += s
        dot[0] += d
        i = end


cdef inline void dx_run(const real *dy, const real *x, real *dx, int64_t n, Channel k, real slope, real rest,
                        bint clip) noexcept nogil:
    cdef real mean = <real>k.mean, a = <real>k.scale, b = <real>k.beta, low = <real>k.low, high = <real>k.high
    cdef int64_t i
    for i in range(n):
        dx[i] = a * passed(dy[i], (x[i] - mean) * a + b, low, high, clip) + (slope * (x[i] - mean) + rest)


cdef void backward(const Extent *e, const fe_team *team, const real *dy, const real *x, const real *gamma, const real *beta,
                   const real *mean, const real *var, real *dx, real *dgamma, real *dbeta, double eps, double low,
                   double high, bint clip, char *work) noexcept nogil:
    cdef double r, sum, dot, n = <double>(e.outer * e.inner)
    cdef Channel k
    cdef int64_t c, i, at, lo, hi
    if e.inner == 1:
        columns_backward(e.outer, e.n, team, dy, x, gamma, beta, mean, var, dx, dgamma, dbeta, eps, low, high, clip,
                         work)
        return
    fe_split(e.n, 1, team, &lo, &hi)
    for c in range(lo, hi):
        sum = dot = 0
        r = 1 / sqrt(var[c] + eps)
        k = Channel(mean[c], gamma[c] / sqrt(var[c] + eps), beta[c], low, high)
        for i in range(e.outer):
            at = (i * e.n + c) * e.inner
            if clip:
                run_sums(dy + at, x + at, e.inner, k, True, <real *>NULL, &sum, &dot)
            else:
                run_sums(dy + at, x + at, e.inner, k, False, <real *>NULL, &sum, &dot)
        dbeta[c], dgamma[c] = <real>sum, <real>(dot * r)
        dot, sum = -gamma[c] * r * r * r * dot / n, -gamma[c] * r * sum / n
        for i in range(e.outer):
            at = (i * e.n + c) * e.inner
            if clip:
                dx_run(dy + at, x + at, dx + at, e.inner, k, <real>dot, <real>sum, True)
            else:
                dx_run(dy + at, x + at, dx + at, e.inner, k, <real>dot, <real>sum, False)


cdef int batch_norm_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """dy, x, gamma, mean, var -> dx, dgamma, dbeta"""
    cdef Extent e = extent(&call.args[1], call.ints[0])
    cdef const real *gamma = <const real *>call.args[2].data
    backward(&e, team, <const real *>call.args[0].data, <const real *>call.args[1].data, gamma, gamma,
             <const real *>call.args[3].data, <const real *>call.args[4].data, <real *>call.args[5].data,
             <real *>call.args[6].data, <real *>call.args[7].data, call.reals[0], 0, 0, False, call.work)
    return FE_OK


cdef int batch_norm_clip_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """dy, x, gamma, beta, mean, var -> dx, dgamma, dbeta"""
    cdef Extent e = extent(&call.args[1], call.ints[0])
    backward(&e, team, <const real *>call.args[0].data, <const real *>call.args[1].data, <const real *>call.args[2].data,
             <const real *>call.args[3].data, <const real *>call.args[4].data, <const real *>call.args[5].data,
             <real *>call.args[6].data, <real *>call.args[7].data, <real *>call.args[8].data, call.reals[0], call.reals[1],
             call.reals[2], True, call.work)
    return FE_OK


cdef int64_t work(const fe_call *call, int nt) noexcept nogil:
    cdef Extent e = extent(&call.args[0], call.ints[0])
    return 0 if e.inner > 1 else nt * columns_room(e.n, 8 if call.args[0].dtype == FE_F64 else 4)


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}"""
    room = <size_t><void *>work
    return {"batch_norm": {FE_F32: (<size_t><void *>batch_norm[float], room),
                           FE_F64: (<size_t><void *>batch_norm[double], room)},
            "batch_norm_clip": {FE_F32: (<size_t><void *>batch_norm_clip[float], room),
                                FE_F64: (<size_t><void *>batch_norm_clip[double], room)},
            "batch_norm_infer": {FE_F32: (<size_t><void *>batch_norm_infer[float], room),
                                 FE_F64: (<size_t><void *>batch_norm_infer[double], room)},
            "batch_norm_grad": {FE_F32: (<size_t><void *>batch_norm_grad[float], room),
                                FE_F64: (<size_t><void *>batch_norm_grad[double], room)},
            "batch_norm_clip_grad": {FE_F32: (<size_t><void *>batch_norm_clip_grad[float], room),
                                     FE_F64: (<size_t><void *>batch_norm_clip_grad[double], room)}}
