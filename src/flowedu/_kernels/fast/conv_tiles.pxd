# Dense convolution and its input gradient by register tiles: rows are output pixels, the matrix is the
# weights (see conv_tile.h for the formula that all three kernels share).
from libc.string cimport memcpy
from flowedu._kernels.fast.conv_geometry cimport *


cdef inline int64_t lanes(int64_t item) noexcept nogil:
    return FE_VBYTES // item


cdef struct Slabs:           # output channels, split into groups of at most FE_NV vectors
    int64_t lanes, vectors, count


cdef inline Slabs slabs_of(int64_t channels, int64_t item) noexcept nogil:
    cdef Slabs s
    s.lanes = lanes(item)
    s.vectors = (channels + s.lanes - 1) // s.lanes
    s.count = (s.vectors + FE_NV - 1) // FE_NV
    return s


cdef inline int64_t slab_start(Slabs s, int64_t i) noexcept nogil:
    """Return the first vector of slab i; slab sizes differ by at most one vector."""
    return s.vectors // s.count * i + min(i, s.vectors % s.count)


cdef inline void tile(int nv, real **base, int rows, int64_t *off, int64_t steps, fe_mat mat, real *out,
                      bint accumulate) noexcept nogil:
    if real is float:
        fe_tile_f(nv, base, rows, off, steps, &mat, out, accumulate)
    else:
        fe_tile_d(nv, base, rows, off, steps, &mat, out, accumulate)


