# Reduction of consecutive elements, in lanes; used by reduce, softmax and the norms. Compiled into every
# module that cimports it.
from libc.stdint cimport int64_t
from flowedu._kernels.core.elements cimport num
from flowedu._kernels.core.fold cimport *

cdef enum:
    LANES = 32                   # accumulators of a single run
    FLUSH = 64                   # additions into one float accumulator before it is added to a double


cdef inline wide take_run(const num *x, int64_t n, wide none, kind *tag) noexcept nogil:
    """Return x[0] op ... op x[n-1], for consecutive elements."""
    cdef num lane[LANES]
    cdef wide total = none
    cdef num s
    cdef int64_t i = 0, j, h, end
    while n - i >= LANES:
        end = min(n, i + LANES * FLUSH)
        for j in range(LANES):
            lane[j] = x[i + j]
        i += LANES
        while i + LANES <= end:
            for j in range(LANES):
                lane[j] = combine(lane[j], x[i + j], tag)
            i += LANES
        h = LANES // 2
        while h > 0:
            for j in range(h):
                lane[j] = combine(lane[j], lane[j + h], tag)
            h //= 2
        total = combine(total, <wide>lane[0], tag)
    if i < n:
        s = x[i]
        for j in range(i + 1, n):
            s = combine(s, x[j], tag)
        total = combine(total, <wide>s, tag)
    return total
