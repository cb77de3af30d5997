# One operand of a matrix product, of any strides. Compiled into every module that cimports it.
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport fe_view

cdef struct Matrix:          # (rows, cols) with its strides
    int64_t rows, cols, rs, cs


cdef inline Matrix operand(const fe_view *v, bint transpose) noexcept nogil:
    cdef Matrix m
    cdef int d = v.ndim
    m.rows, m.cols, m.rs, m.cs = v.shape[d - 2], v.shape[d - 1], v.stride[d - 2], v.stride[d - 1]
    if transpose:
        m.rows, m.cols, m.rs, m.cs = m.cols, m.rows, m.cs, m.rs
    return m


cdef inline int64_t batch_offset(const fe_view *v, const fe_view *y, int64_t i) noexcept nogil:
    """Return the offset of batch i of v, in elements. v has the last batch axes of y, or none."""
    cdef int64_t off = 0
    cdef int d = y.ndim - 3, shift = y.ndim - v.ndim
    while d >= 0 and d - shift >= 0:
        off += (i % y.shape[d]) * v.stride[d - shift]
        i //= y.shape[d]
        d -= 1
    return off
