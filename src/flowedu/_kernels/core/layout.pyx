# cython: language_level=3
"""Moving data without computing: copy, concat, slice_grad.

Packing a strided view, `transpose().contiguous()`, NCHW <-> NHWC, concat and slices are all one copy between strides. Only the
item's size matters, so one version serves every dtype of that size. _kernels/fast/layout_runs.pyx, which copies runs of bytes
where there are any, takes its place.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.elements cimport item


cdef void move(const fe_view *src, const fe_view *dst, const fe_team *team, item *tag) noexcept nogil:
    """Copy src into dst (same shape, any strides); every thread does its part."""
    cdef item *s = <item *>src.data
    cdef item *d = <item *>dst.data
    cdef int64_t lo, hi, i
    fe_split(fe_numel(dst), 64, team, &lo, &hi)
    for i in range(lo, hi):
        d[fe_place(dst, i)] = s[fe_place(src, i)]


include "flowedu/_kernels/core/moves.pxi"
