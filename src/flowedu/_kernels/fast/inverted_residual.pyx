# cython: language_level=3
"""inverted_residual: x and three times w, gamma, beta, mean, var -> y. The block of MobileNetV2 in inference,
on NHWC images.

    x (n, .., c) --conv--> expanded (n, h, w, e) --depthwise--> (n, oh, ow, e) --1x1--> y (n, oh, ow, o) [+ x]

ints: those of conv2d for the depthwise convolution; 1 to add x; those of conv2d for the first convolution; h,
w.
reals: epsilon, low, high, last low, high.

The expanded image is several times as large as x and y, so it is computed a few rows at a time. Each thread
keeps the rows that one band of y reads in a ring buffer that stays in the L2 cache, and computes one band
after the other.
"""
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.table cimport *
from flowedu._kernels.fast.conv_tiles cimport *
from flowedu._kernels.fast.conv_last_blocks cimport *
from flowedu._kernels.fast.conv_last_depth cimport *
from flowedu._kernels.fast.product_packed cimport *

cdef enum:
    PIXELS = 48              # pixels per band, or more: weights are read once per band
    W1 = 1                   # index of each stage's first input
    W2 = 6
    W3 = 11
    Y = 16

cdef struct Sizes:
    Conv first, depth, last  # `last` is a product whose rows are pixels
    int64_t band, high       # rows of y in a band, and expanded rows that they read
    int64_t mat, turned, terms, own, ring, row, each      # byte offsets; `own` starts the threads' parts


