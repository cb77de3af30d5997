# cython: language_level=3
"""The kernel sgd_update: stochastic gradient descent, in place.

_kernels/ops/update.h has all other rules. args: lr (1,), step (1,), then w and g of each parameter,
of any strides. reals: [scale, -, -, -], then decay, l1, and l2 of each. A step < 0 does nothing.
"""
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *


cdef void descend(const fe_view *w, const fe_view *g, double lr, double scale, const double *own,
                  const fe_team *team, real *tag) noexcept nogil:
    """w -= lr * (slope + decay * w). slope: the scaled gradient plus the penalties' gradients."""
    cdef int64_t lo, hi, i
    cdef real *p
    cdef real slope
    fe_split(fe_numel(w), 64, team, &lo, &hi)
    for i in range(lo, hi):
        p = <real *>w.data + fe_place(w, i)
        slope = <real>scale * (<real *>g.data)[fe_place(g, i)]
        slope += <real>own[1] * ((p[0] > 0) - (p[0] < 0)) + <real>own[2] * p[0]
        p[0] -= <real>lr * slope + <real>(lr * own[0]) * p[0]


cdef int sgd_update(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    cdef char *rate = call.args[0].data
    cdef double lr = (<float *>rate)[0] if call.args[0].dtype == FE_F32 else (<double *>rate)[0]
    cdef const double *own = call.reals + 4        # of this parameter: weight decay, l1, l2
    cdef int i
    if fe_index(&call.args[1], 0) < 0:
        return FE_OK
    for i in range(2, call.nin, 2):
        if call.args[i].dtype == FE_F32:
            descend(&call.args[i], &call.args[i + 1], lr, call.reals[0], own, team, <float *>NULL)
        else:
            descend(&call.args[i], &call.args[i + 1], lr, call.reals[0], own, team, <double *>NULL)
        own += 3
    return FE_OK


def table():
    """Return {kernel name: {dtype code of lr: (address, 0)}}."""
    entry = <size_t><void *>sgd_update, 0
    return {"sgd_update": {FE_F32: entry, FE_F64: entry}}
