# cython: language_level=3
"""softmax(mask ? fill : scale * x) along the last axis, and its gradient: a row is read once and written
once.

ints: none. reals: [scale, fill] (gradient: [scale]). The mask, one byte for each element, may be broadcast
along any axis. Threads split the rows.
"""
from libc.stdint cimport int8_t, int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.ops.expsum cimport *


cdef inline int64_t mask_row(const fe_view *mask, const fe_view *x, int64_t row) noexcept nogil:
    """Return the offset of row `row` of x in the mask; the mask's axes are the last axes of x."""
    cdef int64_t off = 0
    cdef int d = x.ndim - 2, shift = x.ndim - mask.ndim
    while d >= shift and d >= 0:
        if mask.shape[d - shift] != 1:
            off += row % x.shape[d] * mask.stride[d - shift]
        row //= x.shape[d]
        d -= 1
    return off


cdef inline void choose(const int8_t *mask, int64_t step, const real *x, real *y, int64_t n, real scale,
                        real fill) noexcept nogil:
    """Compute y = mask ? fill : scale * x."""
    cdef int64_t j
    if step == 1:
        for j in range(n):
            y[j] = fill if mask[j] else scale * x[j]
    else:
        for j in range(n):
            y[j] = fill if mask[j * step] else scale * x[j]


cdef inline int64_t step_of(const fe_view *mask) noexcept nogil:
    return mask.stride[mask.ndim - 1] if mask.ndim and mask.shape[mask.ndim - 1] != 1 else 0


cdef int masked_softmax(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef const fe_view *v = &call.args[0]
    cdef const int8_t *mask = <const int8_t *>call.args[1].data
    cdef real *y
    cdef const real *x
    cdef int64_t n = v.shape[v.ndim - 1], rows = fe_numel(v) // max(n, 1), lo, hi, i, j
    cdef int64_t step = step_of(&call.args[1])
    cdef real s
    fe_split(rows, 1, team, &lo, &hi)
    for i in range(lo, hi if n > 0 else lo):
        x, y = <const real *>v.data + i * n, <real *>call.args[2].data + i * n
        choose(mask + mask_row(&call.args[1], v, i), step, x, y, n, <real>call.reals[0], <real>call.reals[1])
        s = row_max(<const real *>y, n)
        s = <real>(1 / row_sum(<const real *>y, y, n, s, True))
        for j in range(n):
            y[j] *= s
    return FE_OK


cdef int masked_softmax_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """Compute dx = mask ? 0 : scale * y * (dy - sum(dy * y))."""
    cdef const fe_view *v = &call.args[0]
    cdef const int8_t *mask = <const int8_t *>call.args[2].data
    cdef const real *dy
    cdef const real *y
    cdef real *dx
    cdef int64_t n = v.shape[v.ndim - 1], rows = fe_numel(v) // max(n, 1), lo, hi, i, j, end
    cdef int64_t step = step_of(&call.args[2])
    cdef real s, scale = <real>call.reals[0]
    cdef double total
    fe_split(rows, 1, team, &lo, &hi)
    for i in range(lo, hi if n > 0 else lo):
        dy, y = <const real *>v.data + i * n, <const real *>call.args[1].data + i * n
        dx, total, j = <real *>call.args[3].data + i * n, 0, 0
        while j < n:
            end, s = min(n, j + BLOCK), 0
            while j < end:
                s += dy[j] * y[j]
                j += 1
            total += s
        s = <real>total
        for j in range(n):
            dx[j] = scale * (y[j] * (dy[j] - s))
        choose(mask + mask_row(&call.args[2], v, i), step, <const real *>dx, dx, n, <real>1, <real>0)
    return FE_OK


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}"""
    return {"masked_softmax": {FE_F32: (<size_t><void *>masked_softmax[float], 0),
                               FE_F64: (<size_t><void *>masked_softmax[double], 0)},
            "masked_softmax_grad": {FE_F32: (<size_t><void *>masked_softmax_grad[float], 0),
                                    FE_F64: (<size_t><void *>masked_softmax_grad[double], 0)}}
