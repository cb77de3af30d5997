# cython: language_level=3
"""Batch norm: training, its gradient, and inference; the first two also with the result clipped (relu,
relu6).
ints: [axis]; reals: [epsilon], with clipping [epsilon, low, high].

x is viewed as (outer, channels, inner). With inner == 1 (NHWC) channels are columns: batch_norm_columns.pxd.
With inner > 1 (NCHW) a channel is `outer` runs of memory; all passes over one channel follow each other, so
that only the first reads from main memory, and threads split the channels.

The variance is computed block by block in two passes (mean, then squares of differences), and the blocks are
merged with Chan's formula in double: as exact as two passes over everything, but a block stays in cache
between them.
"""
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.extent cimport *
from flowedu._kernels.ops.batch_norm_columns cimport *
from flowedu._kernels.ops.moments cimport *
from flowedu._kernels.core.table cimport *
from flowedu._kernels.core.fold cimport Sum
from flowedu._kernels.ops.runs cimport take_run

cdef enum:
    SHORT = 64                   # elements of a run; shorter runs share cache lines, so
    SIDE_BY_SIDE = 16            # this many channels are normalized together

cdef struct Moments:             # count, mean, sum of squared differences from the mean
    double n, mean, m2


cdef Moments run_moments(const real *x, int64_t outer, int64_t step, int64_t inner) noexcept nogil:
    """Compute the moments of one channel: `outer` runs of `inner` elements, `step` apart. Short runs are
    grouped into blocks."""
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


cdef inline Norm norm_of(const fe_call *call, int x, bint clip) noexcept nogil:
    """Read the sizes and limits of a call; args[x] is x."""
    cdef Extent e = extent(&call.args[x], call.ints[0])
    cdef Norm k
    k.outer, k.channels, k.inner = e.outer, e.n, e.inner
    k.x, k.eps, k.low, k.high = call.args[x].data, call.reals[0], -INFINITY, INFINITY
    if clip:
        k.low, k.high = call.reals[1], call.reals[2]
    return k


cdef void forward(const Norm *k, const fe_team *team, real *tag, bint train, char *work) noexcept nogil:
    """Compute y, and if `train`, mean and var."""
    cdef const real *x = <const real *>k.x
    cdef const real *gamma = <const real *>k.gamma
    cdef const real *beta = <const real *>k.beta
    cdef real *mean = <real *>k.mean
    cdef real *var = <real *>k.var
    cdef real *y = <real *>k.y
    cdef Moments m
    cdef double count = <double>(k.outer * k.inner)
    cdef real scale[SIDE_BY_SIDE]
    cdef int64_t c, i, at, lo, hi, first, end
    if k.inner == 1:
        columns_forward(k, team, tag, train, work)
        return
    fe_split(k.channels, 1, team, &lo, &hi)
    first = lo
    while first < hi:
        end = min(hi, first + (SIDE_BY_SIDE if k.inner < SHORT else 1))
        for c in range(first, end):
            if train:
                m = run_moments(x + c * k.inner, k.outer, k.channels * k.inner, k.inner)
                mean[c], var[c] = <real>m.mean, <real>(m.m2 / count)
            scale[c - first] = <real>(gamma[c] / sqrt(var[c] + k.eps))
        for i in range(k.outer):
            for c in range(first, end):
                at = (i * k.channels + c) * k.inner
                normalise(x + at, y + at, k.inner, mean[c], scale[c - first], beta[c], <real>k.low,
                          <real>k.high)
        first = end


cdef int train(fe_call *call, const fe_team *team, real *tag, bint clip) noexcept nogil:
    """x, gamma, beta -> y, mean, var"""
    cdef Norm k = norm_of(call, 0, clip)
    k.gamma, k.beta, k.y = call.args[1].data, call.args[2].data, call.args[3].data
    k.mean, k.var = call.args[4].data, call.args[5].data
    forward(&k, team, tag, True, call.work)
    return FE_OK


