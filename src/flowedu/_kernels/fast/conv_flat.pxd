# Convolution one channel at a time, for depthwise convolution and others with few channels per group.
#
# A padded plane is laid out so that every kernel position is a constant offset: consecutive rows have one
# pitch, and for stride s the plane is split into s * s phase planes (rows and columns r, r + s, r + 2s, ...).
# Then all output pixels of a plane are one long loop, acc[q] += w[tap] * x[q + off[tap]], for any stride and
# dilation. The few q between the end of one output row and the start of the next are also computed, and
# discarded.
from flowedu._kernels.fast.conv_geometry cimport *


cdef struct Flat:
    int64_t pitch, rows      # of a phase plane
    int64_t size             # elements of a phase plane, with space for one extra vector
    int64_t planes           # phase planes: sh * sw
    int64_t length           # q from the first output pixel to the last
    int64_t margin           # largest offset inside one phase plane
    int64_t taps


cdef inline Flat flat_of(const Conv *k) noexcept nogil:
    cdef Flat f
    f.pitch = k.ow + (k.kw - 1) * k.dw // k.sw
    f.rows = k.oh + (k.kh - 1) * k.dh // k.sh
    f.size = (f.rows * f.pitch + 31) // 16 * 16
    f.planes = k.sh * k.sw
    f.length = (k.oh - 1) * f.pitch + k.ow if k.oh * k.ow > 0 else 0
    f.margin = (k.kh - 1) * k.dh // k.sh * f.pitch + (k.kw - 1) * k.dw // k.sw
    f.taps = k.kh * k.kw
    return f


cdef inline int64_t flat_room(const Conv *k, int64_t item) noexcept nogil:
    """Return one thread's scratch: two tables, accumulators, an input plane, and, for the weight gradient,
    its sums."""
    cdef Flat f = flat_of(k)
    if k.role == FORWARD:
        return round64(f.taps * 8) * 2 + round64((k.og + f.planes) * f.size * item)
    if k.role == INPUT_GRAD:
        return round64(f.taps * 8) * 2 + round64((f.taps + f.margin + f.size
                                                  + k.cg * f.planes * f.size) * item)
    return round64(f.taps * 8) * 2 + round64((k.og + f.planes) * f.size
                                             * item) + round64(k.o * k.cg * f.taps * item)


