# Folding many numbers into one by sum, prod, max or min: the pieces that reduce, softmax and the norms share.
# Compiled into every module that cimports it.
from libc.math cimport INFINITY
from libc.stdint cimport INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, int32_t, int64_t
from flowedu._kernels.core.elements cimport num

cdef enum:
    LANES = 32                   # accumulators of a single run
    FLUSH = 64                   # additions into one float accumulator before it is emptied into a double

cdef struct Sum:
    int unused
cdef struct Prod:
    int unused
cdef struct Max:
    int unused
cdef struct Min:
    int unused

ctypedef fused kind:             # never read: it says which operation to compile
    Sum
    Prod
    Max
    Min

ctypedef fused wide:             # what accumulators are emptied into: double for floats, int64 for integers
    double
    int64_t

ctypedef fused anynum:
    float
    double
    int32_t
    int64_t


cdef inline bint is_nan(anynum a) noexcept nogil:
    cdef bint yes = False
    if anynum is float or anynum is double:
        yes = a != a
    return yes


cdef inline anynum combine(anynum a, anynum b, kind *tag) noexcept nogil:
    cdef anynum c
    if kind is Sum:
        c = a + b
    elif kind is Prod:
        c = a * b
    else:
        if kind is Max:
            c = b if b > a else a                     # a NaN in a stays,
        else:
            c = b if b < a else a
        if anynum is float or anynum is double:
            c = c if b == b else b                    # and one in b wins (two plain choices: gcc vectorises them)
    return c


cdef inline anynum identity(anynum like, kind *tag) noexcept nogil:
    if kind is Sum:
        return 0
    elif kind is Prod:
        return 1
    elif kind is Max:
        if anynum is float or anynum is double:
            return -INFINITY
        elif anynum is int32_t:
            return INT32_MIN
        else:
            return INT64_MIN
    else:
        if anynum is float or anynum is double:
            return INFINITY
        elif anynum is int32_t:
            return INT32_MAX
        else:
            return INT64_MAX


cdef inline wide take_run(const num *x, int64_t n, wide none, kind *tag) noexcept nogil:
    """x[0] op ... op x[n-1], of consecutive elements."""
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


