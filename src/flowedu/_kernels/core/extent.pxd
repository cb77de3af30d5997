# The sizes of an array before, along, and after one of its axes: (outer, n, inner).
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport fe_view

cdef struct Extent:
    int64_t outer, n, inner


cdef inline Extent extent(const fe_view *v, int64_t axis) noexcept nogil:
    cdef Extent e
    cdef int d
    e.outer, e.n, e.inner = 1, v.shape[axis], 1
    for d in range(v.ndim):
        if d < axis:
            e.outer *= v.shape[d]
        elif d > axis:
            e.inner *= v.shape[d]
    return e
