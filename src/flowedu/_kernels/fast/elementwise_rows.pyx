# cython: language_level=3
"""Elementwise engine with fewer copies than core/elementwise.pyx.

Axes are merged where all operands have even steps over them. Long rows are processed one by one: an input
that is contiguous in the row is read in place, and a single op whose operands are all contiguous needs no
tiles. Short rows are processed in flat order.
"""
from libc.stdint cimport int16_t, int32_t, int64_t
from libc.string cimport memcpy, memset
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.program cimport *

cdef extern from *:
    """
    /* Copy n elements, `stride` apart, to consecutive places. */
    #define FE_GATHER(T) { const T *s = (const T *)src; T *d = (T *)dst; \\
        if (stride == 0) { const T v = s[0]; for (int64_t i = 0; i < n; i++) d[i] = v; } \\
        else for (int64_t i = 0; i < n; i++) d[i] = s[i * stride]; break; }
    static inline void fe_gather(char *dst, const char *src, int64_t n, int64_t stride, int item) {
        switch (item) {
        case 4: FE_GATHER(int32_t)
        case 8: FE_GATHER(int64_t)
        case 1: FE_GATHER(int8_t)
        default: FE_GATHER(int16_t)
        }
    }
    """
    void fe_gather(char *, const char *, int64_t, int64_t, int) noexcept nogil


cdef struct Walk:                        # all operands over the same collapsed axes
    int ndim
    int64_t shape[8]
    int64_t stride[16][8]                # [operand][axis]


cdef void collapse(const fe_call *call, Walk *w) noexcept nogil:
    """Right-align the inputs under the output, drop axes of size 1, and merge neighbors with even steps in
    all operands."""
    cdef const fe_view *y = &call.args[call.nin]
    cdef int64_t s[16]
    cdef int d, k
    cdef int64_t dk
    cdef bint merge, varies
    w.ndim = 0
    for d in range(y.ndim):
        if y.shape[d] == 1:
            continue
        for k in range(call.nargs):
            dk = d - (call.ints[1 + k] if call.ints[0] and k < call.nin else y.ndim - call.args[k].ndim)
            varies = 0 <= dk < call.args[k].ndim and call.args[k].shape[dk] != 1
            s[k] = call.args[k].stride[dk] if varies else 0
        merge = w.ndim > 0
        for k in range(call.nargs):
            if merge and w.stride[k][w.ndim - 1] != s[k] * y.shape[d]:
                merge = False
        if merge:
            w.shape[w.ndim - 1] *= y.shape[d]
        else:
            w.shape[w.ndim] = y.shape[d]
            w.ndim += 1
        for k in range(call.nargs):
            w.stride[k][w.ndim - 1] = s[k]
    if w.ndim == 0:
        w.ndim = 1
        w.shape[0] = 1
        for k in range(call.nargs):
            w.stride[k][0] = 1


cdef void gather_flat(char *dst, const char *base, const Walk *w, int k, int64_t start, int64_t n,
                      int item) noexcept nogil:
    """Copy elements start..start+n of operand k, in the output's row-major order."""
    cdef int64_t index[8]
    cdef int64_t rest = start, off = 0, run, inner = w.shape[w.ndim - 1], step = w.stride[k][w.ndim - 1]
    cdef int d
    for d in range(w.ndim - 1, -1, -1):
        index[d] = rest % w.shape[d]
        rest //= w.shape[d]
        off += index[d] * w.stride[k][d]
    while n > 0:
        run = min(n, inner - index[w.ndim - 1])
        if step == 1:
            memcpy(dst, base + off * item, run * item)
        else:
            fe_gather(dst, base + off * item, run, step, item)
        dst += run * item
        n -= run
        off += run * step
        index[w.ndim - 1] += run
        d = w.ndim - 1
        while d > 0 and index[d] == w.shape[d]:
            off += w.stride[k][d - 1] - index[d] * w.stride[k][d]
            index[d] = 0
            d -= 1
            index[d] += 1


cdef inline bint alike(const fe_call *call) noexcept nogil:
    """Return True if all operands have the shape and the strides of the output, which is row-major."""
    cdef const fe_view *y = &call.args[call.nin]
    cdef int64_t step = 1
    cdef int d, k
    if call.ints[0]:
        return False
    for k in range(call.nin):
        if call.args[k].ndim != y.ndim:
            return False
    for d in range(y.ndim - 1, -1, -1):
        if y.stride[d] != step:
            return False
        for k in range(call.nin):
            if call.args[k].stride[d] != step or call.args[k].shape[d] != y.shape[d]:
                return False
        step *= y.shape[d]
    return True


