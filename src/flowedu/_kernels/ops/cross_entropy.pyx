# cython: language_level=3
"""Softmax and cross entropy in one pass: the loss of class `label`, or of a distribution, and the
probabilities.

loss = log(sum(exp(x - top))) - (x[label] - top). This avoids the logarithm of a rounded probability, which
could be infinite. The probabilities are kept for the gradient: dloss * (prob - 1 at the label). Rows of up to
64 classes are transposed and processed 64 at a time, as in softmax. Threads split the rows.
"""
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.ops.expsum cimport *
from flowedu._kernels.core.table cimport *


cdef inline real expected(const real *x, const real *p, int64_t n, real top, real log_s) noexcept nogil:
    """Compute the sum of p * -log_softmax(x), as log_s * sum(p) - sum(p * (x - top)).

    Not sum(p * (log_s - (x - top))): the compiler may compute log_s + top first, where a large top swallows
    log_s.
    """
    cdef double weights = 0, shifted = 0
    cdef real w, s
    cdef int64_t i = 0, j, end
    while i < n:
        end = min(n, i + BLOCK)
        w = s = 0
        for j in range(i, end):
            w += p[j]
            s += p[j] * (x[j] - top)
        weights += w
        shifted += s
        i = end
    return <real>(log_s * weights - shifted)


cdef int sparse_rows(fe_call *call, real *tag, int64_t lo, int64_t r, int64_t n) noexcept nogil:
    """Process rows lo ... lo + r. An out-of-range label is not used as an index; the loss of an ignored label
    is 0."""
    cdef const real *x = <const real *>call.args[1].data
    cdef real *loss = <real *>call.args[2].data
    cdef real *prob = <real *>call.args[3].data
    cdef real t[ROWS * SHORT]
    cdef real top[COLS]
    cdef real s[COLS]
    cdef int64_t i, j, label
    cdef int status = FE_OK
    if n <= SHORT:
        transpose_in(x + lo * n, t, r, n)
        column_sums(<const real *>t, t, ROWS, n, r, top, s, True)
        for i in range(r):
            loss[lo + i] = vlog(s[i])
            s[i] = 1 / s[i]
        for j in range(n):
            for i in range(r):
                t[j * ROWS + i] *= s[i]
        transpose_out(<const real *>t, prob + lo * n, r, n)
    else:
        for i in range(r):
            top[i] = row_max(x + (lo + i) * n, n)
            s[i] = <real>row_sum(x + (lo + i) * n, prob + (lo + i) * n, n, top[i], True)
            loss[lo + i] = vlog(s[i])
            s[i] = 1 / s[i]
            for j in range(n):
                prob[(lo + i) * n + j] *= s[i]
    for i in range(r):
        label = fe_index(&call.args[0], lo + i)
        if label == call.ints[0]:
            loss[lo + i] = top[i] = 0
        elif 0 <= label < n:
            top[i] = x[(lo + i) * n + label] - top[i]
        else:
            call.detail = label
            status = FE_BAD_INDEX
    for i in range(r):            # separate loop: a reordered sum of large logits loses the loss
        loss[lo + i] -= top[i]
    return status


cdef int sparse_softmax_cross_entropy(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef const fe_view *v = &call.args[1]
    cdef int64_t n = v.shape[v.ndim - 1], lo, hi, step
    cdef int status = FE_OK
    fe_split(fe_numel(&call.args[0]), ROWS if n <= SHORT else 1, team, &lo, &hi)
    while lo < hi:
        step = min(ROWS, hi - lo) if n <= SHORT else 1
        if sparse_rows(call, tag, lo, step, n) != FE_OK:
            status = FE_BAD_INDEX
        lo += step
    return status


cdef int sparse_softmax_cross_entropy_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """Compute dlogits = dloss * (prob - 1 at the label); 0 where the label is ignored."""
    cdef const fe_view *v = &call.args[2]
    cdef const real *dloss = <const real *>call.args[0].data
    cdef const real *prob = <const real *>v.data
    cdef real *dx = <real *>call.args[3].data
    cdef int64_t n = v.shape[v.ndim - 1], i, j, lo, hi, label
    cdef int status = FE_OK
    cdef real g
    fe_split(fe_numel(&call.args[1]), 1 if n > SHORT else 16, team, &lo, &hi)
    for i in range(lo, hi):
        label = fe_index(&call.args[1], i)
        g = 0 if label == call.ints[0] else dloss[i]
        for j in range(i * n, (i + 1) * n):
            dx[j] = g * prob[j]
        if label == call.ints[0]:
            continue
        if 0 <= label < n:
            dx[i * n + label] = g * (prob[i * n + label] - 1)
        else:
            call.detail = label
            status = FE_BAD_INDEX
    return status


cdef int softmax_cross_entropy(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """Compute loss = -sum(labels * log_softmax(logits)), where labels are distributions over the classes."""
    cdef const fe_view *v = &call.args[1]
    cdef const real *labels = <const real *>call.args[0].data
    cdef const real *x = <const real *>v.data
    cdef real *loss = <real *>call.args[2].data
    cdef real *prob = <real *>call.args[3].data
    cdef int64_t n = v.shape[v.ndim - 1], i, j, lo, hi
    cdef real top, s
    fe_split(fe_numel(&call.args[2]), 1, team, &lo, &hi)
    for i in range(lo, hi):
        top = row_max(x + i * n, n)
        s = <real>row_sum(x + i * n, prob + i * n, n, top, True)
        loss[i] = expected(x + i * n, labels + i * n, n, top, vlog(s))
        s = 1 / s
        for j in range(i * n, (i + 1) * n):
            prob[j] *= s
    return FE_OK


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}"""
    return {
        "sparse_softmax_cross_entropy": of_reals(<void *>sparse_softmax_cross_entropy[float],
                                                 <void *>sparse_softmax_cross_entropy[double], NULL),
        "sparse_softmax_cross_entropy_grad": of_reals(<void *>sparse_softmax_cross_entropy_grad[float],
                                                      <void *>sparse_softmax_cross_entropy_grad[double],
                                                      NULL),
        "softmax_cross_entropy": of_reals(<void *>softmax_cross_entropy[float],
                                          <void *>softmax_cross_entropy[double], NULL)}
