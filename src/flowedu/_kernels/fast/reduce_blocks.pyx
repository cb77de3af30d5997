# cython: language_level=3
"""The kernels sum, max, min and prod over any set of axes.

One engine for all shapes. Axes of size 1 are dropped, and neighbors that are both kept or both reduced merge.
The result has the form

    [outer axes, kept or reduced] [rows: reduced] [columns: kept, contiguous]

A last-axis reduction has one column; a bias gradient has only rows and columns. Rows are combined into a
short array of accumulators, column by column, which is a vector loop for every operation. Narrow rows are
processed several at a time, as one wide row, and folded at the end. Every 64 rows the accumulators are added
to double ones, so a float32 sum of a million elements keeps six digits.

Threads split the outputs; if these are too few, they split the reduced range and combine their partial
results. ints: a 1 for every reduced axis, a 0 for the others.
"""
from libc.stdint cimport int32_t, int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.fold cimport *
from flowedu._kernels.ops.runs cimport *
from flowedu._kernels.core.table cimport *

cdef enum:
    TILE = 512                   # columns that one pass accumulates
    WIDE = 256                   # narrow rows are grouped up to this width


cdef struct Plan:
    int nk, nr                                        # outer axes kept and reduced
    int64_t ks[8]
    int64_t kstep[8]
    int64_t rs[8]
    int64_t rstep[8]
    int64_t rows, cols                                # the two innermost runs
    int64_t kept                                      # product of ks
    # Columns per unit, units per kept index, rows taken as one.
    int64_t tile, tiles, group
    bint partial                                      # threads split the reduced range