cdef int elementwise(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """Run a call. The usual case, one op on arrays of one layout, skips the general setup, which dominates
    for small arrays."""
    cdef const fe_program *p = <const fe_program *>call.extra
    cdef char *slot[FE_MAX_SLOTS]
    cdef int64_t lo, hi
    cdef int k
    if p.ninstr != 1 or p.nconst != 0 or p.nout != 1 or not alike(call):
        return walked(call, team, tag)
    fe_split(fe_numel(&call.args[call.nin]), 64, team, &lo, &hi)
    for k in range(call.nin):
        slot[k] = call.args[k].data + lo * p.item[k]
    k = p.out_slot[0]
    slot[k] = call.args[call.nin].data + lo * p.item[k]
    run(p, slot, hi - lo)
    return FE_OK


cdef int walked(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef const fe_program *p = <const fe_program *>call.extra
    cdef Walk w
    cdef char buffers[FE_MAX_SLOTS * FE_TILE_BYTES]
    cdef char *slot[FE_MAX_SLOTS]
    cdef char *base[16]
    cdef bint direct[16]
    cdef int64_t total = fe_numel(&call.args[call.nin]), lo, hi, i, n, row, tile, rows, r, rest, cols
    cdef int k, d, used = 0
    if total == 0:
        return FE_OK
    collapse(call, &w)
    tile = FE_TILE_BYTES
    for k in range(p.nslots):
        tile = min(tile, FE_TILE_BYTES // p.item[k])
    for k in range(call.nin, p.nslots):                    # constants and temporaries live in the L1 buffers
        slot[k] = buffers + k * FE_TILE_BYTES
    for k in range(p.nconst):
        fe_gather(slot[p.const_slot[k]], FE_CONST(p, k), min(total, tile), 0, p.item[p.const_slot[k]])
    # Long rows: row by row, reading inputs in place. Short rows: in flat order, gathering elements.
    row = w.shape[w.ndim - 1]
    if w.ndim == 1 or row >= 256:
        fe_split(row, 64 if w.ndim == 1 else row, team, &lo, &hi)
        rows = 1
        for d in range(w.ndim - 1):
            rows *= w.shape[d]
        r = 0
        if w.ndim > 1:
            fe_split(rows, 1, team, &r, &rows)
            lo, hi = 0, row
        while r < rows:
            for k in range(call.nargs):
                base[k] = call.args[k].data
                rest = r
                for d in range(w.ndim - 2, -1, -1):
                    base[k] += (rest % w.shape[d]) * w.stride[k][d] * argitem(p, call, k)
                    rest //= w.shape[d]
                direct[k] = w.stride[k][w.ndim - 1] == 1
                if not direct[k]:
                    slot[k] = buffers + k * FE_TILE_BYTES
                    if w.stride[k][w.ndim - 1] == 0:
                        fe_gather(slot[k], base[k], min(tile, hi - lo), 0, p.item[k])
            i = lo
            while i < hi:
                n = min(tile, hi - i)
                if p.ninstr == 1 and p.nconst == 0 and all_direct(direct, call.nin):
                    n = hi - i                              # one op over plain memory: no tiles needed
                for k in range(call.nin):
                    if direct[k]:
                        slot[k] = base[k] + i * p.item[k]
                    elif w.stride[k][w.ndim - 1] != 0:
                        fe_gather(slot[k], base[k] + i * w.stride[k][w.ndim - 1] * p.item[k], n,
                                  w.stride[k][w.ndim - 1], p.item[k])
                for k in range(p.nout):
                    slot[p.out_slot[k]] = base[call.nin + k] + i * p.item[p.out_slot[k]]
                if of_a_number(p, call, &w):                # read by pow in vector_tiles.h
                    k = p.instr[0].b
                    p.instr[0].fn(n, slot[p.instr[0].out], slot[p.instr[0].a], slot[k], slot[k])
                else:
                    run(p, slot, n)
                i += n
            r += 1
        return FE_OK
    for k in range(call.nin):                              # operands that are still one contiguous run
        direct[k] = True
        cols = 1
        for d in range(w.ndim - 1, -1, -1):
            direct[k] = direct[k] and w.stride[k][d] == cols
            cols *= w.shape[d]
    fe_split(total, 64, team, &lo, &hi)
    while lo < hi:
        n = min(tile, hi - lo)
        for k in range(call.nin):
            if direct[k]:
                slot[k] = call.args[k].data + lo * p.item[k]
            else:
                slot[k] = buffers + k * FE_TILE_BYTES
                gather_flat(slot[k], call.args[k].data, &w, k, lo, n, p.item[k])
        for k in range(p.nout):
            slot[p.out_slot[k]] = call.args[call.nin + k].data + lo * p.item[p.out_slot[k]]
        run(p, slot, n)
        lo += n
    return FE_OK


cdef inline bint all_direct(bint *direct, int n) noexcept nogil:
    cdef int k
    for k in range(n):
        if not direct[k]:
            return False
    return True


cdef inline bint of_a_number(const fe_program *p, const fe_call *call, const Walk *w) noexcept nogil:
    """Return True for one op of two operands where the second one is constant along the row."""
    cdef int k = p.instr[0].b
    return p.ninstr == 1 and 0 <= k < call.nin and p.instr[0].c < 0 and w.stride[k][w.ndim - 1] == 0


cdef inline int argitem(const fe_program *p, const fe_call *call, int k) noexcept nogil:
    return p.item[k] if k < call.nin else p.item[p.out_slot[k - call.nin]]


def table():
    entry = (<size_t><void *>elementwise[float], 0)
    return {"elementwise": {code: entry for code in range(FE_NDTYPE)}}