cdef inline int64_t tap_plane(const Conv *k, int64_t tap) noexcept nogil:
    return (tap // k.kw * k.dh % k.sh) * k.sw + tap % k.kw * k.dw % k.sw


cdef inline int64_t tap_shift(const Conv *k, const Flat *f, int64_t tap) noexcept nogil:
    return tap // k.kw * k.dh // k.sh * f.pitch + tap % k.kw * k.dw // k.sw


cdef inline void deal(const Conv *k, const Flat *f, real *x, real *planes) noexcept nogil:
    """Split one channel of x into phase planes, with zeros as padding."""
    cdef int64_t r, s, t, u, row, first, lo, hi
    cdef real *to
    cdef real *frm
    for r in range(k.sh):
        for s in range(k.sw):
            first = s - k.left               # column of x where phase s starts
            lo = (k.left - s + k.sw - 1) // k.sw if first < 0 else 0
            hi = min((k.w - first + k.sw - 1) // k.sw if k.w > first else 0, f.pitch)
            lo = min(lo, hi)
            for t in range(f.rows):
                to = planes + (r * k.sw + s) * f.size + t * f.pitch
                row = t * k.sh + r - k.top
                if row < 0 or row >= k.h:
                    memset(to, 0, f.pitch * sizeof(real))
                    continue
                frm = x + row * k.w + first
                for u in range(lo):
                    to[u] = 0
                if k.sw == 1:
                    fe_copy(to + lo, frm + lo, (hi - lo) * sizeof(real))
                else:
                    for u in range(lo, hi):
                        to[u] = frm[u * k.sw]
                for u in range(hi, f.pitch):
                    to[u] = 0


cdef inline void collect(const Conv *k, const Flat *f, real *planes, real *x) noexcept nogil:
    """Merge phase planes into one channel of dx, the reverse of `deal`; pixels outside all windows become
    zero."""
    cdef int64_t h, s, t, u, first, lo, hi
    cdef real *frm
    cdef real *to
    for h in range(k.h):
        t = h + k.top
        if t // k.sh >= f.rows or k.sw > 1:
            memset(x + h * k.w, 0, k.w * sizeof(real))
        if t // k.sh >= f.rows:
            continue
        for s in range(k.sw):
            first = s - k.left
            lo = (k.left - s + k.sw - 1) // k.sw if first < 0 else 0
            hi = max(min((k.w - first + k.sw - 1) // k.sw if k.w > first else 0, f.pitch), lo)
            frm = planes + (t % k.sh * k.sw + s) * f.size + t // k.sh * f.pitch
            to = x + h * k.w + first
            if k.sw == 1:
                fe_copy(to + lo, frm + lo, (hi - lo) * sizeof(real))
                memset(to + hi, 0, (k.w - first - hi) * sizeof(real))
            else:
                for u in range(lo, hi):
                    to[u * k.sw] = frm[u]


cdef inline void lay(const Conv *k, const Flat *f, real *y, real *plane) noexcept nogil:
    """Copy one channel of dy to the pitch of the phase planes, with zeros between rows and after the last."""
    cdef int64_t t
    memset(plane, 0, f.size * sizeof(real))
    for t in range(k.oh):
        fe_copy(plane + t * f.pitch, y + t * k.ow, k.ow * sizeof(real))


cdef inline void add_taps(real *acc, real *x, int64_t *off, real *w, int64_t taps, int64_t n) noexcept nogil:
    if real is float:
        fe_flat_f(acc, x, off, w, taps, n)
    else:
        fe_flat_d(acc, x, off, w, taps, n)


cdef inline void flat_forward(const Conv *k, const fe_team *team, real *x, real *w, real *y,
                              char *work) noexcept nogil:
    cdef Flat f = flat_of(k)
    cdef char *own = work + team.tid * flat_room(k, sizeof(real))
    cdef int64_t *off = <int64_t *>own
    cdef real *planes = <real *>(own + 2 * round64(f.taps * 8))
    cdef real *acc = planes + f.planes * f.size
    cdef int64_t lo, hi, unit, n, c, m, o, t
    for t in range(f.taps):
        off[t] = tap_plane(k, t) * f.size + tap_shift(k, &f, t)
    memset(planes, 0, f.planes * f.size * sizeof(real))
    fe_split(k.n * k.groups, 1, team, &lo, &hi)
    for unit in range(lo, hi):
        n, o = unit // k.groups, unit % k.groups * k.og
        memset(acc, 0, k.og * f.size * sizeof(real))
        for c in range(k.cg):
            deal(k, &f, x + (n * k.c + unit % k.groups * k.cg + c) * k.h * k.w, planes)
            for m in range(k.og):
                add_taps(acc + m * f.size, planes, off, w + ((o + m) * k.cg + c) * f.taps, f.taps, f.length)
        for m in range(k.og):
            for t in range(k.oh):
                fe_copy(y + ((n * k.o + o + m) * k.oh + t) * k.ow, acc + m * f.size + t * f.pitch,
                        k.ow * sizeof(real))


cdef inline void flat_input_grad(const Conv *k, const fe_team *team, real *dy, real *w, real *dx,
                                 char *work) noexcept nogil:
    cdef Flat f = flat_of(k)
    cdef char *own = work + team.tid * flat_room(k, sizeof(real))
    cdef int64_t *off = <int64_t *>own
    cdef int64_t *order = <int64_t *>(own + round64(f.taps * 8))
    cdef real *weights = <real *>(own + 2 * round64(f.taps * 8))
    cdef real *plane = weights + f.taps
    cdef real *acc = plane + f.margin + f.size
    cdef int64_t lo, hi, unit, n, c, m, o, t, p, q = 0, first
    for p in range(f.planes):                # taps sorted by the phase plane they read
        for t in range(f.taps):
            if tap_plane(k, t) == p:
                off[q], order[q] = f.margin - tap_shift(k, &f, t), t
                q += 1
    memset(plane, 0, f.margin * sizeof(real))
    fe_split(k.n * k.groups, 1, team, &lo, &hi)
    for unit in range(lo, hi):
        n, o = unit // k.groups, unit % k.groups * k.og
        memset(acc, 0, k.cg * f.planes * f.size * sizeof(real))
        for m in range(k.og):
            lay(k, &f, dy + (n * k.o + o + m) * k.oh * k.ow, plane + f.margin)
            for c in range(k.cg):
                for t in range(f.taps):
                    weights[t] = w[((o + m) * k.cg + c) * f.taps + order[t]]
                first = 0
                while first < f.taps:        # each phase plane takes the taps that read it
                    p = tap_plane(k, order[first])
                    q = first + 1
                    while q < f.taps and tap_plane(k, order[q]) == p:
                        q += 1
                    add_taps(acc + (c * f.planes + p) * f.size, plane, off + first, weights + first,
                             q - first, f.rows * f.pitch)
                    first = q
        for c in range(k.cg):
            collect(k, &f, acc + c * f.planes * f.size, dx + (n * k.c + unit % k.groups * k.cg
                                                              + c) * k.h * k.w)


cdef inline void flat_weight_grad(const Conv *k, const fe_team *team, real *dy, real *x, real *dw,
                                  char *work) noexcept nogil:
    cdef Flat f = flat_of(k)
    cdef int64_t room = flat_room(k, sizeof(real)), entries = k.o * k.cg * f.taps
    cdef char *own = work + team.tid * room
    cdef int64_t *off = <int64_t *>own
    cdef real *planes = <real *>(own + 2 * round64(f.taps * 8))
    cdef real *grad = planes + f.planes * f.size
    cdef real *sums = <real *>(own + room - round64(entries * sizeof(real)))
    cdef real *all_sums = <real *>(work + room - round64(entries * sizeof(real)))
    cdef int64_t lo, hi, unit, n, c, m, o, t, part
    cdef real v
    for t in range(f.taps):
        off[t] = tap_plane(k, t) * f.size + tap_shift(k, &f, t)
    memset(planes, 0, f.planes * f.size * sizeof(real))
    memset(sums, 0, entries * sizeof(real))
    fe_split(k.n * k.groups, 1, team, &lo, &hi)
    for unit in range(lo, hi):
        n, o = unit // k.groups, unit % k.groups * k.og
        for m in range(k.og):
            lay(k, &f, dy + (n * k.o + o + m) * k.oh * k.ow, grad + m * f.size)
        for c in range(k.cg):
            deal(k, &f, x + (n * k.c + unit % k.groups * k.cg + c) * k.h * k.w, planes)
            for m in range(k.og):
                if real is float:
                    fe_dots_f(sums + ((o + m) * k.cg + c) * f.taps, planes, off, grad + m * f.size, f.taps,
                              f.length)
                else:
                    fe_dots_d(sums + ((o + m) * k.cg + c) * f.taps, planes, off, grad + m * f.size, f.taps,
                              f.length)
    fe_wait(team)
    fe_split(entries, 16, team, &lo, &hi)
    for t in range(lo, hi):
        v = 0
        for part in range(team.nt):
            v += (<real *>(<char *>(all_sums + t) + part * room))[0]
        dw[t] = v
