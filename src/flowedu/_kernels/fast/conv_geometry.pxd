# Geometry of a convolution call, shared by all routines: sizes, the source indices that an output axis reads,
# and the blocks of output rows that a thread processes.
from libc.stdint cimport int64_t
from libc.string cimport memset
from flowedu._kernels.core.abi cimport *

cdef extern from "conv_tile.h" nogil:
    enum: FE_NV, FE_ROWS, FE_VBYTES, fe_lanes_f, fe_lanes_d
    int fe_tile_rows(int nv) noexcept
    void fe_copy(void *, const void *, int64_t) noexcept
    ctypedef struct fe_mat:
        const void *at
        const char *soon
        int64_t pace
    void fe_tile_f(int, float *const *, int, const int64_t *, int64_t, const fe_mat *, float *, int) noexcept
    void fe_tile_d(int, double *const *, int, const int64_t *, int64_t, const fe_mat *, double *,
                   int) noexcept
    void fe_transpose_f(const float *, int64_t, int64_t, int64_t, float *, int64_t, int) noexcept
    void fe_transpose_d(const double *, int64_t, int64_t, int64_t, double *, int64_t, int) noexcept
    void fe_flat_f(float *, const float *, const int64_t *, const float *, int64_t, int64_t) noexcept
    void fe_flat_d(double *, const double *, const int64_t *, const double *, int64_t, int64_t) noexcept
    void fe_dots_f(float *, const float *, const int64_t *, const float *, int64_t, int64_t) noexcept
    void fe_dots_d(double *, const double *, const int64_t *, const double *, int64_t, int64_t) noexcept

cdef enum Role:              # which of x, w and y (or their gradients) is computed from the other two
    FORWARD, INPUT_GRAD, WEIGHT_GRAD

cdef struct Conv:            # sizes of one call; cg, og: channels per group
    Role role
    int64_t n, c, h, w, o, oh, ow, kh, kw, sh, sw, top, left, dh, dw, groups, cg, og


cdef inline Conv conv_of(const fe_view *x, const fe_view *w, const fe_view *y, const int64_t *a, Role role,
                         bint last) noexcept nogil:
    """Read the attributes `a`: stride h, w; pad top, bottom, left, right; dilation h, w; groups. The shapes
    give the rest."""
    cdef int h = 1 if last else 2
    cdef Conv k
    k.role, k.n, k.c, k.o = role, x.shape[0], x.shape[3 if last else 1], y.shape[3 if last else 1]
    k.h, k.w, k.oh, k.ow = x.shape[h], x.shape[h + 1], y.shape[h], y.shape[h + 1]
    k.kh, k.kw = w.shape[2], w.shape[3]
    k.sh, k.sw, k.top, k.left, k.dh, k.dw, k.groups = a[0], a[1], a[2], a[4], a[6], a[7], a[8]
    k.cg, k.og = k.c // k.groups, k.o // k.groups
    return k


cdef inline Conv read_conv(const fe_call *call, Role role, bint last) noexcept nogil:
    """Read the sizes of a convolution call, whose result is the first output. last: images are
    channels-last."""
    return conv_of(&call.args[0 if role == FORWARD else call.nin if role == INPUT_GRAD else 1],
                   &call.args[call.nin if role == WEIGHT_GRAD else 1],
                   &call.args[call.nin if role == FORWARD else 0], call.ints, role, last)


cdef inline bint is_pointwise(const Conv *k) noexcept nogil:
    """Return True if every output pixel reads only the input pixel at the same position."""
    return k.kh == 1 and k.kw == 1 and k.sh == 1 and k.sw == 1 and k.groups == 1 \
        and k.top == 0 and k.left == 0 and k.h == k.oh and k.w == k.ow


cdef inline int64_t item_of(const fe_call *call) noexcept nogil:
    return 8 if call.args[0].dtype == FE_F64 else 4


cdef struct Axis:            # one spatial axis of "output reads source"
    int64_t outs, srcs       # sizes
    int64_t step, first, gap, taps   # output t at tap a reads source t * step + first + a * gap (if inside)
    int64_t tap0, tap_step   # tap a is kernel position tap0 + a * tap_step
    int64_t dst0, dst_step   # output t is stored at dst0 + t * dst_step


cdef inline Axis forward_axis(int64_t size, int64_t out, int64_t kernel, int64_t stride, int64_t pad,
                              int64_t dilation) noexcept nogil:
    return Axis(out, size, stride, -pad, dilation, kernel, 0, 1, 0, 1)


cdef inline Axis gradient_axis(int64_t size, int64_t out, int64_t kernel, int64_t stride, int64_t pad,
                               int64_t dilation, int64_t phase) noexcept nogil:
    """Describe how dx reads dy. Position h takes dy[(h + pad - i * dilation) / stride] where that division is
    exact. Positions with the same h % stride (a phase) use the same kernel positions i, so each phase is a
    convolution of dy with step 1."""
    cdef Axis a
    cdef int64_t i
    a.outs, a.srcs = (size - phase + stride - 1) // stride if size > phase else 0, out
    a.step, a.first, a.gap, a.taps, a.tap0, a.tap_step = 1, 0, 1, 0, 0, 0
    a.dst0, a.dst_step = phase, stride
    for i in range(kernel - 1, -1, -1):      # descending kernel positions give ascending source positions
        if (phase + pad - i * dilation) % stride == 0:
            if a.taps == 0:
                a.tap0, a.first = i, (phase + pad - i * dilation) // stride
            elif a.taps == 1:
                a.tap_step = i - a.tap0
                a.gap = (phase + pad - i * dilation) // stride - a.first
            a.taps += 1
    return a


