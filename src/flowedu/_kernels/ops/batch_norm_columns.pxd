# Batch norm of channels-last data (NHWC, or a matrix): every row holds one element of each channel.
#
# Threads share the rows. Each computes the moments (or, backward, two sums) of its rows for all channels.
# After a barrier each combines the results of all threads and traverses its rows again, which are still in
# its cache.
#
# Moments are computed for 64 rows at a time in two passes (mean, then squares of differences) and merged with
# Chan's formula in double: as exact as two passes over everything.
from libc.math cimport sqrt
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.ops.moments cimport *

cdef enum:
    COLS = 256                   # channels at once: 64 rows of them fit the cache
    ROWS = 64                    # additions in `real` before the sum goes into a double


cdef struct Norm:                # one call, x seen as (outer, channels, inner)
    int64_t outer, channels, inner
    char *dy
    char *x
    char *gamma
    char *beta                   # backward without clipping does not read it
    char *mean
    char *var
    char *y                      # or dx
    char *dgamma
    char *dbeta
    double eps, low, high        # y is kept inside [low, high]


cdef struct Shares:              # scratch of one thread: two doubles and five numbers for each channel
    double *one
    double *two
    char *mean
    char *scale
    char *beta
    char *slope
    char *rest


cdef inline int64_t columns_room(int64_t channels, int64_t item) noexcept nogil:
    return 2 * rounded(channels * 8) + 5 * rounded(channels * item)


cdef inline int64_t rounded(int64_t bytes) noexcept nogil:
    return (bytes + 63) // 64 * 64


cdef inline Shares shares_of(char *work, int tid, int64_t channels, int64_t item) noexcept nogil:
    cdef Shares s
    cdef char *at = work + tid * columns_room(channels, item)
    cdef int64_t real_room = rounded(channels * item)
    s.one, s.two = <double *>at, <double *>(at + rounded(channels * 8))
    at += 2 * rounded(channels * 8)
    s.mean, s.scale, s.beta, s.slope, s.rest = (at, at + real_room, at + 2 * real_room, at + 3 * real_room,
                                                at + 4 * real_room)
    return s


cdef inline int64_t rows_of(int64_t rows, const fe_team *team, int tid) noexcept nogil:
    """Return the number of rows of thread `tid`."""
    cdef fe_team other = team[0]
    cdef int64_t lo, hi
    other.tid = tid
    fe_split(rows, 4, &other, &lo, &hi)
    return hi - lo


cdef inline void column_moments(const real *x, int64_t rows, int64_t step, int64_t cols, double *mean,
                                double *m2) noexcept nogil:
    """Compute the moments of `cols` <= COLS adjacent channels."""
    cdef real s[COLS]
    cdef real m[COLS]
    cdef double block_mean[COLS]
    cdef double block_m2[COLS]
    cdef const real *a
    cdef const real *b
    cdef int64_t i = 0, j, k, n
    cdef real share
    for k in range(cols):
        mean[k] = m2[k] = 0
    while i < rows:
        n = min(rows - i, <int64_t>ROWS)
        share = <real>(1.0 / n)
        for k in range(cols):
            s[k] = 0
        j = i
        while j + 1 < i + n:
            a, b = x + j * step, x + (j + 1) * step
            for k in range(cols):
                s[k] += a[k] + b[k]
            j += 2
        if j < i + n:
            a = x + j * step
            for k in range(cols):
                s[k] += a[k]
        for k in range(cols):
            m[k] = s[k] * share
            s[k] = 0
        j = i
        while j + 1 < i + n:
            a, b = x + j * step, x + (j + 1) * step
            for k in range(cols):
                s[k] += (a[k] - m[k]) * (a[k] - m[k]) + (b[k] - m[k]) * (b[k] - m[k])
            j += 2
        if j < i + n:
            a = x + j * step
            for k in range(cols):
                s[k] += (a[k] - m[k]) * (a[k] - m[k])
        for k in range(cols):
            block_mean[k], block_m2[k] = m[k], s[k]
        merge(mean, m2, i, block_mean, block_m2, n, cols)
        i += n


cdef inline real clipped(real v, real low, real high) noexcept nogil:
    v = low if v < low else v                      # NaN stays
    return high if v > high else v


cdef inline void normalise_row(const real *x, real *y, int64_t cols, const real *m, const real *a,
                               const real *b, real low, real high) noexcept nogil:
    cdef int64_t k
    for k in range(cols):
        y[k] = clipped((x[k] - m[k]) * a[k] + b[k], low, high)


cdef inline void columns_forward(const Norm *k, const fe_team *team, real *tag, bint train,
                                 char *work) noexcept nogil:
    """Compute y, and if `train`, mean and var."""
    cdef const real *x = <const real *>k.x
    cdef const real *gamma = <const real *>k.gamma
    cdef const real *beta = <const real *>k.beta
    cdef real *mean = <real *>k.mean
    cdef real *var = <real *>k.var
    cdef real *y = <real *>k.y
    cdef int64_t rows = k.outer, channels = k.channels, lo, hi, c, i, n = 0
    cdef Shares own = shares_of(work, team.tid, channels, sizeof(real)), other
    cdef real *m = <real *>own.mean
    cdef real *a = <real *>own.scale
    cdef double before = 0
    cdef int part
    fe_split(rows, 4, team, &lo, &hi)
    if train:
        c = 0
        while c < channels:
            column_moments(x + lo * channels + c, hi - lo, channels, min(channels - c, <int64_t>COLS),
                           own.one + c, own.two + c)
            c += COLS
        fe_wait(team)
        if team.tid == 0:
            for part in range(1, team.nt):
                other = shares_of(work, part, channels, sizeof(real))
                before += rows_of(rows, team, part - 1)
                n = rows_of(rows, team, part)
                if n > 0:
                    merge(own.one, own.two, before, other.one, other.two, n, channels)
            for i in range(channels):
                mean[i], var[i] = <real>own.one[i], <real>(own.two[i] / max(rows, 1))
        fe_wait(team)
    for i in range(channels):
        m[i], a[i] = mean[i], <real>(gamma[i] / sqrt(var[i] + k.eps))
    for i in range(lo, hi):
        normalise_row(x + i * channels, y + i * channels, channels, m, a, beta, <real>k.low, <real>k.high)


