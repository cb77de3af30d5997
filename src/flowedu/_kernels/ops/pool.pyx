# cython: language_level=3
"""Max and average pooling on NCHW arrays, and their gradients.

ints of max_pool2d, avg_pool2d and avg_pool2d_grad: window h, w; stride h, w; pad top, bottom, left, right.
The other two have none. Loops run along output rows, one window position at a time, so that they vectorize;
windows wider than the output (global pooling) are processed one by one instead. Threads split planes or rows,
and do not depend on each other's results.
"""
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.ops.pool_geometry cimport *
from flowedu._kernels.ops.pool_max cimport *

cdef extern from "pool_rows.h" nogil:
    void sum_halves_f(const float *, const float *, float *, int64_t) noexcept
    void sum_halves_d(const double *, const double *, double *, int64_t) noexcept
    void spread_halves_f(const float *, float *, float *, int64_t) noexcept
    void spread_halves_d(const double *, double *, double *, int64_t) noexcept


cdef int max_pool2d(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef Pool p = read_pool(call, &call.args[0], &call.args[1])
    cdef real *y = <real *>call.args[1].data
    cdef int32_t *at = <int32_t *>call.args[2].data
    cdef real *copy = <real *>(call.work + team.tid * copy_bytes(&p))
    cdef real *x
    cdef int32_t places[FE_POOL_PACK]
    cdef int64_t row, t, q, end, lo, hi, pack = FE_POOL_PACK // max(p.ow, 1) if p.halves and p.ow < 64 else 0
    fe_split(p.planes * p.oh, 1, team, &lo, &hi)
    if p.ow == 0:
        return FE_OK
    for t in range(min(pack, min(p.oh, hi - lo))):       # positions in the first rows of windows
        for q in range(p.ow):
            places[t * p.ow + q] = <int32_t>(2 * (t * p.w + q))
    row = lo
    while row < hi:
        t, q = row % p.oh, row * p.ow
        x = <real *>call.args[0].data + row // p.oh * p.h * p.w
        end = min(p.oh, t + hi - row) if p.halves else min(min(p.oh, t + hi - row), t + band_rows(&p))
        if not p.halves:
            max_band(&p, t, end, x, y + q - t * p.ow, at + q - t * p.ow, copy)
        row += end - t
        while p.halves and t < end:
            halve_rows(&p, t, min(end - t, pack), x + 2 * t * p.w, y + q, at + q, places)
            q += max(min(end - t, pack), 1) * p.ow
            t += max(min(end - t, pack), 1)
    return FE_OK


cdef int64_t copy_bytes(const Pool *p) noexcept nogil:
    """Return one thread's scratch for max pooling: the padded input rows of a band."""
    return (copy_pitch(p) * ((min(band_rows(p), max(p.oh, 1)) - 1) * p.sh + p.kh) * 8 + 63) // 64 * 64


cdef int64_t max_pool2d_work(const fe_call *call, int nt) noexcept nogil:
    cdef Pool p = read_pool(call, &call.args[0], &call.args[1])
    return 0 if p.halves else copy_bytes(&p) * nt


cdef inline int64_t position(const fe_view *index, bint narrow, int64_t q) noexcept nogil:
    return (<int32_t *>index.data)[q] if narrow else (<int64_t *>index.data)[q]


cdef int max_pool2d_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """Add dy to dx[index], plane by plane."""
    cdef fe_view *y = &call.args[0]
    cdef fe_view *x = &call.args[2]
    cdef int64_t outs = y.shape[2] * y.shape[3], size = x.shape[2] * x.shape[3], plane, q, at, lo, hi
    cdef real *dy
    cdef real *dx
    cdef bint narrow = call.args[1].dtype == FE_I32
    fe_split(x.shape[0] * x.shape[1], 1, team, &lo, &hi)
    for plane in range(lo, hi):
        dx = <real *>x.data + plane * size
        dy = <real *>y.data + plane * outs
        memset(dx, 0, size * sizeof(real))
        for q in range(outs):
            at = position(&call.args[1], narrow, plane * outs + q)
            if at < 0 or at >= size:
                call.detail = at
                return FE_BAD_INDEX
            dx[at] += dy[q]
    return FE_OK


cdef int max_pool2d_gather(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """Compute ddy = ddx[index], plane by plane: the adjoint of max_pool2d_grad."""
    cdef fe_view *x = &call.args[0]
    cdef fe_view *y = &call.args[2]
    cdef int64_t outs = y.shape[2] * y.shape[3], size = x.shape[2] * x.shape[3], q, at, lo, hi
    cdef bint narrow = call.args[1].dtype == FE_I32
    fe_split(y.shape[0] * y.shape[1] * outs, 16, team, &lo, &hi)
    for q in range(lo, hi):
        at = position(&call.args[1], narrow, q)
        if at < 0 or at >= size:
            call.detail = at
            return FE_BAD_INDEX
        (<real *>y.data)[q] = (<real *>x.data)[q // outs * size + at]
    return FE_OK


cdef inline void shares(const Pool *p, int64_t t, real *columns, real *frm, real *to) noexcept nogil:
    """Compute to = frm / (number of real elements), along output row t; an empty window gives 0 / 1."""
    cdef int64_t u, rows = real_elements(t, p.sh, p.top, p.kh, p.h)
    for u in range(p.ow):
        to[u] = frm[u] / max(<real>rows * columns[u], <real>1)


cdef void avg_band(const Pool *p, int64_t t1, int64_t t2, real *x, real *y, real *columns) noexcept nogil:
    """Compute rows [t1, t2) of one output plane."""
    cdef int64_t i, j, t, u, lo, hi, rlo, rhi
    cdef real s
    cdef real *line
    cdef real *out
    memset(y + t1 * p.ow, 0, (t2 - t1) * p.ow * sizeof(real))
    for i in range(p.kh):
        valid(i, p.top, p.sh, p.h, p.oh, &rlo, &rhi)
        rlo, rhi = max(rlo, t1), min(rhi, t2)
        for t in range(rlo, rhi if p.kw > p.ow else rlo):       # wide windows: one by one
            line, out = x + (t * p.sh - p.top + i) * p.w, y + t * p.ow
            for u in range(p.ow):
                s = 0
                for j in range(clamp(u * p.sw - p.left, 0, p.w), clamp(u * p.sw - p.left + p.kw, 0, p.w)):
                    s += line[j]
                out[u] += s
        for j in range(0 if p.kw > p.ow else p.kw):
            valid(j, p.left, p.sw, p.w, p.ow, &lo, &hi)
            for t in range(rlo, rhi):
                line, out = x + (t * p.sh - p.top + i) * p.w + j - p.left, y + t * p.ow
                if p.sw == 1:
                    for u in range(lo, hi):
                        out[u] += line[u]
                else:
                    for u in range(lo, hi):
                        out[u] += line[u * p.sw]
    for t in range(t1, t2):
        shares(p, t, columns, y + t * p.ow, y + t * p.ow)


cdef int avg_pool2d(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef Pool p = read_pool(call, &call.args[0], &call.args[1])
    cdef real *y = <real *>call.args[1].data
    cdef real *x
    cdef real *columns = <real *>(call.work + team.tid * share_bytes(&p))
    cdef int64_t row, t, end, lo, hi
    for t in range(p.ow):
        columns[t] = <real>real_elements(t, p.sw, p.left, p.kw, p.w)
    fe_split(p.planes * p.oh, 1, team, &lo, &hi)
    row = lo
    while row < hi:
        t = row % p.oh
        x = <real *>call.args[0].data + row // p.oh * p.h * p.w
        if p.halves:
            if real is float:
                sum_halves_f(x + 2 * t * p.w, x + (2 * t + 1) * p.w, y + row * p.ow, p.ow)
            else:
                sum_halves_d(x + 2 * t * p.w, x + (2 * t + 1) * p.w, y + row * p.ow, p.ow)
            row += 1
            continue
        end = min(min(p.oh, t + hi - row), t + band_rows(&p))
        avg_band(&p, t, end, x, y + (row - t) * p.ow, columns)
        row += end - t
    return FE_OK


cdef void spread_band(const Pool *p, int64_t t1, int64_t t2, real *dy, real *dx, real *columns,
                      real *share) noexcept nogil:
    """Add rows [t1, t2) of one plane of dy to the plane dx; each entry is divided evenly over its window."""
    cdef int64_t i, j, t, u, lo, hi, rlo, rhi
    cdef real s
    cdef real *line
    cdef real *frm
    for t in range(t1, t2):
        shares(p, t, columns, dy + t * p.ow, share + (t - t1) * p.ow)
    for i in range(p.kh):
        valid(i, p.top, p.sh, p.h, p.oh, &rlo, &rhi)
        rlo, rhi = max(rlo, t1), min(rhi, t2)
        for t in range(rlo, rhi if p.kw > p.ow else rlo):
            line = dx + (t * p.sh - p.top + i) * p.w
            for u in range(p.ow):
                s = share[(t - t1) * p.ow + u]
                for j in range(clamp(u * p.sw - p.left, 0, p.w), clamp(u * p.sw - p.left + p.kw, 0, p.w)):
                    line[j] += s
        for j in range(0 if p.kw > p.ow else p.kw):
            valid(j, p.left, p.sw, p.w, p.ow, &lo, &hi)
            for t in range(rlo, rhi):
                line, frm = dx + (t * p.sh - p.top + i) * p.w + j - p.left, share + (t - t1) * p.ow
                if p.sw == 1:
                    for u in range(lo, hi):
                        line[u] += frm[u]
                else:
                    for u in range(lo, hi):
                        line[u * p.sw] += frm[u]


cdef int avg_pool2d_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef Pool p = read_pool(call, &call.args[1], &call.args[0])
    cdef real *columns = <real *>(call.work + team.tid * share_bytes(&p))
    cdef real *dx
    cdef real *dy
    cdef int64_t plane, t, lo, hi
    for t in range(p.ow):
        columns[t] = <real>real_elements(t, p.sw, p.left, p.kw, p.w)
    fe_split(p.planes, 1, team, &lo, &hi)
    for plane in range(lo, hi):
        dy = <real *>call.args[0].data + plane * p.oh * p.ow
        dx = <real *>call.args[1].data + plane * p.h * p.w
        if not (p.halves and 2 * p.oh == p.h and 2 * p.ow == p.w):
            memset(dx, 0, p.h * p.w * sizeof(real))
            t = 0
            while t < p.oh:
                spread_band(&p, t, min(p.oh, t + band_rows(&p)), dy, dx, columns, columns + p.ow)
                t += band_rows(&p)
            continue
        for t in range(p.oh):
            if real is float:
                spread_halves_f(dy + t * p.ow, dx + 2 * t * p.w, dx + (2 * t + 1) * p.w, p.ow)
            else:
                spread_halves_d(dy + t * p.ow, dx + 2 * t * p.w, dx + (2 * t + 1) * p.w, p.ow)
    return FE_OK


cdef int64_t share_bytes(const Pool *p) noexcept nogil:
    """Return one thread's scratch for average pooling: a row of counts and a band of dy."""
    return ((1 + band_rows(p)) * p.ow * 8 + 63) // 64 * 64


cdef int64_t avg_pool2d_work(const fe_call *call, int nt) noexcept nogil:
    cdef Pool p = read_pool(call, &call.args[0], &call.args[1])
    return share_bytes(&p) * nt


cdef int64_t avg_pool2d_grad_work(const fe_call *call, int nt) noexcept nogil:
    cdef Pool p = read_pool(call, &call.args[1], &call.args[0])
    return share_bytes(&p) * nt


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}"""
    max_work = <size_t><void *>max_pool2d_work
    work, work_grad = <size_t><void *>avg_pool2d_work, <size_t><void *>avg_pool2d_grad_work
    return {
        "max_pool2d": {FE_F32: (<size_t><void *>max_pool2d[float], max_work),
                       FE_F64: (<size_t><void *>max_pool2d[double], max_work)},
        "max_pool2d_grad": {FE_F32: (<size_t><void *>max_pool2d_grad[float], 0),
                            FE_F64: (<size_t><void *>max_pool2d_grad[double], 0)},
        "max_pool2d_gather": {FE_F32: (<size_t><void *>max_pool2d_gather[float], 0),
                              FE_F64: (<size_t><void *>max_pool2d_gather[double], 0)},
        "avg_pool2d": {FE_F32: (<size_t><void *>avg_pool2d[float], work),
                       FE_F64: (<size_t><void *>avg_pool2d[double], work)},
        "avg_pool2d_grad": {FE_F32: (<size_t><void *>avg_pool2d_grad[float], work_grad),
                            FE_F64: (<size_t><void *>avg_pool2d_grad[double], work_grad)},
    }