cdef struct Gather:          # how a grid of outputs reads the images of a source, block by block
    Axis v, h                # vertical, horizontal
    bint direct              # no tap is outside the source: read the source in place
    int64_t channels         # of the source, per group
    int64_t images, rows     # a block: this many images, or this many output rows of one image
    int64_t pitch, plane, image   # strides of the source copy (or of the source): row, channel, image
    int64_t steps            # taps * channels


cdef inline int64_t reach(Axis a, int64_t outs) noexcept nogil:
    """Return the number of source positions spanned by `outs` outputs."""
    return (outs - 1) * a.step + (a.taps - 1) * a.gap + 1 if outs > 0 and a.taps > 0 else 0


cdef inline bint inside(Axis a) noexcept nogil:
    return a.taps == 0 or a.outs == 0 or (a.first >= 0 and a.first + reach(a, a.outs) <= a.srcs)


cdef inline Gather plan_gather(Axis v, Axis h, int64_t channels, int64_t source_channels) noexcept nogil:
    """Choose blocks of 256 to 1024 output pixels: enough to reuse a block of weights, few enough to stay in
    cache."""
    cdef Gather g
    cdef int64_t pixels = max(v.outs * h.outs, 1), blocks
    g.v, g.h, g.channels = v, h, channels
    g.steps = v.taps * h.taps * channels
    g.images, g.rows = 1, v.outs
    g.direct = inside(v) and inside(h)
    if g.direct:
        g.pitch, g.plane = h.srcs, v.srcs * h.srcs
        g.image = source_channels * g.plane
    if pixels < 256:
        g.images = max(256 // pixels, 1)
        if not g.direct:
            g.images = max(min(g.images, 65536 // max(channels * reach(v, v.outs) * reach(h, h.outs), 1)), 1)
    elif pixels > 1024:
        blocks = (v.outs + max(1024 // h.outs, 1) - 1) // max(1024 // h.outs, 1)
        g.rows = (v.outs + blocks - 1) // blocks
    if not g.direct:
        g.pitch = reach(h, h.outs)
        g.plane = reach(v, g.rows) * g.pitch
        if g.plane % 128 == 0:
            g.plane += 16                    # channels a multiple of 4 KB apart would share one cache set
        g.image = channels * g.plane
    return g


cdef struct Block:           # output rows [row, end) of image n, or all rows of `images` images from n on
    int64_t n, images, row, end


cdef inline Block next_block(const Gather *g, int64_t at, int64_t hi) noexcept nogil:
    """Return the block that starts at output row `at` (counted over all images) and ends at `hi` or
    before."""
    cdef Block b
    b.n, b.row, b.images = at // g.v.outs, at % g.v.outs, 1
    b.end = min(min(b.row + g.rows, g.v.outs), b.row + hi - at)
    if b.row == 0 and g.images > 1 and hi - at >= g.v.outs:
        b.images = min(g.images, (hi - at) // g.v.outs)
    return b


cdef inline int64_t block_pixels(const Gather *g) noexcept nogil:
    return g.images * g.rows * g.h.outs


cdef inline real *window(const Gather *g, Block b, real *src, int64_t source_channels, int64_t channel,
                         int64_t count, real *copy) noexcept nogil:
    """Return a pointer to block b's first tap: in the source itself, or in a copy padded with zeros."""
    cdef int64_t im, ch, r, s, i, n, left, start, rows = reach(g.v, b.end - b.row)
    cdef int64_t top = b.row * g.v.step + g.v.first
    cdef real *line
    cdef real *to
    if g.direct:
        return src + (b.n * source_channels + channel) * g.plane + top * g.pitch + g.h.first
    left = min(max(-g.h.first, 0), g.pitch)
    start = max(g.h.first, 0)
    n = max(min(g.h.srcs - start, g.pitch - left), 0)
    for im in range(b.images):
        for ch in range(count):
            to = copy + im * g.image + ch * g.plane
            line = src + ((b.n + im) * source_channels + channel + ch) * g.v.srcs * g.h.srcs + start
            for r in range(rows):
                s = top + r
                if s < 0 or s >= g.v.srcs:
                    memset(to, 0, g.pitch * sizeof(real))
                else:
                    for i in range(left):
                        to[i] = 0
                    fe_copy(to + left, line + s * g.h.srcs, n * sizeof(real))
                    for i in range(left + n, g.pitch):
                        to[i] = 0
                to += g.pitch
    return copy


cdef inline int64_t round64(int64_t bytes) noexcept nogil:
    return (bytes + 63) // 64 * 64
