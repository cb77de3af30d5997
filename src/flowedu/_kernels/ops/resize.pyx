# cython: language_level=3
"""resize2d and its adjoint on NCHW arrays: every output row and column is a mixture of two input rows and
columns.

ints: interpolate (0: the first neighbor alone); then, for each output row, its first and its second input
row; then the same for columns. reals: the weight of the second neighbor, for each output row, then for each
output column. Threads split the rows of y in resize2d, the planes in resize2d_grad; threads do not depend on
each other's results.
"""
from libc.stdint cimport int64_t
from libc.string cimport memset
from flowedu._kernels.core.abi cimport *

cdef struct Taps:            # of a plane (h, w) and its resized plane (oh, ow)
    int64_t planes, h, w, oh, ow
    bint interpolate
    const int64_t *row1
    const int64_t *row2
    const int64_t *col1
    const int64_t *col2
    const double *down
    const double *right


cdef Taps read_taps(const fe_call *call, const fe_view *x, const fe_view *y) noexcept nogil:
    cdef Taps t
    t.planes, t.h, t.w, t.oh, t.ow = x.shape[0] * x.shape[1], x.shape[2], x.shape[3], y.shape[2], y.shape[3]
    t.interpolate = call.ints[0] != 0
    t.row1 = call.ints + 1
    t.row2 = t.row1 + t.oh
    t.col1 = t.row2 + t.oh
    t.col2 = t.col1 + t.ow
    t.down = call.reals
    t.right = call.reals + t.oh
    return t


cdef int resize2d(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef Taps t = read_taps(call, &call.args[0], &call.args[1])
    cdef real *x = <real *>call.args[0].data
    cdef real *y = <real *>call.args[1].data
    cdef real *mixed = <real *>(call.work + team.tid * row_bytes(t.w))
    cdef real *a
    cdef real *b
    cdef real share
    cdef int64_t i, j, r, lo, hi
    fe_split(t.planes * t.oh, 1, team, &lo, &hi)
    for i in range(lo, hi):
        r = i % t.oh
        a = x + (i // t.oh * t.h + t.row1[r]) * t.w
        if not t.interpolate:
            for j in range(t.ow):
                y[i * t.ow + j] = a[t.col1[j]]
            continue
        b, share = x + (i // t.oh * t.h + t.row2[r]) * t.w, <real>t.down[r]
        for j in range(t.w):
            mixed[j] = a[j] * (1 - share) + b[j] * share
        for j in range(t.ow):
            y[i * t.ow + j] = mixed[t.col1[j]] * (1 - <real>t.right[j]) + mixed[t.col2[j]] * <real>t.right[j]
    return FE_OK


cdef int resize2d_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef Taps t = read_taps(call, &call.args[1], &call.args[0])
    cdef real *dx = <real *>call.args[1].data
    cdef real *mixed = <real *>(call.work + team.tid * row_bytes(t.w))
    cdef real *dy
    cdef real *a
    cdef real *b
    cdef real share
    cdef int64_t p, r, j, lo, hi
    fe_split(t.planes, 1, team, &lo, &hi)
    memset(dx + lo * t.h * t.w, 0, (hi - lo) * t.h * t.w * sizeof(real))
    for p in range(lo, hi):
        for r in range(t.oh):
            dy = <real *>call.args[0].data + (p * t.oh + r) * t.ow
            a = dx + (p * t.h + t.row1[r]) * t.w
            if not t.interpolate:
                for j in range(t.ow):
                    a[t.col1[j]] += dy[j]
                continue
            memset(mixed, 0, t.w * sizeof(real))
            for j in range(t.ow):
                share = <real>t.right[j]
                mixed[t.col1[j]] += dy[j] * (1 - share)
                mixed[t.col2[j]] += dy[j] * share
            b, share = dx + (p * t.h + t.row2[r]) * t.w, <real>t.down[r]
            for j in range(t.w):
                a[j] += mixed[j] * (1 - share)
                b[j] += mixed[j] * share
    return FE_OK


cdef inline int64_t row_bytes(int64_t w) noexcept nogil:
    """Return one thread's scratch: an input row."""
    return (w * 8 + 63) // 64 * 64


cdef int64_t resize2d_work(const fe_call *call, int nt) noexcept nogil:
    return row_bytes(call.args[0].shape[3]) * nt


cdef int64_t resize2d_grad_work(const fe_call *call, int nt) noexcept nogil:
    return row_bytes(call.args[1].shape[3]) * nt


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size)}}"""
    work, work_grad = <size_t><void *>resize2d_work, <size_t><void *>resize2d_grad_work
    return {"resize2d": {FE_F32: (<size_t><void *>resize2d[float], work),
                         FE_F64: (<size_t><void *>resize2d[double], work)},
            "resize2d_grad": {FE_F32: (<size_t><void *>resize2d_grad[float], work_grad),
                              FE_F64: (<size_t><void *>resize2d_grad[double], work_grad)}}