cdef inline Sizes sizes(const fe_call *call) noexcept nogil:
    cdef const fe_view *x = &call.args[0]
    cdef const fe_view *w = &call.args[W2]
    cdef const fe_view *y = &call.args[Y]
    cdef int64_t item = item_of(call), e = w.shape[0]
    cdef Conv k = conv_of(x, w, y, call.ints, FORWARD, True)
    cdef Sizes s
    k.c = k.o = k.groups = e                 # the expanded image differs from x and y in channels and size
    k.cg = k.og = 1
    k.h, k.w = call.ints[19], call.ints[20]
    s.first, s.depth, s.last = (conv_of(x, &call.args[W1], y, call.ints + 10, FORWARD, True), k,
                                pointwise(k.ow, e, y.shape[3]))
    s.first.o = s.first.og = e
    s.first.oh, s.first.ow = k.h, k.w
    s.band = max(up(k.oh, max(k.oh * k.ow // PIXELS, 1)), 1)
    s.high = (s.band - 1) * k.sh + k.kh
    s.mat = blocks_shared(&s.first, item)
    s.turned = s.mat + matrix_bytes(&s.last, item)
    s.terms = s.turned + round64(k.kh * k.kw * e * item)
    s.own = s.terms + 4 * round64(e * item) + 2 * round64(s.last.o * item)
    s.ring = max(depth_tables(&k), blocks_room(&s.first), pack_room(&s.last))
    s.row = s.ring + round64(s.high * k.w * e * item)
    s.each = s.row + round64(s.band * k.ow * e * item)
    return s


cdef int64_t room(const fe_call *call, int nt) noexcept nogil:
    cdef Sizes s = sizes(call)
    return s.own + nt * s.each


cdef inline void prepare(const fe_call *call, const Sizes *s, const fe_team *team, char *rooms, Finish *f,
                         real *tag) noexcept nogil:
    """Pack the weights, and fold the batch norms into scales and shifts, in the scratch shared by all
    threads."""
    cdef int i
    if call.kept:
        return
    if team.tid == 0:
        turn_weights(&s.depth, <real *>call.args[W2].data, <real *>(call.work + s.turned))
        for i in range(3):
            norm_terms(&call.args[W1 + 5 * i + 1], call.reals[0], <real *>f[i].scale, <real *>f[i].shift)
    fe_wait(team)
    pack(&s.first, team, <real *>call.args[W1].data, <real *>f[0].scale, call.work, rooms)
    pack_scaled(&s.last, team, <real *>call.args[W3].data, <real *>f[2].scale, call.work + s.mat, rooms)


cdef inline void product(Packed *p, int64_t pixels, real *x, real *y, real *plus) noexcept nogil:
    """Compute all columns of a product."""
    cdef Slabs sl = slabs_of(p.cols, sizeof(real))
    cdef int64_t i
    p.x, p.y, p.plus = <char *>x, <char *>y, <char *>plus
    for i in range(sl.count):
        slab_rows(p, sl, i, 0, pixels, x)


cdef inline void first_rows(const Conv *k, Packed *p, int64_t row, int64_t rows, real *x,
                            real *y) noexcept nogil:
    """Compute rows of the expanded images, counted over all images, into y."""
    cdef Slabs sl = slabs_of(p.cols, sizeof(real))
    cdef int64_t r, i
    if is_pointwise(k):
        product(p, rows * k.ow, x + row * k.ow * k.c, y, <real *>NULL)
        return
    p.x = <char *>x
    for r in range(rows):
        for i in range(sl.count):
            pixel_row(k, p, sl, i, row + r, y + r * k.ow * k.o)


cdef inline void depth_row(Depth *d, int64_t t, int64_t high, real *ring, real *w, real *y) noexcept nogil:
    """Compute row t of the depthwise convolution; row i of its source is in slot i % high of the ring."""
    cdef Range a = seen(d.v, t), b
    cdef int64_t u = 0, end, i, j
    cdef int64_t top = t * d.v.step + d.v.first
    cdef int n
    while u < d.h.outs:
        b = seen(d.h, u)
        end = run_end(d.h, u, b)
        n = 0
        for i in range(a.lo, a.hi):
            for j in range(b.lo, b.hi):
                d.off[n] = ((top + i * d.v.gap) % high * d.src_w + u * d.h.step + d.h.first
                            + j * d.h.gap) * d.c
                d.tap[n] = <int32_t>(i * d.kw + j)
                n += 1
        depth_run(d, n, y + u * d.c, ring, w, end - u, False)
        u = end


cdef int inverted_residual(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef Sizes s = sizes(call)
    cdef Conv *k = &s.depth
    cdef int64_t item = sizeof(real), e = round64(k.c * item)
    cdef char *mine = call.work + s.own + team.tid * s.each
    cdef real *ring = <real *>(mine + s.ring)
    cdef real *row = <real *>(mine + s.row)
    cdef real *x = <real *>call.args[0].data
    cdef real *y = <real *>call.args[Y].data
    cdef Finish[3] f
    cdef Packed first, last
    cdef Depth d
    cdef int64_t t, hi, i, n, at, until, top, image = -1, made = 0
    if fe_numel(&call.args[Y]) == 0:
        return FE_OK
    f[0] = Finish(call.work + s.terms, call.work + s.terms + e, call.reals[1], call.reals[2])
    f[1] = Finish(call.work + s.terms + 2 * e, call.work + s.terms + 3 * e, call.reals[1], call.reals[2])
    f[2] = Finish(call.work + s.terms + 4 * e, call.work + s.terms + 4 * e + round64(s.last.o * item),
                  call.reals[3], call.reals[4])
    prepare(call, &s, team, call.work + s.own, f, x)
    first = Packed(k.w, k.c, depth_of_patch(&s.first), s.first.c, k.c, NULL, call.work, NULL, f[0], NULL)
    last = Packed(k.ow, s.last.o, k.c, k.c, s.last.o, NULL, call.work + s.mat, NULL, f[2], NULL)
    d = forward_depth(k, team, mine)
    d.finish = f[1]
    fe_split(k.n * k.oh, 1, team, &t, &hi)
    while t < hi:
        if t // k.oh != image:
            image, made = t // k.oh, 0
        at = t % k.oh
        n = min(min(s.band, hi - t), k.oh - at)
        top = at * k.sh - k.top
        until = min(top + (n - 1) * k.sh + k.kh, k.h)
        made = max(made, top)
        while made < until:                      # as many rows at once as fit before the ring wraps
            i = min(until - made, s.high - made % s.high)
            first_rows(&s.first, &first, image * k.h + made, i, x, ring + made % s.high * k.w * k.c)
            made += i
        for i in range(n):
            depth_row(&d, at + i, s.high, ring, <real *>(call.work + s.turned), row + i * k.ow * k.c)
        product(&last, n * k.ow, row, y + t * k.ow * s.last.o,
                x + t * k.ow * s.last.o if call.ints[9] else <real *>NULL)
        t += n
    return FE_OK


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}"""
    return {"inverted_residual": of_reals(<void *>inverted_residual[float], <void *>inverted_residual[double],
                                          <void *>room)}
