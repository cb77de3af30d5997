# A matrix product y = x m with a right side packed by pack_weights (conv_tiles.pxd). x and y are read and
# written in place, and each result is finished (shift, clip, add a matrix) before it is stored. The scale of
# a column is already applied to its weights.
from flowedu._kernels.fast.conv_tiles cimport *
from flowedu._kernels.fast.conv_last_geometry cimport Finish

cdef extern from "product_tile.h" nogil:
    ctypedef struct fe_block:
        int64_t ldx, ldy, steps, parts, part_x, part_m, cols
        int add, last
        const void *shift
        const void *plus
        int clip
        double low, high
    void fe_product_f(int, const fe_block *, int64_t, const float *, const float *, float *) noexcept
    void fe_product_d(int, const fe_block *, int64_t, const double *, const double *, double *) noexcept

cdef enum:
    STEPS = 2048             # steps of a sum at a time: that many rows of a slab stay in the L2 cache
    ROOM = 65536             # elements of x that all slabs of columns process in turn


cdef struct Packed:          # y (rows, cols) = x (rows, depth) m, finished
    int64_t rows, cols, depth, ldx, ldy
    char *x
    char *mat
    char *y
    Finish f                 # scale NULL: no clipping; otherwise `mat` is already scaled
    char *plus               # added last: an array of y's size, or NULL


cdef inline void blocks(real *tag, int nv, const fe_block *b, int64_t rows, const real *x, const real *mat,
                        real *y) noexcept nogil:
    if real is float:
        fe_product_f(nv, b, rows, x, mat, y)
    else:
        fe_product_d(nv, b, rows, x, mat, y)


cdef inline Conv pointwise(int64_t rows, int64_t depth, int64_t cols) noexcept nogil:
    """Describe the product as a 1x1 convolution, which is the form `pack_weights` takes."""
    cdef Conv k
    k.role, k.n, k.c, k.o = FORWARD, 1, depth, cols
    k.h = k.oh = rows
    k.w = k.ow = k.kh = k.kw = k.sh = k.sw = k.dh = k.dw = k.groups = 1
    k.top = k.left = 0
    k.cg, k.og = k.c, k.o
    return k


cdef inline int64_t pack_room(const Conv *m) noexcept nogil:
    """Return the scratch, in bytes, that one thread needs for packing the right side."""
    return round64(channels_at_once(m) * FE_VBYTES)


cdef inline void pack_product(const Conv *m, const fe_team *team, real *w, char *work,
                              char *rooms) noexcept nogil:
    """Pack the right side w (cols, depth) into `work`, with all threads. rooms: pack_room bytes for each
    thread."""
    cdef Gather one = phase(m, 0)
    pack_weights(m, &one, team, w, <real *>work, <real *>(rooms + team.tid * pack_room(m)))
    fe_wait(team)


cdef inline void pack_scaled(const Conv *m, const fe_team *team, real *w, const real *scale, char *work,
                             char *rooms) noexcept nogil:
    """Pack the right side as pack_product does, then multiply each column by its scale."""
    cdef Slabs sl = slabs_of(m.o, sizeof(real))
    cdef int64_t s, m0, ld, lo, hi, i, j
    cdef real *at
    pack_product(m, team, w, work, rooms)
    fe_split(m.c, 1, team, &lo, &hi)
    for s in range(sl.count):
        m0 = slab_start(sl, s) * sl.lanes
        ld = slab_start(sl, s + 1) * sl.lanes - m0
        for i in range(lo, hi):
            at = <real *>work + m0 * m.c + i * ld
            for j in range(min(ld, m.o - m0)):
                at[j] *= scale[m0 + j]
    fe_wait(team)


cdef inline fe_block block_of(const Packed *p, Slabs sl, int64_t s, int64_t item) noexcept nogil:
    """Return the fields that all blocks of slab s share."""
    cdef int64_t m0 = slab_start(sl, s) * sl.lanes, ld = slab_start(sl, s + 1) * sl.lanes - m0
    cdef fe_block b
    b.ldx, b.ldy, b.cols, b.low, b.high = p.ldx, p.ldy, min(ld, p.cols - m0), p.f.low, p.f.high
    b.parts, b.part_x, b.part_m = 1, 0, 0
    b.clip = p.f.scale != NULL
    b.shift = NULL if p.f.shift == NULL else p.f.shift + m0 * item
    b.plus = NULL
    return b


cdef inline void slab_rows(const Packed *p, Slabs sl, int64_t s, int64_t lo, int64_t hi,
                           real *tag) noexcept nogil:
    """Compute rows [lo, hi) of slab s."""
    cdef int64_t m0 = slab_start(sl, s) * sl.lanes, ld = slab_start(sl, s + 1) * sl.lanes - m0, k = 0
    cdef real *mat = <real *>p.mat + m0 * p.depth
    cdef fe_block b = block_of(p, sl, s, sizeof(real))
    if p.plus != NULL:
        b.plus = <real *>p.plus + lo * p.ldy + m0
    while k < p.depth or k == 0:
        b.steps = min(<int64_t>STEPS, p.depth - k)
        b.add, b.last = k > 0, k + b.steps == p.depth
        blocks(tag, <int>(ld // sl.lanes), &b, hi - lo, <real *>p.x + lo * p.ldx + k, mat + k * ld,
               <real *>p.y + lo * p.ldy + m0)
        k += STEPS


cdef inline void packed_product(const Packed *p, const fe_team *team, real *tag) noexcept nogil:
    """Compute this thread's part: a band if there are many rows, otherwise some of the blocks."""
    cdef Slabs sl = slabs_of(p.cols, sizeof(real))
    cdef int64_t most = FE_ROWS, blocks = (p.rows + most - 1) // most, lo, hi, at, end, s, step
    if p.rows >= 16 * most * team.nt:
        fe_split(p.rows, most, team, &lo, &hi)
        step = max(ROOM // max(p.depth, 1) // most, 1) * most
        while lo < hi:
            end = min(lo + step, hi)
            for s in range(sl.count):
                slab_rows(p, sl, s, lo, end, tag)
            lo = end
        return
    fe_split(sl.count * blocks, 1, team, &lo, &hi)
    for s in range(sl.count):
        at, end = max(lo - s * blocks, 0), min(hi - s * blocks, blocks)
        if at < end:
            slab_rows(p, sl, s, at * most, min(end * most, p.rows), tag)
