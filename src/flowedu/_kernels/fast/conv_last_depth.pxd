# Depthwise convolution of channels-last images. Every channel has its own kernel, so a vector holds adjacent
# channels, and only the weights are rearranged, to (kernel position, channel).
#
# Output rows and columns that read the same kernel positions are one run (depthwise.h). The positions of a
# run are computed once for a block of images that fits the cache.
from libc.string cimport memset
from flowedu._kernels.fast.conv_last_geometry cimport *

cdef extern from "depthwise.h" nogil:
    void fe_run_f(int, float *, int64_t, const float *, int64_t, const int64_t *, const float *,
                  const int32_t *, int64_t, int64_t, const float *, const float *, float, float) noexcept
    void fe_run_d(int, double *, int64_t, const double *, int64_t, const int64_t *, const double *,
                  const int32_t *, int64_t, int64_t, const double *, const double *, double, double) noexcept
    void fe_channel_dots_f(int, float *, const float *, int64_t, const float *, int64_t, const int64_t *,
                           const int32_t *, int64_t, int64_t) noexcept
    void fe_channel_dots_d(int, double *, const double *, int64_t, const double *, int64_t, const int64_t *,
                           const int32_t *, int64_t, int64_t) noexcept

cdef struct Range:
    int64_t lo, hi


cdef inline Range seen(Axis a, int64_t t) noexcept nogil:
    """Return the taps of output t that are inside the source."""
    cdef Range r
    cdef int64_t at = t * a.step + a.first
    r.lo = 0
    while r.lo < a.taps and at + r.lo * a.gap < 0:
        r.lo += 1
    r.hi = r.lo
    while r.hi < a.taps and at + r.hi * a.gap < a.srcs:
        r.hi += 1
    return r


cdef inline int64_t run_end(Axis a, int64_t t, Range r) noexcept nogil:
    """Return the end of the run of outputs, from t on, that use the same taps."""
    cdef Range q
    t += 1
    while t < a.outs:
        q = seen(a, t)
        if q.lo != r.lo or q.hi != r.hi:
            break
        t += 1
    return t


cdef struct Depth:           # one sweep over the images: how outputs read the source, and this thread's share
    Axis v, h
    int64_t c, kw, src_h, src_w, dst_h, dst_w
    Range images, rows
    int64_t *off
    int32_t *tap
    Finish finish


cdef inline int64_t depth_tables(const Conv *k) noexcept nogil:
    return round64(k.kh * k.kw * 12)


cdef inline int64_t depth_room(const Conv *k, int64_t item) noexcept nogil:
    """Return one thread's scratch: tables, and weights or their gradients as (kernel position, channel)."""
    return depth_tables(k) + round64(k.kh * k.kw * k.c * item)


cdef inline Depth depth_of(const Conv *k, Axis v, Axis h, const fe_team *team, char *own) noexcept nogil:
    cdef Depth d
    d.v, d.h, d.c, d.kw = v, h, k.c, k.kw
    d.src_h, d.src_w, d.dst_h, d.dst_w = k.h, k.w, k.oh, k.ow
    if k.role == INPUT_GRAD:
        d.src_h, d.src_w, d.dst_h, d.dst_w = k.oh, k.ow, k.h, k.w
    d.off, d.tap = <int64_t *>own, <int32_t *>(own + k.kh * k.kw * 8)
    d.finish = Finish(NULL, NULL, 0, 0)
    d.images.lo, d.rows.lo, d.images.hi, d.rows.hi = 0, 0, k.n, v.outs
    if k.n >= team.nt:
        fe_split(k.n, 1, team, &d.images.lo, &d.images.hi)
    else:
        fe_split(v.outs, 1, team, &d.rows.lo, &d.rows.hi)
    return d


cdef inline Depth forward_depth(const Conv *k, const fe_team *team, char *own) noexcept nogil:
    return depth_of(k, forward_axis(k.h, k.oh, k.kh, k.sh, k.top, k.dh),
                    forward_axis(k.w, k.ow, k.kw, k.sw, k.left, k.dw), team, own)


cdef inline int fill_taps(const Depth *d, Range a, Range b) noexcept nogil:
    cdef int64_t i, j
    cdef int n = 0
    for i in range(a.lo, a.hi):
        for j in range(b.lo, b.hi):
            d.off[n] = ((i - a.lo) * d.v.gap * d.src_w + (j - b.lo) * d.h.gap) * d.c
            d.tap[n] = <int32_t>((d.v.tap0 + i * d.v.tap_step) * d.kw + d.h.tap0 + j * d.h.tap_step)
            n += 1
    return n


