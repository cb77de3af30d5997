# cython: language_level=3
"""The kernels argsort and top_k along the last axis, and range. Positions are int32. Threads split the rows.

Both orders are stable: equal elements keep their order. A NaN counts as the largest element.
"""
from libc.stdint cimport int32_t, int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.fold cimport *

cdef enum:
    RUN = 16                     # elements sorted by insertion before merging begins


cdef inline bint before(num a, num b, bint down) noexcept nogil:
    """Return True if a must precede b."""
    if down:
        return a > b or (is_nan(a) and not is_nan(b))
    return a < b or (is_nan(b) and not is_nan(a))


# ---- argsort: a merge sort of (key, position) pairs
cdef void insertion(num *key, int32_t *at, int64_t lo, int64_t hi, bint down) noexcept nogil:
    cdef int64_t i, j
    cdef num k
    cdef int32_t p
    for i in range(lo + 1, hi):
        k, p, j = key[i], at[i], i
        while j > lo and before(k, key[j - 1], down):
            key[j], at[j] = key[j - 1], at[j - 1]
            j -= 1
        key[j], at[j] = k, p


cdef void merge(const num *key, const int32_t *at, num *key2, int32_t *at2, int64_t lo, int64_t mid,
                int64_t hi, bint down) noexcept nogil:
    """Merge the sorted runs [lo, mid) and [mid, hi) into key2 and at2; the left one goes first among
    equals."""
    cdef int64_t a = lo, b = mid, o
    for o in range(lo, hi):
        if b == hi or (a < mid and not before(key[b], key[a], down)):
            key2[o], at2[o] = key[a], at[a]
            a += 1
        else:
            key2[o], at2[o] = key[b], at[b]
            b += 1


cdef void sort_row(const num *x, int32_t *y, int64_t n, bint down, num *key, num *key2,
                   int32_t *spare) noexcept nogil:
    cdef int64_t i, width = RUN
    cdef int32_t *at = y
    cdef int32_t *at2 = spare
    for i in range(n):
        key[i], at[i] = x[i], <int32_t>i
    i = 0
    while i < n:
        insertion(key, at, i, min(i + RUN, n), down)
        i += RUN
    while width < n:
        i = 0
        while i < n:
            merge(<const num *>key, <const int32_t *>at, key2, at2, i, min(i + width, n),
                  min(i + 2 * width, n), down)
            i += 2 * width
        key, key2 = key2, key
        at, at2 = at2, at
        width *= 2
    if at != y:
        for i in range(n):
            y[i] = at[i]


cdef inline int64_t last(const fe_view *v) noexcept nogil:
    return v.shape[v.ndim - 1]


cdef int64_t argsort_bytes(const fe_call *call) noexcept nogil:
    """Return one thread's scratch: two rows of keys (8 bytes at most), one of positions; a multiple of 64."""
    return (20 * last(&call.args[0]) + 63) // 64 * 64


cdef int64_t argsort_work(const fe_call *call, int nt) noexcept nogil:
    return nt * argsort_bytes(call)


cdef int argsort(fe_call *call, const fe_team *team, num *tag) noexcept nogil:
    """Sort the positions of each row. ints: [descending]."""
    cdef const num *x = <const num *>call.args[0].data
    cdef int32_t *y = <int32_t *>call.args[1].data
    cdef int64_t n = last(&call.args[0]), lo, hi, i
    cdef char *work = call.work + team.tid * argsort_bytes(call)
    if fe_numel(&call.args[0]) == 0:
        return FE_OK
    fe_split(fe_numel(&call.args[0]) // n, 1, team, &lo, &hi)
    for i in range(lo, hi):
        sort_row(x + i * n, y + i * n, n, call.ints[0], <num *>work, <num *>(work + 8 * n),
                 <int32_t *>(work + 16 * n))
    return FE_OK


# ---- top_k: the k best elements so far form a heap, with the worst at the root, in the result's memory
cdef inline bint better(const num *x, int32_t a, int32_t b) noexcept nogil:
    return before(x[a], x[b], True) or (not before(x[b], x[a], True) and a < b)


cdef void sink(const num *x, int32_t *heap, int64_t k, int64_t i) noexcept nogil:
    """Sift heap[i] down until it is worse than its children."""
    cdef int64_t c
    while 2 * i + 1 < k:
        c = 2 * i + 1
        if c + 1 < k and better(x, heap[c], heap[c + 1]):
            c += 1
        if not better(x, heap[i], heap[c]):
            return
        heap[i], heap[c] = heap[c], heap[i]
        i = c


cdef int top_k(fe_call *call, const fe_team *team, num *tag) noexcept nogil:
    cdef const num *x = <const num *>call.args[0].data
    cdef int32_t *y = <int32_t *>call.args[1].data
    cdef int64_t n = last(&call.args[0]), k = last(&call.args[1]), lo, hi, i, j
    if fe_numel(&call.args[1]) == 0:
        return FE_OK
    fe_split(fe_numel(&call.args[1]) // k, 1, team, &lo, &hi)
    for i in range(lo, hi):
        for j in range(k):
            y[i * k + j] = <int32_t>j
        for j in range(k // 2 - 1, -1, -1):
            sink(x + i * n, y + i * k, k, j)
        for j in range(k, n):
            if before(x[i * n + j], x[i * n + y[i * k]], True):
                y[i * k] = <int32_t>j
                sink(x + i * n, y + i * k, k, 0)
        for j in range(k - 1, 0, -1):                        # move the worst to the end, repeatedly
            y[i * k], y[i * k + j] = y[i * k + j], y[i * k]
            sink(x + i * n, y + i * k, j, 0)
    return FE_OK


cdef int range_(fe_call *call, const fe_team *team, num *tag) noexcept nogil:
    """Write start, start + step, ... ints: [start, step]."""
    cdef num *y = <num *>call.args[0].data
    cdef int64_t lo, hi, i
    fe_split(call.args[0].shape[0], 16, team, &lo, &hi)
    for i in range(lo, hi):
        y[i] = <num>(call.ints[0] + i * call.ints[1])
    return FE_OK


def table():
    """Return {kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}.

    The dtype of range is that of its output.
    """
    work = <size_t><void *>argsort_work
    return {"argsort": {FE_F32: (<size_t><void *>argsort[float], work),
                        FE_F64: (<size_t><void *>argsort[double], work),
                        FE_I32: (<size_t><void *>argsort[int32_t], work),
                        FE_I64: (<size_t><void *>argsort[int64_t], work)},
            "top_k": {FE_F32: (<size_t><void *>top_k[float], 0), FE_F64: (<size_t><void *>top_k[double], 0),
                      FE_I32: (<size_t><void *>top_k[int32_t], 0), FE_I64: (<size_t><void *>top_k[int64_t],
                                                                            0)},
            "range": {FE_F32: (<size_t><void *>range_[float], 0), FE_F64: (<size_t><void *>range_[double], 0),
                      FE_I32: (<size_t><void *>range_[int32_t], 0),
                      FE_I64: (<size_t><void *>range_[int64_t], 0)}}
