# Reduction to one number by sum, prod, max, or min. Compiled into each module that cimports it.
from libc.math cimport INFINITY
from libc.stdint cimport INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, int32_t, int64_t
from flowedu._kernels.core.elements cimport num

cdef struct Sum:
    int unused
cdef struct Prod:
    int unused
cdef struct Max:
    int unused
cdef struct Min:
    int unused

ctypedef fused kind:             # selects the operation at compile time
    Sum
    Prod
    Max
    Min

ctypedef fused wide:             # the type of a total: double for floats, int64 for integers
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
            c = b if b > a else a                     # keeps a NaN in a
        else:
            c = b if b < a else a
        if anynum is float or anynum is double:
            c = c if b == b else b                    # keeps a NaN in b (gcc vectorizes both)
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