cdef int batch_norm(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    return train(call, team, tag, False)


cdef int batch_norm_clip(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    return train(call, team, tag, True)


cdef int batch_norm_infer(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """x, gamma, beta, mean, var -> y"""
    cdef Norm k = norm_of(call, 0, False)
    k.gamma, k.beta, k.y = call.args[1].data, call.args[2].data, call.args[5].data
    k.mean, k.var = call.args[3].data, call.args[4].data
    forward(&k, team, tag, False, call.work)
    return FE_OK


# ---- gradient
# dbeta = sum(dy), dgamma = sum(dy * xhat), dx = gamma * r * (dy - dbeta / n - xhat * dgamma / n)
cdef struct Channel:             # values of one channel that backward needs
    double mean, scale, beta, low, high


cdef inline void run_sums(const real *dy, const real *x, int64_t n, Channel k, bint clip, real *tag,
                          double *sum, double *dot) noexcept nogil:
    cdef real s, d, g, mean = <real>k.mean, a = <real>k.scale, b = <real>k.beta
    cdef real low = <real>k.low, high = <real>k.high
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


cdef void backward(const Norm *k, const fe_team *team, real *tag, bint clip, char *work) noexcept nogil:
    cdef const real *dy = <const real *>k.dy
    cdef const real *x = <const real *>k.x
    cdef const real *gamma = <const real *>k.gamma
    cdef const real *beta = <const real *>k.beta
    cdef const real *mean = <const real *>k.mean
    cdef const real *var = <const real *>k.var
    cdef real *dx = <real *>k.y
    cdef double r, sum, dot, n = <double>(k.outer * k.inner)
    cdef Channel ch
    cdef int64_t c, i, at, lo, hi
    if k.inner == 1:
        columns_backward(k, team, tag, clip, work)
        return
    fe_split(k.channels, 1, team, &lo, &hi)
    for c in range(lo, hi):
        sum = dot = 0
        r = 1 / sqrt(var[c] + k.eps)
        ch = Channel(mean[c], gamma[c] / sqrt(var[c] + k.eps), beta[c], k.low, k.high)
        for i in range(k.outer):
            at = (i * k.channels + c) * k.inner
            if clip:
                run_sums(dy + at, x + at, k.inner, ch, True, tag, &sum, &dot)
            else:
                run_sums(dy + at, x + at, k.inner, ch, False, tag, &sum, &dot)
        (<real *>k.dbeta)[c], (<real *>k.dgamma)[c] = <real>sum, <real>(dot * r)
        dot, sum = -gamma[c] * r * r * r * dot / n, -gamma[c] * r * sum / n
        for i in range(k.outer):
            at = (i * k.channels + c) * k.inner
            if clip:
                dx_run(dy + at, x + at, dx + at, k.inner, ch, <real>dot, <real>sum, True)
            else:
                dx_run(dy + at, x + at, dx + at, k.inner, ch, <real>dot, <real>sum, False)


cdef int gradient(fe_call *call, const fe_team *team, real *tag, bint clip) noexcept nogil:
    """dy, x, gamma, (with clipping beta,) mean, var -> dx, dgamma, dbeta"""
    cdef Norm k = norm_of(call, 1, clip)
    cdef fe_view *v = &call.args[4 if clip else 3]
    k.dy, k.gamma, k.beta = call.args[0].data, call.args[2].data, call.args[3 if clip else 2].data
    k.mean, k.var, k.y, k.dgamma, k.dbeta = v[0].data, v[1].data, v[2].data, v[3].data, v[4].data
    backward(&k, team, tag, clip, call.work)
    return FE_OK


cdef int batch_norm_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    return gradient(call, team, tag, False)


cdef int batch_norm_clip_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    return gradient(call, team, tag, True)


cdef int64_t work(const fe_call *call, int nt) noexcept nogil:
    cdef Extent e = extent(&call.args[0], call.ints[0])
    return 0 if e.inner > 1 else nt * columns_room(e.n, 8 if call.args[0].dtype == FE_F64 else 4)


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}"""
    return {
        "batch_norm": of_reals(<void *>batch_norm[float], <void *>batch_norm[double], <void *>work),
        "batch_norm_clip": of_reals(<void *>batch_norm_clip[float], <void *>batch_norm_clip[double],
                                    <void *>work),
        "batch_norm_infer": of_reals(<void *>batch_norm_infer[float], <void *>batch_norm_infer[double],
                                     <void *>work),
        "batch_norm_grad": of_reals(<void *>batch_norm_grad[float], <void *>batch_norm_grad[double],
                                    <void *>work),
        "batch_norm_clip_grad": of_reals(<void *>batch_norm_clip_grad[float],
                                         <void *>batch_norm_clip_grad[double], <void *>work)}
