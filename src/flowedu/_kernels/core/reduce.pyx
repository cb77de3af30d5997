# cython: language_level=3
"""The kernels sum, max, min and prod over any set of axes.

For each output element, a loop traverses its inputs. Floats are accumulated in double and integers
in int64, so a float32 sum of a million elements keeps its precision. Threads split the outputs.
_kernels/fast/reduce_blocks.pyx, which traverses memory in storage order, replaces them. ints: a 1
for every reduced axis, a 0 for the others.
"""
from libc.stdint cimport int32_t, int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.fold cimport *
from flowedu._kernels.core.table cimport *


cdef int reduce(fe_call *call, const fe_team *team, num *tag, wide *wtag, kind *op) noexcept nogil:
    cdef fe_view *x = &call.args[0]
    cdef num *y = <num *>call.args[1].data
    cdef num *first
    cdef fe_view kept, gone                         # the kept and the reduced axes of x
    cdef fe_view *axes
    cdef int64_t lo, hi, i, j
    cdef wide total
    cdef int d
    kept.ndim = gone.ndim = 0
    for d in range(x.ndim):
        axes = &gone if call.ints[d] else &kept
        axes.shape[axes.ndim], axes.stride[axes.ndim] = x.shape[d], x.stride[d]
        axes.ndim += 1
    fe_split(fe_numel(&kept), 16, team, &lo, &hi)
    for i in range(lo, hi):
        first = <num *>x.data + fe_place(&kept, i)
        total = identity(<wide>0, op)
        for j in range(fe_numel(&gone)):
            total = combine(total, <wide>first[fe_place(&gone, j)], op)
        y[i] = <num>total if fe_numel(&gone) else identity(<num>0, op)
    return FE_OK


include "flowedu/_kernels/core/reductions.pxi"


def table():
    """Return {kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}."""
    return reductions(NULL)
