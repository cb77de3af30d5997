# cython: language_level=3
"""The kernels gather, gather_grad, and one_hot.

Both gathers view params as (outer, size, inner): the axes before the indexed one, the axis itself, the axes
after it; an index selects a run of `inner` adjacent elements. An index outside the axis ends the call with
FE_BAD_INDEX.
"""
from libc.stdint cimport int32_t, int64_t, int8_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.extent cimport *
from flowedu._kernels.core.elements cimport *

ctypedef fused number:
    float
    double
    int32_t
    int64_t
    int8_t
    uint8_t

cdef int gather(fe_call *call, const fe_team *team, item *tag) noexcept nogil:
    """Gather runs of params. ints: [axis]. Inputs params, indices."""
    cdef Extent r = extent(&call.args[0], call.ints[0])
    cdef fe_view *indices = &call.args[1]
    cdef int64_t n = fe_numel(indices), lo, hi, i, k, j
    cdef item *params = <item *>call.args[0].data
    cdef item *y = <item *>call.args[2].data
    cdef item *s
    if fe_numel(&call.args[2]) == 0:
        return FE_OK
    fe_split(r.outer * n, 1 if r.inner >= 16 else 16, team, &lo, &hi)
    for i in range(lo, hi):
        k = fe_index(indices, i % n)
        if k < 0 or k >= r.n:
            call.detail = k
            return FE_BAD_INDEX
        s = params + (i // n * r.n + k) * r.inner
        if r.inner >= 16:
            memcpy(y + i * r.inner, s, r.inner * sizeof(item))
        else:
            for j in range(r.inner):
                y[i * r.inner + j] = s[j]
    return FE_OK


cdef int gather_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """Write zeros, then add every run of dy to its row. ints: [axis]. Inputs dy, indices.

    Each thread owns a part of the result and reads all indices, so rows are summed in the order of the
    indices and results do not depend on the number of threads. A thread owns a band of every row when rows
    are long (balanced even if one index repeats often), a range of rows otherwise.
    """
    cdef Extent r = extent(&call.args[2], call.ints[0])
    cdef fe_view *indices = &call.args[1]
    cdef int64_t n = fe_numel(indices), i, j, k, o, c0 = 0, c1 = r.inner, r0 = 0, r1 = r.outer * r.n
    cdef real *dy = <real *>call.args[0].data
    cdef real *dx = <real *>call.args[2].data
    cdef real *d
    cdef real *s
    fe_split(r1 * r.inner, 64, team, &i, &j)
    for k in range(i, j):
        dx[k] = 0
    fe_wait(team)
    if r.inner >= 64 * team.nt:
        fe_split(r.inner, 16, team, &c0, &c1)
    else:
        fe_split(r1, 1, team, &r0, &r1)
    if r.inner == 0 or r.outer == 0:
        return FE_OK
    for i in range(n):
        k = fe_index(indices, i)
        if k < 0 or k >= r.n:
            call.detail = k
            return FE_BAD_INDEX
        for o in range(r.outer):
            j = o * r.n + k
            if r0 <= j < r1:
                d, s = dx + j * r.inner, dy + (o * n + i) * r.inner
                for j in range(c0, c1):
                    d[j] += s[j]
    return FE_OK


cdef void one_hot_rows(const fe_view *indices, number *y, int64_t depth, number on, number off,
                       int64_t lo, int64_t hi) noexcept nogil:
    cdef int64_t i, j, k
    for i in range(lo * depth, hi * depth):
        y[i] = off
    for i in range(lo, hi):
        k = fe_index(indices, i)
        if 0 <= k < depth:
            y[i * depth + k] = on


cdef int one_hot(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    """Write the rows. reals: [on, off]. An index outside [0, depth) gives a row of `off`. The dtype is that
    of the output."""
    cdef fe_view *y = &call.args[1]
    cdef int64_t depth = y.shape[y.ndim - 1], lo, hi
    cdef double on = call.reals[0], off = call.reals[1]
    fe_split(fe_numel(&call.args[0]), 16, team, &lo, &hi)
    if y.dtype == FE_F32:
        one_hot_rows[float](&call.args[0], <float *>y.data, depth, <float>on, <float>off, lo, hi)
    elif y.dtype == FE_F64:
        one_hot_rows[double](&call.args[0], <double *>y.data, depth, on, off, lo, hi)
    elif y.dtype == FE_I32:
        one_hot_rows[int32_t](&call.args[0], <int32_t *>y.data, depth, <int32_t>on, <int32_t>off, lo, hi)
    elif y.dtype == FE_I64:
        one_hot_rows[int64_t](&call.args[0], <int64_t *>y.data, depth, <int64_t>on, <int64_t>off, lo, hi)
    elif y.dtype == FE_I8:
        one_hot_rows[int8_t](&call.args[0], <int8_t *>y.data, depth, <int8_t>on, <int8_t>off, lo, hi)
    else:                                                    # uint8, and bool, where on and off are 0 or 1
        one_hot_rows[uint8_t](&call.args[0], <uint8_t *>y.data, depth, <uint8_t>on, <uint8_t>off, lo, hi)
    return FE_OK


def table():
    """{kernel name: {dtype code: (kernel address, 0)}}; gather's key is params, one_hot's the indices."""
    by_size = {1: <size_t><void *>gather[uint8_t], 2: <size_t><void *>gather[uint16_t],
               4: <size_t><void *>gather[uint32_t], 8: <size_t><void *>gather[uint64_t]}
    return {"gather": {code: (by_size[fe_item[code]], 0) for code in range(FE_NDTYPE)},
            "gather_grad": {FE_F32: (<size_t><void *>gather_grad[float], 0),
                            FE_F64: (<size_t><void *>gather_grad[double], 0)},
            "one_hot": {code: (<size_t><void *>one_hot, 0) for code in (FE_I32, FE_I64, FE_I8, FE_U8,
                                                                        FE_I16)}}
