# cython: language_level=3
"""The kernels gather_nd, scatter_nd, scatter_nd_update, and dim_gather with its gradient.

The first three view an array as runs of adjacent elements. A row of `indices` (its last axis) has one index
for each of the array's leading axes and so selects one run. An index outside its axis ends the call with
FE_BAD_INDEX.

Where several rows select the same run, the outcome must not depend on the number of threads, so every thread
owns a part of the result and reads all indices in order.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.extent cimport *
from flowedu._kernels.core.elements cimport *

cdef struct Runs:            # runs of the indexed array, their length; rows of indices, their length
    int64_t runs, inner, rows, k


cdef Runs runs_of(const fe_view *v, const fe_view *indices) noexcept nogil:
    cdef Runs r
    cdef int d
    r.runs, r.inner, r.rows, r.k = 1, 1, 1, indices.shape[indices.ndim - 1]
    for d in range(v.ndim):
        if d < r.k:
            r.runs *= v.shape[d]
        else:
            r.inner *= v.shape[d]
    for d in range(indices.ndim - 1):
        r.rows *= indices.shape[d]
    return r


cdef inline int64_t run(const fe_view *v, const fe_view *indices, const Runs *r, int64_t i,
                        int64_t *bad) noexcept nogil:
    """Return the run that row i of the indices selects, or -1 and *bad if an index is out of range."""
    cdef int64_t d, j, found = 0
    for d in range(r.k):
        j = fe_index(indices, i * r.k + d)
        if j < 0 or j >= v.shape[d]:
            bad[0] = j
            return -1
        found = found * v.shape[d] + j
    return found


# Of the result, owned by one thread: runs [r0, r1), and in each the elements [c0, c1).
cdef struct Part:
    int64_t r0, r1, c0, c1


cdef Part part_of(const Runs *r, const fe_team *team) noexcept nogil:
    """Split the result: a band of every run if runs are long (balanced even if one repeats), else a range of
    runs."""
    cdef Part p
    p.r0, p.r1, p.c0, p.c1 = 0, r.runs, 0, r.inner
    if r.inner >= 64 * team.nt:
        fe_split(r.inner, 16, team, &p.c0, &p.c1)
    else:
        fe_split(r.runs, 1, team, &p.r0, &p.r1)
    return p


cdef int gather_nd(fe_call *call, const fe_team *team, item *tag) noexcept nogil:
    """Gather runs of params. Inputs params, indices."""
    cdef Runs r = runs_of(&call.args[0], &call.args[1])
    cdef const item *x = <const item *>call.args[0].data
    cdef item *y = <item *>call.args[2].data
    cdef int64_t lo, hi, i, k
    if fe_numel(&call.args[2]) == 0:
        return FE_OK
    fe_split(r.rows, 1 if r.inner >= 16 else 16, team, &lo, &hi)
    for i in range(lo, hi):
        k = run(&call.args[0], &call.args[1], &r, i, &call.detail)
        if k < 0:
            return FE_BAD_INDEX
        memcpy(y + i * r.inner, x + k * r.inner, r.inner * sizeof(item))
    return FE_OK


cdef int scatter_nd(fe_call *call, const fe_team *team, num *tag) noexcept nogil:
    """Write zeros, then add every run of the updates to the run that its indices select. Inputs updates,
    indices."""
    cdef fe_view *v = &call.args[2]
    cdef Runs r = runs_of(v, &call.args[1])
    cdef Part p = part_of(&r, team)
    cdef const num *x = <const num *>call.args[0].data
    cdef num *y = <num *>v.data
    cdef int64_t i, j, k
    for k in range(p.r0, p.r1):
        for j in range(p.c0, p.c1):
            y[k * r.inner + j] = 0
    for i in range(r.rows if r.inner else 0):
        k = run(v, &call.args[1], &r, i, &call.detail)
        if k < 0:
            return FE_BAD_INDEX
        if p.r0 <= k < p.r1:
            for j in range(p.c0, p.c1):
                y[k * r.inner + j] += x[i * r.inner + j]
    return FE_OK


cdef int scatter_nd_update(fe_call *call, const fe_team *team, item *tag) noexcept nogil:
    """Copy params, then replace runs by the updates; the last update of a run wins. Inputs params, indices,
    updates."""
    cdef fe_view *v = &call.args[3]
    cdef Runs r = runs_of(v, &call.args[1])
    cdef Part p = part_of(&r, team)
    cdef const item *x = <const item *>call.args[0].data
    cdef const item *u = <const item *>call.args[2].data
    cdef item *y = <item *>v.data
    cdef int64_t i, k, size = (p.c1 - p.c0) * sizeof(item)
    for k in range(p.r0, p.r1):
        memcpy(y + k * r.inner + p.c0, x + k * r.inner + p.c0, size)
    for i in range(r.rows if r.inner else 0):
        k = run(v, &call.args[1], &r, i, &call.detail)
        if k < 0:
            return FE_BAD_INDEX
        if p.r0 <= k < p.r1:
            memcpy(y + k * r.inner + p.c0, u + i * r.inner + p.c0, size)
    return FE_OK


# ---- dim_gather: an index for every element
cdef int dim_gather(fe_call *call, const fe_team *team, item *tag) noexcept nogil:
    """Gather one element per index. ints: [axis]. Inputs x, index."""
    cdef Extent b = extent(&call.args[1], call.ints[0])
    cdef const item *x = <const item *>call.args[0].data
    cdef item *y = <item *>call.args[2].data
    cdef int64_t size = call.args[0].shape[call.ints[0]], lo, hi, i, j, k, left
    fe_split(b.outer * b.n * b.inner, 64, team, &lo, &hi)
    if lo == hi:
        return FE_OK
    j, left = lo % b.inner, b.n * b.inner - lo % (b.n * b.inner)     # position; elements left in the box
    x += lo // (b.n * b.inner) * size * b.inner
    for i in range(lo, hi):
        k = fe_index(&call.args[1], i)
        if k < 0 or k >= size:
            call.detail = k
            return FE_BAD_INDEX
        y[i] = x[k * b.inner + j]
        j = j + 1 if j + 1 < b.inner else 0
        left -= 1
        if left == 0:
            x += size * b.inner
            left = b.n * b.inner
    return FE_OK


cdef int dim_gather_grad(fe_call *call, const fe_team *team, num *tag) noexcept nogil:
    """Write zeros, then add each element of dy where dim_gather read it. ints: [axis]. Inputs dy, index."""
    cdef Extent b = extent(&call.args[1], call.ints[0])
    cdef const num *dy = <const num *>call.args[0].data
    cdef num *dx = <num *>call.args[2].data
    cdef int64_t size = call.args[2].shape[call.ints[0]], lo, hi, o, c0, c1, i, j, k
    if b.outer * b.inner == 0:
        return FE_OK
    fe_split(b.outer * b.inner, 16, team, &lo, &hi)          # columns: all elements along the axis
    for o in range(lo // b.inner, (hi + b.inner - 1) // b.inner):
        c0, c1 = max(lo - o * b.inner, 0), min(hi - o * b.inner, b.inner)
        for i in range(size):
            for j in range(c0, c1):
                dx[(o * size + i) * b.inner + j] = 0
        for i in range(b.n):
            for j in range(c0, c1):
                k = fe_index(&call.args[1], (o * b.n + i) * b.inner + j)
                if k < 0 or k >= size:
                    call.detail = k
                    return FE_BAD_INDEX
                dx[(o * size + k) * b.inner + j] += dy[(o * b.n + i) * b.inner + j]
    return FE_OK


def table():
    """{kernel name: {dtype code: (kernel address, 0)}}; the key is the first input."""
    moved = {1: (<size_t><void *>gather_nd[uint8_t], <size_t><void *>scatter_nd_update[uint8_t],
                 <size_t><void *>dim_gather[uint8_t]),
             2: (<size_t><void *>gather_nd[uint16_t], <size_t><void *>scatter_nd_update[uint16_t],
                 <size_t><void *>dim_gather[uint16_t]),
             4: (<size_t><void *>gather_nd[uint32_t], <size_t><void *>scatter_nd_update[uint32_t],
                 <size_t><void *>dim_gather[uint32_t]),
             8: (<size_t><void *>gather_nd[uint64_t], <size_t><void *>scatter_nd_update[uint64_t],
                 <size_t><void *>dim_gather[uint64_t])}
    kernels = {name: {code: (moved[fe_item[code]][i], 0) for code in range(FE_NDTYPE)}
               for i, name in enumerate(("gather_nd", "scatter_nd_update", "dim_gather"))}
    kernels["scatter_nd"] = {
        FE_F32: (<size_t><void *>scatter_nd[float], 0), FE_F64: (<size_t><void *>scatter_nd[double], 0),
        FE_I32: (<size_t><void *>scatter_nd[int32_t], 0), FE_I64: (<size_t><void *>scatter_nd[int64_t], 0)}
    kernels["dim_gather_grad"] = {
        FE_F32: (<size_t><void *>dim_gather_grad[float], 0), FE_F64: (<size_t><void *>dim_gather_grad[double],
                                                                      0),
        FE_I32: (<size_t><void *>dim_gather_grad[int32_t], 0),
        FE_I64: (<size_t><void *>dim_gather_grad[int64_t], 0)}
    return kernels
