# cython: language_level=3
"""Elementwise engine: one kernel that runs every elementwise op and every fused chain of them.

A call carries a program (tiles.h): tile functions over numbered slots. The engine traverses the
output in tiles that fit the L1 cache. For each tile it loads the input elements, which may have
any strides, and runs the instructions. A chain of ten ops reads and writes memory only once.
_kernels/fast/elementwise_rows.pyx replaces this kernel by one that uses pointers instead of copies
where possible. ints: [0] aligns the inputs to the right, as broadcasting does. [1, s0, s1, ...]
maps the first axis of input k to axis sk of the output (bias_add).
"""
from libc.stdint cimport int16_t, int32_t, int64_t
from libc.string cimport memcpy
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.program cimport *

cdef extern from "tiles.h" nogil:
    enum: FE_NTILES
    ctypedef struct fe_tile_entry:
        const char *name
        int in_ "in"
        int out
        int arity
        fe_tile fn
    const fe_tile_entry *FE_TILES


cdef fe_view under(const fe_call *call, int k) noexcept nogil:
    """Return input k with the output's axes: stride 0 along missing axes and axes of size 1."""
    cdef fe_view v = call.args[call.nin]
    cdef const fe_view *x = &call.args[k]
    cdef int64_t d, at
    v.data = x.data
    for d in range(v.ndim):
        at = d - (call.ints[1 + k] if call.ints[0] else v.ndim - x.ndim)
        v.stride[d] = x.stride[at] if 0 <= at < x.ndim and x.shape[at] != 1 else 0
    return v


cdef void fetch(char *to, const fe_view *v, int64_t start, int64_t n, int item) noexcept nogil:
    """Copy the elements start .. start + n of v, in row-major order, to a contiguous buffer."""
    cdef int64_t i
    for i in range(n):
        memcpy(to + i * item, v.data + fe_place(v, start + i) * item, item)


cdef int elementwise(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef const fe_program *p = <const fe_program *>call.extra
    cdef char buffers[FE_MAX_SLOTS * FE_TILE_BYTES]
    cdef char *slot[FE_MAX_SLOTS]
    cdef fe_view x[16]
    cdef int64_t lo, hi, i, n, tile = FE_TILE_BYTES
    cdef int k, s
    for k in range(p.nslots):
        slot[k] = buffers + k * FE_TILE_BYTES
        tile = min(tile, FE_TILE_BYTES // p.item[k])
    for k in range(p.nconst):
        s = p.const_slot[k]
        for i in range(tile):
            memcpy(slot[s] + i * p.item[s], FE_CONST(p, k), p.item[s])
    for k in range(call.nin):
        x[k] = under(call, k)
    fe_split(fe_numel(&call.args[call.nin]), 64, team, &lo, &hi)
    while lo < hi:
        n = min(tile, hi - lo)
        for k in range(call.nin):
            fetch(slot[k], &x[k], lo, n, p.item[k])
        for k in range(p.nout):
            s = p.out_slot[k]
            slot[s] = call.args[call.nin + k].data + lo * p.item[s]
        run(p, slot, n)
        lo += n
    return FE_OK


def table():
    entry = (<size_t><void *>elementwise[float], 0)
    return {"elementwise": {code: entry for code in range(FE_NDTYPE)}}


def tiles():
    """Return {(formula, operand dtype code): (address, result dtype code, number of operands)}."""
    cdef int i
    return {(FE_TILES[i].name.decode(), FE_TILES[i].in_):
            (<size_t><void *>FE_TILES[i].fn, FE_TILES[i].out, FE_TILES[i].arity)
            for i in range(FE_NTILES)}