cdef inline fe_mat before(real *mat, int64_t steps, real *then, int64_t elements, int64_t use,
                          int64_t uses) noexcept nogil:
    """Describe a matrix of `steps` rows that, in use `use` of `uses`, prefetches an equal share of the array
    `then`."""
    cdef int64_t share = elements * <int64_t>sizeof(real) // uses
    return fe_mat(mat, <const char *>then + share * use, share // max(steps, 1))


cdef inline void transpose(real *src, int64_t lds, int64_t rows, int64_t cols, real *dst, int64_t ldd,
                           bint wide_dst) noexcept nogil:
    if real is float:
        fe_transpose_f(src, lds, rows, cols, dst, ldd, wide_dst)
    else:
        fe_transpose_d(src, lds, rows, cols, dst, ldd, wide_dst)


cdef inline int64_t up(int64_t a, int64_t b) noexcept nogil:
    """Return a / b rounded up (b > 0); a may be negative."""
    return -((-a) // b) if a < 0 else (a + b - 1) // b


cdef inline int64_t down(int64_t a, int64_t b) noexcept nogil:
    return -((-a + b - 1) // b) if a < 0 else a // b


cdef inline int64_t phases(const Conv *k) noexcept nogil:
    return k.sh * k.sw if k.role == INPUT_GRAD else 1


cdef inline Gather phase(const Conv *k, int64_t p) noexcept nogil:
    if k.role != INPUT_GRAD:
        return plan_gather(forward_axis(k.h, k.oh, k.kh, k.sh, k.top, k.dh),
                           forward_axis(k.w, k.ow, k.kw, k.sw, k.left, k.dw), k.cg, k.c)
    return plan_gather(gradient_axis(k.h, k.oh, k.kh, k.sh, k.top, k.dh, p // k.sw),
                       gradient_axis(k.w, k.ow, k.kw, k.sw, k.left, k.dw, p % k.sw), k.og, k.o)


cdef struct Room:            # scratch of one thread, in bytes
    int64_t base, off, window, out, total


cdef inline int64_t matrix_elements(const Conv *k, int64_t item) noexcept nogil:
    """Return the size of all phases' matrices. Every kernel position belongs to one phase, so they hold the
    weights once."""
    cdef Slabs s = slabs_of(k.og if k.role == FORWARD else k.cg, item)
    return k.groups * (k.cg if k.role == FORWARD else k.og) * k.kh * k.kw * s.vectors * s.lanes


cdef inline int64_t matrix_bytes(const Conv *k, int64_t item) noexcept nogil:
    return round64(matrix_elements(k, item) * item)


cdef inline int64_t channels_at_once(const Conv *k) noexcept nogil:
    """Return how many channels `pack_weights` transposes at once; in the forward direction their weights are
    contiguous."""
    return max(64 // max(k.kh * k.kw, 1), 1) if k.role == FORWARD else 1


cdef inline Room correlate_room(const Conv *k, int64_t item) noexcept nogil:
    cdef Room r = Room(0, 0, 0, 0, 0)
    cdef Gather g
    cdef int64_t p
    for p in range(phases(k)):
        g = phase(k, p)
        r.base = max(r.base, round64((block_pixels(&g) + FE_ROWS) * 8))
        r.off = max(r.off, round64(g.steps * 8))
        r.window = max(r.window, 0 if g.direct else round64(g.images * g.image * item))
        r.out = max(r.out, round64(block_pixels(&g) * FE_NV * lanes(item) * item))
    r.out = max(r.out, round64(channels_at_once(k) * k.kh * k.kw * lanes(item) * item))      # transposed
    r.total = r.base + r.off + r.window + r.out
    return r


cdef inline void pack_weights(const Conv *k, const Gather *g, const fe_team *team, real *w, real *mat,
                              real *turned) noexcept nogil:
    """Pack into mat[group][slab][tap row, channel, tap column][output channel], with zeros in unused lanes of
    the last slab."""
    cdef int64_t outs = k.og if k.role == FORWARD else k.cg
    cdef int64_t wide = lanes(sizeof(real)), at_once = channels_at_once(k)
    cdef int64_t area = k.kh * k.kw, group, s, v, c, lo, hi, ch, n, m, m0, ld, a, b
    cdef int64_t out_step = k.cg * area if k.role == FORWARD else area
    cdef int64_t ch_step = area if k.role == FORWARD else k.cg * area
    cdef Slabs sl = slabs_of(outs, sizeof(real))
    cdef real *dst
    fe_split(g.channels, at_once, team, &lo, &hi)
    for group in range(k.groups):
        for s in range(sl.count):
            m0 = slab_start(sl, s) * wide
            ld = slab_start(sl, s + 1) * wide - m0
            ch = lo
            while ch < hi:
                n = min(at_once, hi - ch)
                for v in range(ld // wide):
                    m = m0 + v * wide
                    dst = mat + (group * sl.vectors * wide + m0) * g.steps + v * wide
                    transpose(w + group * k.og * k.cg * area + m * out_step + ch * ch_step, out_step,
                              min(outs - m, wide), n * area, turned, wide, True)
                    for c in range(n):
                        for a in range(g.v.taps):
                            for b in range(g.h.taps):
                                memcpy(dst + ((a * g.channels + ch + c) * g.h.taps + b) * ld,
                                       turned + (c * area + (g.v.tap0 + a * g.v.tap_step) * k.kw
                                                 + g.h.tap0 + b * g.h.tap_step) * wide, FE_VBYTES)
                ch += n


cdef struct Slab:            # channels of the destination: `count` from `first` on, `ld` apart in scratch
    int64_t first, count, ld, channels, h, w


cdef inline void store(const Gather *g, Block b, real *out, real *dst, Slab s) noexcept nogil:
    """Store pixel-major scratch to a slab of channels of the NCHW destination."""
    cdef int64_t im, m, t, u, rows = b.end - b.row, pixels = (b.end - b.row) * g.h.outs
    cdef real *to
    cdef real *frm
    for im in range(b.images):
        to = dst + ((b.n + im) * s.channels + s.first) * s.h * s.w
        frm = out + im * pixels * s.ld
        if g.v.dst_step == 1 and g.h.dst_step == 1:
            transpose(frm, s.ld, pixels, s.count, to + b.row * s.w, s.h * s.w, False)
            continue
        for m in range(s.count):
            for t in range(rows):
                for u in range(g.h.outs):
                    to[m * s.h * s.w + (g.v.dst0 + (b.row + t) * g.v.dst_step) * s.w
                       + g.h.dst0 + u * g.h.dst_step] = frm[(t * g.h.outs + u) * s.ld + m]


cdef inline double worst_share(int64_t parts, int nt) noexcept nogil:
    """Return the busiest thread's share of the work, when nt threads split `parts` equal parts."""
    return <double>((parts + nt - 1) // nt) / parts


cdef inline void correlate_phase(const Conv *k, const Gather *g, Room room, const fe_team *team, real *src,
                                 real *mat, real *dst, char *work) noexcept nogil:
    cdef real **base = <real **>work
    cdef int64_t *off = <int64_t *>(work + room.base)
    cdef real *copy = <real *>(work + room.base + room.off)
    cdef real *out = <real *>(work + room.base + room.off + room.window)
    cdef int64_t srcs = k.c if k.role == FORWARD else k.o, dsts = k.o if k.role == FORWARD else k.c
    cdef int64_t outs = dsts // k.groups, inner = g.channels * g.h.taps
    cdef int64_t dst_h = k.oh if k.role == FORWARD else k.h, dst_w = k.ow if k.role == FORWARD else k.w
    cdef int64_t lo, hi, group, s, j, j1, j2, q, m0, ld, pixels, chunk, begin, end, images
    cdef int64_t t, u, a1, a2, s1, s2, most, uses
    cdef int nv, rows
    cdef Slabs sl = slabs_of(outs, sizeof(real))
    cdef Block b
    cdef real *p
    cdef real *m
    for a1 in range(g.v.taps):
        for j in range(g.channels):
            for u in range(g.h.taps):
                off[a1 * inner + j * g.h.taps + u] = j * g.plane + a1 * g.v.gap * g.pitch + u * g.h.gap
    if g.v.outs == 0 or g.h.outs == 0:
        return
    lo, hi, s1, s2 = 0, k.n * g.v.outs, 0, sl.count
    if worst_share(sl.count, team.nt) < worst_share(hi, team.nt):     # few rows: split the channels
        fe_split(sl.count, 1, team, &s1, &s2)
    else:
        fe_split(hi, 1, team, &lo, &hi)
    while lo < hi:
        b = next_block(g, lo, hi)
        lo += b.images * (b.end - b.row)
        for group in range(k.groups):
            p = window(g, b, src, srcs, group * g.channels, g.channels, copy)
            q = 0
            for images in range(b.images):
                for t in range(b.end - b.row):
                    for u in range(g.h.outs):
                        base[q] = p + images * g.image + t * g.v.step * g.pitch + u * g.h.step
                        q += 1
            pixels = q
            for s in range(s1, s2):
                m0 = slab_start(sl, s) * sl.lanes
                ld = slab_start(sl, s + 1) * sl.lanes - m0
                m = mat + (group * sl.vectors * sl.lanes + m0) * g.steps
                nv = <int>(ld // sl.lanes)
                most = fe_tile_rows(nv)
                uses = (pixels + most - 1) // most
                chunk = max(131072 // (ld * <int64_t>sizeof(real)), 1)   # two chunks fit the L2 cache
                begin = 0
                while begin < g.steps or begin == 0:
                    end = min(begin + chunk, g.steps)
                    q = 0
                    while q < pixels:
                        rows = <int>min(most, pixels - q)
                        j1, j2 = begin, end
                        if b.images == 1:    # skip tap rows that are padding for all pixels of this tile
                            a1 = b.row + (q + rows - 1) // g.h.outs
                            a2 = b.row + q // g.h.outs
                            j1 = max(j1, up(-g.v.first - a1 * g.v.step, g.v.gap) * inner)
                            j2 = min(j2, (down(g.v.srcs - 1 - g.v.first - a2 * g.v.step,
                                               g.v.gap) + 1) * inner)
                        if j2 > j1 or begin == 0:
                            j1 = min(j1, end)
                            j2 = max(j2 - j1, 0)
                            tile(nv, base + q, rows, off + j1, j2,
                                 before(m + j1 * ld, j2, m + end * ld, (end - begin) * ld, q // most, uses),
                                 out + q * ld, begin > 0)
                        q += rows
                    begin += chunk
                store(g, b, out, dst, Slab(group * outs + m0, min(ld, outs - m0), ld, dsts, dst_h, dst_w))


cdef inline void correlate(const Conv *k, const fe_team *team, real *src, real *w, real *dst, bint packed,
                           char *work) noexcept nogil:
    """Compute y from x, or dx from dy, phase by phase (the forward direction has one). packed: an earlier
    call has already packed the weights into `work`."""
    cdef Gather g
    cdef Room room = correlate_room(k, sizeof(real))
    cdef int64_t p, vectors = slabs_of(k.og if k.role == FORWARD else k.cg,
                                       sizeof(real)).vectors * lanes(sizeof(real))
    cdef real *mat = <real *>work
    cdef char *own = work + matrix_bytes(k, sizeof(real)) + team.tid * room.total
    for p in range(phases(k)):
        g = phase(k, p)
        if not packed:
            pack_weights(k, &g, team, w, mat, <real *>(own + room.total - room.out))
        mat += k.groups * g.steps * vectors
    if not packed:
        fe_wait(team)
    mat = <real *>work
    for p in range(phases(k)):
        g = phase(k, p)
        correlate_phase(k, &g, room, team, src, mat, dst, own)
        mat += k.groups * g.steps * vectors


cdef inline int64_t correlate_bytes(const Conv *k, int nt, int64_t item) noexcept nogil:
    return matrix_bytes(k, item) + correlate_room(k, item).total * nt
