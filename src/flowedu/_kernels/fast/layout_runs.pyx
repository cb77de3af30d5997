# cython: language_level=3
"""Faster versions of the kernels copy, concat and slice_grad of core/layout.pyx.

The axes of a copy are permuted into the destination's memory order, and axes with even steps on both sides
are merged. The rest has one of three inner loops: a contiguous run of bytes, a plain strided loop, or
transposes in registers (layout_tiles.h).
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.elements cimport item
from flowedu._kernels.ops.axes cimport *

cdef extern from *:
    """
    #include "layout_tiles.h"                       /* short runs, transposes in registers */
    """
    void fe_copy_run(void *, const void *, size_t) nogil
    # Copies n x m items; for each axis the size, and the steps in source and destination. Returns 0 if the
    # case is not covered.
    bint fe_plane(const void *, void *, int64_t n, int64_t ss, int64_t ds, int64_t m, int64_t st, int64_t dt,
                  int item) nogil


cdef int share(Axis *ax, int rank, const fe_team *team, int64_t *lo) noexcept nogil:
    """Cut one axis down to this thread's part: the outermost that is long enough, or else the longest."""
    cdef int k = rank - 1, i
    cdef int64_t hi
    while k > 0 and ax[k].n < 8 * team.nt:
        k -= 1
    if k == 0:
        for i in range(rank):
            if ax[i].n > ax[k].n:
                k = i
    fe_split(ax[k].n, 64 if ax[k].n >= 512 * team.nt else 1, team, lo, &hi)
    ax[k].n = hi - lo[0]
    return k


cdef void plane(item *s, item *d, Axis a, Axis b) noexcept nogil:
    """Copy the two inner axes."""
    cdef int64_t i, j, n = a.n, ss = a.s, ds = a.d
    cdef item *p
    cdef item *q
    cdef item v
    if ss == 1 and ds == 1:
        for j in range(b.n):
            fe_copy_run(d + j * b.d, s + j * b.s, n * sizeof(item))
    elif not fe_plane(s, d, n, ss, ds, b.n, b.s, b.d, sizeof(item)):
        for j in range(b.n):
            p, q = s + j * b.s, d + j * b.d
            if ss == 0 and ds == 1:
                v = p[0]
                for i in range(n):
                    q[i] = v
            elif ss == 2 and ds == 1:                        # every other item: a constant stride vectorises
                for i in range(n):
                    q[i] = p[2 * i]
            else:
                for i in range(n):
                    q[i * ds] = p[i * ss]


cdef void move(const fe_view *src, const fe_view *dst, const fe_team *team, item *tag) noexcept nogil:
    """Copy src into dst (same shape, any strides); every thread copies its part."""
    cdef Axis ax[9]
    cdef Axis b
    cdef int64_t at[9]
    cdef int64_t lo
    cdef int rank = simplify(src, dst, ax), k = 1, i
    cdef item *s = <item *>src.data
    cdef item *d = <item *>dst.data
    if rank < 0:
        return
    i = share(ax, rank, team, &lo)
    if ax[i].n == 0:
        return
    s += lo * ax[i].s
    d += lo * ax[i].d
    b.n, b.s, b.d = 1, 0, 0
    if rank > 1:
        if ax[0].s != 1:                                     # make axis 1 the contiguous source axis
            for i in range(1, rank):
                if ax[i].s != 0 and (size(ax[i].s) < size(ax[k].s) or ax[k].s == 0):
                    k = i
        b = ax[k]
        for i in range(k, rank - 1):
            ax[i] = ax[i + 1]
        rank -= 1
    for i in range(rank):
        at[i] = 0
    while True:                                              # an odometer over the remaining axes
        plane(s, d, ax[0], b)
        i = 1
        while i < rank:
            at[i] += 1
            s += ax[i].s
            d += ax[i].d
            if at[i] < ax[i].n:
                break
            s -= ax[i].s * ax[i].n
            d -= ax[i].d * ax[i].n
            at[i] = 0
            i += 1
        if i >= rank:
            return


include "flowedu/_kernels/core/moves.pxi"
