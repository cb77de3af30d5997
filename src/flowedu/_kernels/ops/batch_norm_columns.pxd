# Batch norm where channels lie side by side (NHWC, or a matrix): every row holds one element of each channel.
#
# Threads share the rows. Each works out moments (or, backward, two sums) of its rows for all channels, they meet, each adds
# up what all have found, and goes over its rows again, which are still in its cache.
#
# Moments are taken 64 rows at a time in two passes (mean, then squares of differences) and merged with Chan's formula in
# double: as exact as two passes over everything.
from libc.math cimport sqrt
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *

cdef enum:
    COLS = 256                   # channels taken at once: 64 rows of them fit the cache
    ROWS = 64                    # additions in `real` before the sum goes into a double


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
    s.mean, s.scale, s.beta, s.slope, s.rest = at, at + real_room, at + 2 * real_room, at + 3 * real_room, at + 4 * real_room
    return s


cdef inline int64_t rows_of(int64_t rows, const fe_team *team, int tid) noexcept nogil:
    """How many rows thread `tid` has."""
    cdef fe_team other = team[0]
    cdef int64_t lo, hi
    other.tid = tid
    fe_split(rows, 4, &other, &lo, &hi)
    return hi - lo


cdef inline void merge(double *mean, double *m2, double before, const double *new_mean, const double *new_m2, double n,
                       int64_t cols) noexcept nogil:
    """Moments of `before` elements and of n more, for each column."""
    cdef int64_t k
    cdef double d, share = n / (before + n), both = before * n / (before + n)
    for k in range(cols):
        d = new_mean[k] - mean[k]
        mean[k] += d * share
        m2[k] += new_m2[k] + d * d * both


cdef inline void column_moments(const real *x, int64_t rows, int64_t step, int64_t cols, double *mean,
                                double *m2) noexcept nogil:
    """Of `cols` <= COLS channels side by side."""
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


cdef inline void normalise_row(const real *x, real *y, int64_t cols, const real *m, const real *a, const real *b, real low,
                               real high) noexcept nogil:
    cdef int64_t k
    for k in range(cols):
        y[k] = clipped((x[k] - m[k]) * a[k] + b[k], low, high)


cdef inline void columns_forward(int64_t rows, int64_t channels, const fe_team *team, const real *x, const real *gamma,
                                 const real *beta, real *mean, real *var, real *y, double eps, double low, double high,
                                 bint train, char *work) noexcept nogil:
    """y; and mean and var, if `train`."""
    cdef Shares own = shares_of(work, team.tid, channels, sizeof(real)), other
    cdef real *m = <real *>own.mean
    cdef real *a = <real *>own.scale
    cdef int64_t lo, hi, c, i, n = 0
    cdef double before = 0, v
    cdef int part
    fe_split(rows, 4, team, &lo, &hi)
    if train:
        c = 0
        while c < channels:
            column_moments(x + lo * channels + c, hi - lo, channels, min(channels - c, <int64_t>COLS), own.one + c,
                           own.two + c)
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
        m[i], a[i] = mean[i], <real>(gamma[i] / sqrt(var[i] + eps))
    for i in range(lo, hi):
        normalise_row(x + i * channels, y + i * channels, channels, m, a, beta, <real>low, <real>high)


# ---- gradient: dbeta = sum(dy), dgamma = sum(dy * xhat), dx = gamma * r * (dy - dbeta / n - xhat * dgamma / n)
cdef inline real passed(real dy, real v, real low, real high, bint clip) noexcept nogil:
    """dy where v lies inside the limits, else 0."""
    if not clip:
        return dy
    return dy if (v > low) & (v < high) else 0


cdef inline void column_sums(const real *dy, const real *x, int64_t rows, int64_t step, int64_t cols, const real *m,
                             const real *a, const real *b, real low, real high, bint clip, double *one,
                             double *two) noexcept nogil:
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


cdef inline void dx_row(const real *dy, const real *x, real *dx, int64_t cols, const real *m, const real *a, const real *b,
                        const real *slope, const real *rest, real low, real high, bint clip) noexcept nogil:
    cdef int64_t k
    for k in range(cols):
        dx[k] = a[k] * passed(dy[k], (x[k] - m[k]) * a[k] + b[k], low, high, clip) + (slope[k] * (x[k] - m[k]) + rest[k])


cdef inline void columns_backward(int64_t rows, int64_t channels, const fe_team *team, const real *dy, const real *x,
                                  const real *gamma, const real *beta, const real *mean, const real *var, real *dx,
                                  real *dgamma, real *dbeta, double eps, double low, double high, bint clip,
                                  char *work) noexcept nogil:
    cdef Shares own = shares_of(work, team.tid, channels, sizeof(real)), other
    cdef real *m = <real *>own.mean
    cdef real *a = <real *>own.scale
    cdef real *b = <real *>own.beta
    cdef real *slope = <real *>own.slope
    cdef real *rest = <real *>own.rest
    cdef int64_t lo, hi, c, i
    cdef int part
    cdef double r, one, two, n = <double>rows
    cdef real least = <real>low, most = <real>high
    fe_split(rows, 4, team, &lo, &hi)
    for i in range(channels):
        m[i], a[i] = mean[i], <real>(gamma[i] / sqrt(var[i] + eps))
        b[i] = beta[i] if clip else 0
    c = 0
    while c < channels:
        i = lo * channels + c
        if clip:
            column_sums(dy + i, x + i, hi - lo, channels, min(channels - c, <int64_t>COLS), m + c, a + c, b + c, least, most,
                        True, own.one + c, own.two + c)
        else:
            column_sums(dy + i, x + i, hi - lo, channels, min(channels - c, <int64_t>COLS), m + c, a + c, b + c, least, most,
                        False, own.one + c, own.two + c)
        c += COLS
    fe_wait(team)
    for i in range(channels):
        one = two = 0
        for part in range(team.nt):
            other = shares_of(work, part, channels, sizeof(real))
            one += other.one[i]
            two += other.two[i]
        r = 1 / sqrt(var[i] + eps)
        if team.tid == 0:
            dbeta[i], dgamma[i] = <real>one, <real>(two * r)
        slope[i], rest[i] = <real>(-gamma[i] * r * r * r * two / n), <real>(-gamma[i] * r * one / n)
    for i in range(lo, hi):
        c = i * channels
        if clip:
            dx_row(dy + c, x + c, dx + c, channels, m, a, b, slope, rest, least, most, True)
        else:
            dx_row(dy + c, x + c, dx + c, channels, m, a, b, slope, rest, least, most, False)
