# Weight gradient by register tiles: rows are (tap row, channel, tap column), the matrix is dy, and the sum
# runs over the output pixels of all images (see conv_tile.h).
from flowedu._kernels.fast.conv_geometry cimport *
from flowedu._kernels.fast.conv_tiles cimport *


cdef struct Share:           # the part of the weight gradient that one thread sums
    bint split_pixels        # threads sum the same entries over different pixels; else each has its own
    int64_t g0, g1, c0, c1, row0, row1   # groups, channels within a group, output rows over all images


cdef inline Share share_of(const Conv *k, const fe_team *team) noexcept nogil:
    """Split by groups or by channels if there are enough: then no sums are combined at the end, and the
    result does not depend on the number of threads."""
    cdef Share s = Share(False, 0, k.groups, 0, k.cg, 0, k.n * k.oh)
    if k.groups >= team.nt:
        fe_split(k.groups, 1, team, &s.g0, &s.g1)
    elif k.cg >= 4 * team.nt:
        fe_split(k.cg, 1, team, &s.c0, &s.c1)
    else:
        s.split_pixels = True
        fe_split(k.n * k.oh, 1, team, &s.row0, &s.row1)
    return s


cdef struct GradRoom:
    int64_t base, off, window, mat, sums, total


cdef inline GradRoom weight_room(const Conv *k, const Gather *g, int nt, int64_t item) noexcept nogil:
    cdef fe_team first = fe_team(0, nt, NULL)
    cdef Share s = share_of(k, &first)           # the first thread's share is the largest
    cdef Slabs sl = slabs_of(k.og, item)
    cdef int64_t entries = k.kh * (s.c1 - s.c0) * k.kw
    cdef GradRoom r
    r.base = round64((entries + FE_ROWS) * 8)
    r.off = round64(block_pixels(g) * 8)
    r.window = 0 if g.direct else round64(g.images * g.image * item)
    r.mat = round64(block_pixels(g) * FE_NV * sl.lanes * item)
    r.sums = round64((s.g1 - s.g0) * entries * sl.vectors * sl.lanes * item)
    r.total = r.base + r.off + r.window + r.mat + r.sums
    return r


cdef inline int64_t weights_bytes(const Conv *k, int nt, int64_t item) noexcept nogil:
    cdef Gather g = phase(k, 0)
    return weight_room(k, &g, nt, item).total * nt


cdef struct GradDesk:        # one thread's buffers
    void **base              # pointers to the entries of a block's window
    int64_t *off
    char *copy
    char *mat


