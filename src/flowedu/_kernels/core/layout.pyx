# cython: language_level=3
"""The kernels copy, concat, and slice_grad, which move data without arithmetic.

Packing a strided view, `transpose().contiguous()`, NCHW <-> NHWC, concat, and slices are copies
between strided arrays. All dtypes of one item size share a version. _kernels/fast/layout_runs.pyx
replaces these kernels. It copies contiguous runs of bytes.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.elements cimport item


cdef void move(const fe_view *src, const fe_view *dst, const fe_team *team,
               item *tag) noexcept nogil:
    """Copy this thread's part of src into dst (same shape, any strides)."""
    cdef item *s = <item *>src.data
    cdef item *d = <item *>dst.data
    cdef int64_t lo, hi, i
    fe_split(fe_numel(dst), 64, team, &lo, &hi)
    for i in range(lo, hi):
        d[fe_place(dst, i)] = s[fe_place(src, i)]


include "flowedu/_kernels/core/moves.pxi"