# ---- gradient
# dbeta = sum(dy), dgamma = sum(dy * xhat), dx = gamma * r * (dy - dbeta / n - xhat * dgamma / n)
cdef inline real passed(real dy, real v, real low, real high, bint clip) noexcept nogil:
    """Return dy if v is inside the limits, else 0."""
    if not clip:
        return dy
    return dy if (v > low) & (v < high) else 0


cdef inline void column_sums(const Norm *n, const Shares *to, real *tag, int64_t first, int64_t rows,
                             int64_t c, bint clip) noexcept nogil:
    """Sum the gradient, and its product with x - mean, over `rows` rows from `first` on, for the COLS
    channels from c on."""
    cdef const real *dy = <const real *>n.dy + first * n.channels + c
    cdef const real *x = <const real *>n.x + first * n.channels + c
    cdef const real *m = <const real *>to.mean + c
    cdef const real *a = <const real *>to.scale + c
    cdef const real *b = <const real *>to.beta + c
    cdef double *one = to.one + c
    cdef double *two = to.two + c
    cdef real low = <real>n.low, high = <real>n.high
    cdef int64_t step = n.channels, cols = min(n.channels - c, <int64_t>COLS)
    cdef real s[COLS]
    cdef real d[COLS]
    cdef real g, h
    cdef const real *p
    cdef const real *q
    cdef int64_t i = 0, k, end
    for k in range(cols):
        one[k] = two[k] = 0
    while i < rows:
        end = min(rows, i + ROWS)
        for k in range(cols):
            s[k] = d[k] = 0
        while i < end:
            p, q = dy + i * step, x + i * step
            if i + 1 < end:
                for k in range(cols):
                    g = passed(p[k], (q[k] - m[k]) * a[k] + b[k], low, high, clip)
                    h = passed(p[step + k], (q[step + k] - m[k]) * a[k] + b[k], low, high, clip)
                    s[k] += g + h
                    d[k] += g * (q[k] - m[k]) + h * (q[step + k] - m[k])
            else:
                for k in range(cols):
                    g = passed(p[k], (q[k] - m[k]) * a[k] + b[k], low, high, clip)
                    s[k] += g
                    d[k] += g * (q[k] - m[k])
            i += 2
        i = end
        for k in range(cols):
            one[k] += s[k]
            two[k] += d[k]


cdef inline void dx_row(const Norm *n, const Shares *own, real *tag, int64_t at, bint clip) noexcept nogil:
    """Compute dx for the row that starts at element `at`."""
    cdef const real *dy = <const real *>n.dy + at
    cdef const real *x = <const real *>n.x + at
    cdef real *dx = <real *>n.y + at
    cdef const real *m = <const real *>own.mean
    cdef const real *a = <const real *>own.scale
    cdef const real *b = <const real *>own.beta
    cdef const real *slope = <const real *>own.slope
    cdef const real *rest = <const real *>own.rest
    cdef real low = <real>n.low, high = <real>n.high
    cdef int64_t k
    for k in range(n.channels):
        dx[k] = a[k] * passed(dy[k], (x[k] - m[k]) * a[k] + b[k], low, high,
                              clip) + (slope[k] * (x[k] - m[k]) + rest[k])


cdef inline void columns_backward(const Norm *k, const fe_team *team, real *tag, bint clip,
                                  char *work) noexcept nogil:
    cdef const real *gamma = <const real *>k.gamma
    cdef const real *mean = <const real *>k.mean
    cdef const real *var = <const real *>k.var
    cdef int64_t rows = k.outer, channels = k.channels, lo, hi, c, i
    cdef Shares own = shares_of(work, team.tid, channels, sizeof(real)), other
    cdef real *m = <real *>own.mean
    cdef real *a = <real *>own.scale
    cdef real *b = <real *>own.beta
    cdef real *slope = <real *>own.slope
    cdef real *rest = <real *>own.rest
    cdef int part
    cdef double r, one, two, n = <double>rows
    fe_split(rows, 4, team, &lo, &hi)
    for i in range(channels):
        m[i], a[i] = mean[i], <real>(gamma[i] / sqrt(var[i] + k.eps))
        b[i] = (<const real *>k.beta)[i] if clip else 0
    c = 0
    while c < channels:
        if clip:
            column_sums(k, &own, tag, lo, hi - lo, c, True)
        else:
            column_sums(k, &own, tag, lo, hi - lo, c, False)
        c += COLS
    fe_wait(team)
    for i in range(channels):
        one = two = 0
        for part in range(team.nt):
            other = shares_of(work, part, channels, sizeof(real))
            one += other.one[i]
            two += other.two[i]
        r = 1 / sqrt(var[i] + k.eps)
        if team.tid == 0:
            (<real *>k.dbeta)[i], (<real *>k.dgamma)[i] = <real>one, <real>(two * r)
        slope[i], rest[i] = <real>(-gamma[i] * r * r * r * two / n), <real>(-gamma[i] * r * one / n)
    for i in range(lo, hi):
        if clip:
            dx_row(k, &own, tag, i * channels, True)
        else:
            dx_row(k, &own, tag, i * channels, False)
