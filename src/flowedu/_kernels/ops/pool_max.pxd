# Max pooling of some rows of a plane: the value and the position of the largest element of every window.
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.ops.pool_geometry cimport *

cdef extern from "pool_rows.h" nogil:
    enum: FE_POOL_PACK
    void max_packed_f(const float *, float *, int32_t *, const int32_t *, int64_t, int64_t, int32_t,
                      int32_t) noexcept
    void max_packed_d(const double *, double *, int32_t *, const int32_t *, int64_t, int64_t, int32_t,
                      int32_t) noexcept
    void max_halves_f(const float *, const float *, float *, int32_t *, int64_t, int32_t, int32_t) noexcept
    void max_halves_d(const double *, const double *, double *, int32_t *, int64_t, int32_t, int32_t) noexcept
    void max_row_f(const float *, int64_t, int, int, int64_t, float *, int32_t *, int64_t, int32_t, int32_t,
                   int32_t) noexcept
    void max_row_d(const double *, int64_t, int, int, int64_t, double *, int32_t *, int64_t, int32_t, int32_t,
                   int32_t) noexcept


cdef inline void max_window(const Pool *p, int64_t t, int64_t u, real *x, real *y,
                            int32_t *at) noexcept nogil:
    cdef int64_t i, j, c1 = clamp(u * p.sw - p.left, 0, p.w), c2 = clamp(u * p.sw - p.left + p.kw, 0, p.w)
    cdef real m = -INFINITY
    at[0] = 0
    for i in range(clamp(t * p.sh - p.top + p.kh, 0, p.h) - 1, clamp(t * p.sh - p.top, 0, p.h) - 1, -1):
        for j in range(c2 - 1, c1 - 1, -1):
            if x[i * p.w + j] >= m or x[i * p.w + j] != x[i * p.w + j]:
                m, at[0] = x[i * p.w + j], <int32_t>(i * p.w + j)
    y[0] = m


cdef inline void max_band(const Pool *p, int64_t t1, int64_t t2, real *x, real *y, int32_t *at,
                          real *copy) noexcept nogil:
    """Compute rows [t1, t2) of one output plane: y and the positions of the maxima, from the input plane
    x."""
    cdef int64_t t, r, u, w, first, last, a, pitch = p.w
    cdef int64_t r1 = clamp(t1 * p.sh - p.top, 0, p.h), r2 = clamp((t2 - 1) * p.sh - p.top + p.kh, r1, p.h)
    cdef real *rows = x + r1 * p.w
    if p.kw > 4 * p.ow:                      # few wide windows: one by one
        for t in range(t1, t2):
            for u in range(p.ow):
                max_window(p, t, u, x, y + t * p.ow + u, at + t * p.ow + u)
        return
    if p.left > 0 or p.ow < 16 or (p.ow - 1) * p.sw + p.kw > p.w:
        pitch, rows = copy_pitch(p), copy
        first, last = min(p.left, pitch), min(p.left + p.w, pitch)
        for r in range(r1, r2):
            for u in range(first):
                copy[u] = x[r * p.w]
            for u in range(first, last):
                copy[u] = x[r * p.w + u - p.left]
            for u in range(last, pitch):
                copy[u] = x[r * p.w + p.w - 1]
            copy += pitch
    for t in range(t1, t2):
        a = clamp(t * p.sh - p.top, 0, p.h)
        r = clamp(t * p.sh - p.top + p.kh, a, p.h) - a
        w = t * p.ow
        if real is float:
            max_row_f(rows + (a - r1) * pitch, pitch, <int>r, <int>p.kw, p.sw, y + w, at + w, p.ow,
                      <int32_t>a, <int32_t>p.left, <int32_t>p.w)
        else:
            max_row_d(rows + (a - r1) * pitch, pitch, <int>r, <int>p.kw, p.sw, y + w, at + w, p.ow,
                      <int32_t>a, <int32_t>p.left, <int32_t>p.w)


cdef inline void halve_rows(const Pool *p, int64_t t, int64_t rows, real *x, real *y, int32_t *at,
                            const int32_t *places) noexcept nogil:
    """Compute output rows from t on, for 2x2 windows: `rows` short ones, or one long one."""
    cdef int32_t first = <int32_t>(2 * t * p.w), w = <int32_t>p.w
    if real is float:
        if rows > 0:
            max_packed_f(x, y, at, places, rows, p.ow, first, w)
        else:
            max_halves_f(x, x + w, y, at, p.ow, first, w)
    else:
        if rows > 0:
            max_packed_d(x, y, at, places, rows, p.ow, first, w)
        else:
            max_halves_d(x, x + w, y, at, p.ow, first, w)