cdef Plan plan(const fe_view *x, const int64_t *reduced, int nt) noexcept nogil:
    cdef Plan p
    cdef int64_t size[8]
    cdef int64_t step[8]
    cdef bint red[8]
    cdef int d, n = 0
    cdef int64_t s = 1
    for d in range(x.ndim - 1, -1, -1):               # runs, innermost first
        if x.shape[d] == 1:
            continue
        if n > 0 and red[n - 1] == (reduced[d] != 0):
            size[n - 1] *= x.shape[d]
        else:
            size[n], step[n], red[n] = x.shape[d], s, reduced[d] != 0
            n += 1
        s *= x.shape[d]
    d = 0
    p.cols = p.rows = p.kept = 1
    if d < n and not red[d]:
        p.cols = size[d]
        d += 1
    if d < n:
        p.rows = size[d]
        d += 1
    p.nk = p.nr = 0
    for d in range(n - 1, d - 1, -1):                 # outermost first
        if red[d]:
            p.rs[p.nr], p.rstep[p.nr] = size[d], step[d]
            p.nr += 1
        else:
            p.ks[p.nk], p.kstep[p.nk] = size[d], step[d]
            p.kept *= size[d]
            p.nk += 1
    p.tile = TILE
    while p.tile > 64 and p.kept * ((p.cols + p.tile - 1) // p.tile) < 4 * nt:
        p.tile //= 2
    if nt == 1 or p.tile > p.cols:
        p.tile = min(TILE, p.cols)
    p.tiles = (p.cols + p.tile - 1) // p.tile
    p.partial = nt > 1 and p.kept * p.tiles < 2 * nt and (p.rs[0] if p.nr else p.rows) >= nt
    p.group = 1
    if 1 < p.cols < WIDE and p.tiles == 1:
        p.group = max(min(WIDE // p.cols, p.rows // 8), 1)
    return p


cdef inline void take_rows(num *acc, const num *x, int64_t n, int64_t k, int64_t step,
                           kind *tag) noexcept nogil:
    """Compute acc[j] = acc[j] op x[0, j] op ... op x[n-1, j]; taking four rows at a time saves 3/4 of the
    loads and stores of acc."""
    cdef int64_t i = 0, j
    cdef const num *p
    while i + 4 <= n:
        p = x + i * step
        for j in range(k):
            acc[j] = combine(acc[j], combine(combine(p[j], p[j + step], tag),
                                             combine(p[j + 2 * step], p[j + 3 * step], tag), tag), tag)
        i += 4
    while i < n:
        p = x + i * step
        for j in range(k):
            acc[j] = combine(acc[j], p[j], tag)
        i += 1


cdef void segment(const Plan *p, const num *x, int64_t cols, int64_t lo, int64_t hi, wide *out,
                  kind *tag) noexcept nogil:
    """Compute out[0:cols], the reduction of `cols` columns that start at x, over [lo, hi) of the outermost
    reduced axis."""
    cdef num acc[TILE]
    cdef wide total[TILE]
    cdef int64_t at[8]
    cdef int64_t width = p.group * cols, pending = 0, first = 0, rows = p.rows, outer = 1
    cdef int64_t groups, i, j, k, rest
    cdef const num *q
    cdef int d
    cdef wide none = identity(<wide>0, tag)
    for j in range(width):
        acc[j] = identity(<num>0, tag)
        total[j] = none
    if p.nr == 0:
        first, rows = lo, hi - lo
    for d in range(p.nr):
        at[d] = 0
        outer *= p.rs[d] if d else hi - lo
    if p.nr:
        at[0] = lo
    groups, rest = rows // p.group, rows % p.group
    for k in range(outer):
        q = x + first * p.cols
        for d in range(p.nr):
            q += at[d] * p.rstep[d]
        if p.cols == 1 and width == 1:                # a single column out of several is strided
            total[0] = combine(total[0], take_run(q, rows, none, tag), tag)
        else:
            i = 0
            while i < groups:
                j = min(groups - i, FLUSH - pending)
                take_rows(acc, q + i * p.group * p.cols, j, width, p.group * p.cols, tag)
                i += j
                pending += j
                if pending >= FLUSH:
                    for j in range(width):
                        total[j] = combine(total[j], <wide>acc[j], tag)
                        acc[j] = identity(<num>0, tag)
                    pending = 0
            if rest:
                take_rows(acc, q + groups * p.group * p.cols, rest, cols, p.cols, tag)
                pending += 1
        d = p.nr - 1
        while d >= 0:                                 # the next index of the outer reduced axes
            at[d] += 1
            if at[d] < (p.rs[d] if d else hi):
                break
            at[d] = 0 if d else lo
            d -= 1
    if p.cols > 1 or width > 1:
        for j in range(width):
            total[j] = combine(total[j], <wide>acc[j], tag)
    for i in range(1, p.group):
        for j in range(cols):
            total[j] = combine(total[j], total[i * cols + j], tag)
    for j in range(cols):
        out[j] = total[j]


cdef int64_t kept_offset(const Plan *p, int64_t i) noexcept nogil:
    cdef int64_t off = 0
    cdef int d
    for d in range(p.nk - 1, -1, -1):
        off += i % p.ks[d] * p.kstep[d]
        i //= p.ks[d]
    return off


cdef int reduce(fe_call *call, const fe_team *team, num *tag, wide *wtag, kind *op) noexcept nogil:
    cdef const fe_view *vx = &call.args[0]
    cdef const num *x = <const num *>vx.data
    cdef num *y = <num *>call.args[1].data
    cdef int64_t outs = fe_numel(&call.args[1]), lo, hi, i, j, c, n
    cdef wide part[TILE]
    cdef wide *parts
    cdef wide s
    cdef Plan p
    if outs == 0:
        return FE_OK
    if fe_numel(vx) == 0:
        fe_split(outs, 16, team, &lo, &hi)
        for i in range(lo, hi):
            y[i] = identity(<num>0, op)
        return FE_OK
    p = plan(vx, call.ints, team.nt)
    n = p.rs[0] if p.nr else p.rows
    if p.partial:
        parts = <wide *>call.work
        fe_split(n, 1, team, &lo, &hi)
        for i in range(p.kept):
            for j in range(p.tiles):
                c = j * p.tile
                segment(&p, x + kept_offset(&p, i) + c, min(p.tile, p.cols - c), lo, hi,
                        parts + team.tid * outs + i * p.cols + c, op)
        fe_wait(team)
        fe_split(outs, 16, team, &lo, &hi)
        for i in range(lo, hi):
            s = parts[i]
            for j in range(1, team.nt):
                s = combine(s, parts[j * outs + i], op)
            y[i] = <num>s
        return FE_OK
    fe_split(p.kept * p.tiles, 1, team, &lo, &hi)
    if p.cols == 1 and p.nr == 0:                     # last axis: one contiguous run per output
        for i in range(lo, hi):
            y[i] = <num>take_run(x + i * n, n, identity(<wide>0, op), op)
        return FE_OK
    for i in range(lo, hi):
        c = i % p.tiles * p.tile
        segment(&p, x + kept_offset(&p, i // p.tiles) + c, min(p.tile, p.cols - c), 0, n, part, op)
        for j in range(min(p.tile, p.cols - c)):
            y[i // p.tiles * p.cols + c + j] = <num>part[j]
    return FE_OK


cdef int64_t reduce_work(const fe_call *call, int nt) noexcept nogil:
    cdef Plan p
    if fe_numel(&call.args[0]) == 0:
        return 0
    p = plan(&call.args[0], call.ints, nt)
    return 8 * nt * fe_numel(&call.args[1]) if p.partial else 0


include "flowedu/_kernels/core/reductions.pxi"


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}"""
    return reductions(<void *>reduce_work)
