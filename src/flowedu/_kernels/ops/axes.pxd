# The axes of a strided copy or cast, in the best order of traversal. Compiled into every module that cimports
# it.
from flowedu._kernels.core.abi cimport *

cdef struct Axis:            # length, stride in the source, stride in the destination
    int64_t n, s, d


cdef inline int64_t size(int64_t x) noexcept nogil:
    return -x if x < 0 else x


cdef inline int simplify(const fe_view *src, const fe_view *dst, Axis *ax) noexcept nogil:
    """Order the copy's axes, the destination's fastest first, and merge them where possible. Return their
    number, or -1 for an empty copy."""
    cdef int i, j, rank = 0, out = 0
    cdef Axis a
    for i in range(dst.ndim):
        if dst.shape[i] == 0:
            return -1
        if dst.shape[i] == 1:
            continue
        a.n, a.s, a.d = dst.shape[i], src.stride[i], dst.stride[i]
        j = rank
        while (j > 0 and (size(ax[j - 1].d) > size(a.d) or (ax[j - 1].d == a.d
                                                            and size(ax[j - 1].s) > size(a.s)))):
            ax[j] = ax[j - 1]
            j -= 1
        ax[j] = a
        rank += 1
    if rank == 0:
        ax[0].n, ax[0].s, ax[0].d = 1, 1, 1
        return 1
    for i in range(1, rank):
        if ax[i].s == ax[out].s * ax[out].n and ax[i].d == ax[out].d * ax[out].n:
            ax[out].n *= ax[i].n
        else:
            out += 1
            ax[out] = ax[i]
    return out + 1