cdef inline void sum_block(const Conv *k, const Gather *g, Block b, Share s, const GradDesk *d, real *p,
                           real *dy, real *sums) noexcept nogil:
    """Add block b's part of one group's weight gradient to sums[slab][tap row, channel, tap column][output].
    p: the block's window; dy: the gradient from the group's first channel on."""
    cdef real **base = <real **>d.base
    cdef real *mat = <real *>d.mat
    cdef int64_t own = s.c1 - s.c0, entries = k.kh * own * k.kw, inner = own * k.kw
    cdef int64_t pixels = (b.end - b.row) * k.ow, i, ch, j, r, q1, q2, im, slab, m0, ld
    cdef int nv, rows
    cdef Slabs sl = slabs_of(k.og, sizeof(real))
    r = 0
    for i in range(k.kh):
        for ch in range(own):
            for j in range(k.kw):
                base[r] = p + ch * g.plane + i * k.dh * g.pitch + j * k.dw
                r += 1
    for slab in range(sl.count):
        m0 = slab_start(sl, slab) * sl.lanes
        ld = slab_start(sl, slab + 1) * sl.lanes - m0
        nv = <int>(ld // sl.lanes)
        for im in range(b.images):
            transpose(dy + (((b.n + im) * k.o + m0) * k.oh + b.row) * k.ow, k.oh * k.ow,
                      min(ld, k.og - m0), pixels, mat + im * pixels * ld, ld, True)
        r = 0
        while r < entries:
            rows = <int>min(fe_tile_rows(nv), entries - r)
            q1, q2 = 0, b.images * pixels
            if b.images == 1:                # skip output rows whose taps are all padding
                q1 = max(up(-g.v.first - (r + rows - 1) // inner * k.dh, k.sh) - b.row, 0) * k.ow
                q2 = min(down(g.v.srcs - 1 - g.v.first - r // inner * k.dh, k.sh) + 1 - b.row,
                         b.end - b.row) * k.ow
            if q2 > q1:
                tile(nv, base + r, rows, d.off + q1, q2 - q1, fe_mat(mat + q1 * ld, <char *>mat, 0),
                     sums + (m0 * entries + r * ld), True)
            r += rows


cdef inline void weight_sums(const Conv *k, const fe_team *team, real *dy, real *x, real *dw,
                             char *work) noexcept nogil:
    cdef Gather g = phase(k, 0)
    cdef GradRoom room = weight_room(k, &g, team.nt, sizeof(real))
    cdef Share s = share_of(k, team)
    cdef Slabs sl = slabs_of(k.og, sizeof(real))
    cdef char *own = work + team.tid * room.total
    cdef GradDesk d = GradDesk(<void **>own, <int64_t *>(own + room.base), own + room.base + room.off,
                               own + room.base + room.off + room.window)
    cdef real *sums = <real *>(own + room.base + room.off + room.window + room.mat)
    cdef int64_t entries = k.kh * (s.c1 - s.c0) * k.kw, size = entries * sl.vectors * sl.lanes
    cdef int64_t group, at, im, t, u, q = 0, o, lo, hi
    cdef Block b
    cdef real *p
    for im in range(g.images):
        for t in range(g.rows):
            for u in range(k.ow):
                d.off[q] = im * g.image + t * k.sh * g.pitch + u * k.sw
                q += 1
    memset(sums, 0, (s.g1 - s.g0) * size * sizeof(real))
    for group in range(s.g0, s.g1):
        at = s.row0
        while at < s.row1 and k.ow > 0:
            b = next_block(&g, at, s.row1)
            at += b.images * (b.end - b.row)
            p = window(&g, b, x, k.c, group * k.cg + s.c0, s.c1 - s.c0, <real *>d.copy)
            sum_block(k, &g, b, s, &d, p, dy + group * k.og * k.oh * k.ow, sums + (group - s.g0) * size)
    if s.split_pixels:
        fe_wait(team)
        sums = <real *>(work + room.total - room.sums)
        fe_split(k.o, 1, team, &lo, &hi)
        for o in range(lo, hi):
            unpack_sums(k, s, sl, o, sums, team.nt, room.total, dw)
    else:
        for o in range(s.g0 * k.og, s.g1 * k.og):
            unpack_sums(k, s, sl, o, sums, 1, 0, dw)


cdef inline void unpack_sums(const Conv *k, Share s, Slabs sl, int64_t o, real *sums, int parts,
                             int64_t distance, real *dw) noexcept nogil:
    """Compute dw[o] from the sums of `parts` threads, which are `distance` bytes apart."""
    cdef int64_t own = s.c1 - s.c0, entries = k.kh * own * k.kw, slab = 0, m = o % k.og
    cdef int64_t m0, ld, i, ch, j, part
    cdef real *frm
    cdef real *to
    cdef real v
    while slab_start(sl, slab + 1) * sl.lanes <= m:
        slab += 1
    m0 = slab_start(sl, slab) * sl.lanes
    ld = slab_start(sl, slab + 1) * sl.lanes - m0
    frm = sums + (o // k.og - s.g0) * entries * sl.vectors * sl.lanes + m0 * entries + m - m0
    for ch in range(own):
        to = dw + (o * k.cg + s.c0 + ch) * k.kh * k.kw
        for i in range(k.kh):
            for j in range(k.kw):
                v = 0
                for part in range(parts):
                    v += (<real *>(<char *>frm + part * distance))[((i * own + ch) * k.kw + j) * ld]
                to[i * k.kw + j] = v
