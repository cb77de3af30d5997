# cython: language_level=3
"""The kernel argmax: the index of the largest element along an axis.

The first one of equal elements wins; a NaN counts as the largest. ints: [axis]. Threads split the outputs.
"""
from libc.math cimport INFINITY
from libc.stdint cimport INT64_MIN, int32_t, int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.extent cimport *
from flowedu._kernels.core.fold cimport *
from flowedu._kernels.ops.runs cimport *

cdef enum:
    TILE = 512                   # elements, or columns, compared together


cdef int64_t argmax_run(const num *x, int64_t n) noexcept nogil:
    """Find the block with the largest element (a vector loop), then the element in that block."""
    cdef int64_t i = 0, best = 0
    cdef num top = x[0], m
    while i < n:
        if num is float or num is double:
            m = <num>take_run(x + i, min(TILE, n - i), <double>-INFINITY, <Max *>NULL)
        else:
            m = <num>take_run(x + i, min(TILE, n - i), <int64_t>INT64_MIN, <Max *>NULL)
        if m > top or (is_nan(m) and not is_nan(top)):
            top, best = m, i
        i += TILE
    while best < n and x[best] != top and not is_nan(x[best]):
        best += 1
    return best


cdef void argmax_columns(const num *x, int64_t n, int64_t step, int64_t cols, int64_t *out) noexcept nogil:
    """Compute out[j] = argmax of x[:, j]; rows are `step` apart."""
    cdef num top[TILE]
    cdef int64_t best[TILE]
    cdef int64_t i, j
    cdef bint more
    for j in range(cols):
        top[j] = x[j]
        best[j] = 0
    for i in range(1, n):
        for j in range(cols):
            more = (x[i * step + j] > top[j]) | (is_nan(x[i * step + j]) & (not is_nan(top[j])))
            top[j] = x[i * step + j] if more else top[j]
            best[j] = i if more else best[j]
    for j in range(cols):
        out[j] = best[j]


cdef int argmax(fe_call *call, const fe_team *team, num *tag) noexcept nogil:
    cdef const fe_view *v = &call.args[0]
    cdef const num *x = <const num *>v.data
    cdef int64_t *y = <int64_t *>call.args[1].data
    cdef Extent e = extent(v, call.ints[0])
    cdef int64_t n = e.n, outer = e.outer, inner = e.inner, i, o, c, lo, hi, tiles, tile
    if outer * inner == 0:
        return FE_OK
    tile = min(inner, TILE)
    tiles = (inner + tile - 1) // tile
    fe_split(outer * tiles, 1, team, &lo, &hi)
    for i in range(lo, hi):
        o, c = i // tiles, i % tiles * tile
        if inner == 1:
            y[o] = argmax_run(x + o * n, n)
        else:
            argmax_columns(x + o * n * inner + c, n, inner, min(tile, inner - c), y + o * inner + c)
    return FE_OK


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}"""
    return {"argmax": {FE_F32: (<size_t><void *>argmax[float], 0), FE_F64: (<size_t><void *>argmax[double],
                                                                            0),
                       FE_I32: (<size_t><void *>argmax[int32_t], 0),
                       FE_I64: (<size_t><void *>argmax[int64_t], 0)}}