cdef inline void depth_sweep(const Depth *d, real *src, real *w, real *dst, bint dots) noexcept nogil:
    """Process this thread's rows. dots: accumulate the gradient in `w`; `dst` is dy."""
    cdef int64_t block = max(<int64_t>(262144 // max(d.src_h * d.src_w * d.c * <int64_t>sizeof(real), 1)), 1)
    cdef int64_t first, last, n, t, u, end, s, p
    cdef Axis v = d.v, h = d.h
    cdef Range a, b
    cdef int taps
    first = d.images.lo
    while first < d.images.hi:
        last = min(first + block, d.images.hi)
        for t in range(d.rows.lo, d.rows.hi):
            a = seen(v, t)
            u = 0
            while u < h.outs:
                b = seen(h, u)
                end = run_end(h, u, b)
                taps = fill_taps(d, a, b)
                s = ((t * v.step + v.first + a.lo * v.gap) * d.src_w + u * h.step + h.first
                     + b.lo * h.gap) * d.c
                p = ((v.dst0 + t * v.dst_step) * d.dst_w + h.dst0 + u * h.dst_step) * d.c
                for n in range(first, last):
                    depth_run(d, taps, dst + n * d.dst_h * d.dst_w * d.c + p,
                              src + (n * d.src_h * d.src_w * d.c + s if taps else 0), w, end - u, dots)
                u = end
        first = last


cdef inline void depth_run(const Depth *d, int taps, real *y, real *x, real *w, int64_t pixels,
                           bint dots) noexcept nogil:
    cdef int64_t ystep = d.h.dst_step * d.c, xstep = d.h.step * d.c
    cdef const Finish *f = &d.finish
    if dots:
        if real is float:
            fe_channel_dots_f(taps, w, y, ystep, x, xstep, d.off, d.tap, pixels, d.c)
        else:
            fe_channel_dots_d(taps, w, y, ystep, x, xstep, d.off, d.tap, pixels, d.c)
    else:
        if real is float:
            fe_run_f(taps, y, ystep, x, xstep, d.off, w, d.tap, pixels, d.c, <float *>f.scale,
                     <float *>f.shift, <float>f.low, <float>f.high)
        else:
            fe_run_d(taps, y, ystep, x, xstep, d.off, w, d.tap, pixels, d.c, <double *>f.scale,
                     <double *>f.shift, f.low, f.high)


cdef inline void turn_weights(const Conv *k, real *w, real *to) noexcept nogil:
    """Transpose (channel, position) to (position, channel)."""
    cdef int64_t i, t, taps = k.kh * k.kw
    for t in range(taps):
        for i in range(k.c):
            to[t * k.c + i] = w[i * taps + t]


cdef inline void depth_forward(const Conv *k, const fe_team *team, real *x, real *w, real *y, Finish f,
                               bint packed, char *work) noexcept nogil:
    """Compute y. packed: an earlier call has already put the rearranged weights into `work`."""
    cdef char *own = work + team.tid * depth_room(k, sizeof(real))
    cdef real *turned = <real *>(own + depth_tables(k))
    cdef Depth d = forward_depth(k, team, own)
    d.finish = f
    if not packed:
        turn_weights(k, w, turned)
    depth_sweep(&d, x, turned, y, False)


cdef inline void depth_sweeps_back(const Conv *k, const fe_team *team, real *dy, real *turned, real *dx,
                                   char *own) noexcept nogil:
    """Compute dx in one sweep per pair of remainders: input rows with equal remainder by the stride use the
    same kernel rows."""
    cdef int64_t r, s
    cdef Depth d
    for r in range(k.sh):
        for s in range(k.sw):
            d = depth_of(k, gradient_axis(k.h, k.oh, k.kh, k.sh, k.top, k.dh, r),
                         gradient_axis(k.w, k.ow, k.kw, k.sw, k.left, k.dw, s), team, own)
            depth_sweep(&d, dy, turned, dx, False)


cdef inline void depth_input_grad(const Conv *k, const fe_team *team, real *dy, real *w, real *dx,
                                  char *work) noexcept nogil:
    cdef char *own = work + team.tid * depth_room(k, sizeof(real))
    cdef real *turned = <real *>(own + depth_tables(k))
    turn_weights(k, w, turned)
    depth_sweeps_back(k, team, dy, turned, dx, own)


cdef inline void depth_weight_grad(const Conv *k, const fe_team *team, real *dy, real *x, real *dw,
                                   char *work) noexcept nogil:
    cdef int64_t room = depth_room(k, sizeof(real)), taps = k.kh * k.kw, lo, hi, i, t, part
    cdef char *own = work + team.tid * room
    cdef real *sums = <real *>(own + depth_tables(k))
    cdef real *others
    cdef Depth d = forward_depth(k, team, own)
    cdef real total
    memset(sums, 0, taps * k.c * sizeof(real))
    depth_sweep(&d, x, sums, dy, True)
    fe_wait(team)
    fe_split(k.c, 16, team, &lo, &hi)
    for i in range(lo, hi):
        for t in range(taps):
            total = 0
            for part in range(team.nt):
                others = <real *>(work + part * room + depth_tables(k))
                total += others[t * k.c + i]
            dw[i * taps + t] = total
