# Dense convolution of stride 1 by Winograd's method, float only (winograd.h has the transforms): 64 matrix
# products instead of a correlation, with a fifth of the multiplications. Forward, input gradient (with
# flipped kernels) and weight gradient. Errors are between about 1e-7 and 4e-6 (5x5) or 1e-5 (3x3) of the
# largest output. Tiles that mix very small with very large values, or finite values with infinity, are
# computed as plain sums (`find_odd`).
#
# A thread processes a block of about 30 tiles at a time, so that all 64 of its small matrices stay in the L2
# cache: pixels to pixel-major order, transform, 64 products, transform, back to planes.
from flowedu._kernels.fast.conv_geometry cimport *
from flowedu._kernels.fast.conv_tiles cimport *
from flowedu._kernels.fast.winograd_tiles cimport *

cdef extern from "winograd.h" nogil:
    void fe_wino_in(const float *const *, int64_t, float *, int64_t) noexcept
    void fe_wino_out(int, const float *, int64_t, int64_t, float *, int64_t, int, int) noexcept
    void fe_wino_back(int, const float *const *, int64_t, float *, int64_t) noexcept
    void fe_wino_kernel(int, const float *, int64_t, int, float *, int64_t) noexcept
    void fe_wino_taps(int, const float *, int64_t, int, int64_t, float *, int64_t) noexcept
    void fe_wino_squares(const float *, int64_t, int64_t, int64_t, float *) noexcept
    bint fe_wino_is_calm(const float *, int64_t, int64_t, int, int64_t, int64_t, float *) noexcept
    bint fe_wino_is_wide(const float *, int64_t, int, int, int) noexcept
    bint fe_wino_is_peak(const float *, int64_t, int) noexcept
    void fe_wino_note(int, const float *, int64_t, float *, float *) noexcept
    bint fe_wino_are_few(const float *, const float *, int, int64_t) noexcept
    void fe_wino_add(int, const float *, int64_t, int, int64_t, float *, int64_t) noexcept

cdef inline void to_pixels(const Plane *p, int64_t image, int64_t r0, int64_t r1, int64_t c0, int64_t c1,
                           float *to) noexcept nogil:
    """Copy rows [r0, r1), columns [c0, c1) of an image to channels-last order."""
    cdef float *at = p.data + image * p.image
    cdef int64_t r
    if c1 - c0 == p.w:
        fe_transpose_f(at + r0 * p.w, p.h * p.w, p.channels, (r1 - r0) * p.w, to, p.padded, True)
        return
    for r in range(r0, r1):
        fe_transpose_f(at + r * p.w + c0, p.h * p.w, p.channels, c1 - c0,
                       to + (r - r0) * (c1 - c0) * p.padded, p.padded, True)


cdef struct Window:          # the part of a plane that a tile reads
    int64_t size, top, left  # size 8: an input tile; size m: an output tile (weight gradient)


cdef inline void square_run(const Wino *g, Run run, const Plane *p, Window s,
                            const WinoDesk *d) noexcept nogil:
    """Write the squares of a run's pixels, summed over channels, to d.squares; zeros outside the image."""
    cdef int64_t top = run.ty * g.m - s.top, left = run.tx * g.m - s.left, r
    cdef int64_t rows = (run.rows - 1) * g.m + 8, cols = (run.cols - 1) * g.m + 8
    cdef int64_t r0 = max(top, 0), r1 = min(top + rows, p.h), c0 = max(left, 0), c1 = min(left + cols, p.w)
    cdef float *at = p.data + run.image * p.image
    cdef float *dense = d.squares + rows * cols + lanes(4)
    memset(d.squares, 0, (rows * cols + lanes(4)) * 4)
    if r1 <= r0 or c1 <= c0:
        return
    if c1 - c0 == p.w:                       # whole rows: in one call
        fe_wino_squares(at + r0 * p.w, p.h * p.w, p.channels, (r1 - r0) * p.w, dense)
    for r in range(r0, r1):
        if c1 - c0 == p.w:
            fe_copy(d.squares + (r - top) * cols + c0 - left, dense + (r - r0) * p.w, p.w * 4)
        else:
            fe_wino_squares(at + r * p.w + c0, p.h * p.w, p.channels, c1 - c0, d.squares + (r - top) * cols
                            + c0 - left)


cdef inline void find_odd(const Wino *g, Run run, const Plane *p, Window s, const WinoDesk *d,
                          int64_t *odd) noexcept nogil:
    """Set odd[i] if the values of tile i of a run differ too much in magnitude for the transform
    (winograd.h)."""
    cdef int64_t cols = (run.cols - 1) * g.m + 8, ty, tx, down, across
    cdef const float *q = d.squares
    cdef bint several
    square_run(g, run, p, s, d)
    down, across = min(run.rows * g.m, g.high - run.ty * g.m), min(run.cols * g.m, g.wide - run.tx * g.m)
    if not g.weights and fe_wino_is_calm(q, (run.rows - 1) * g.m + 8, cols, <int>g.k, down, across,
                                         d.squares + ((run.rows - 1) * g.m + 8) * cols + lanes(4)):
        memset(odd, 0, run.rows * run.cols * 8)
        return
    for ty in range(run.rows):
        for tx in range(run.cols):
            q = d.squares + ty * g.m * cols + tx * g.m
            if g.weights:
                # A single pixel of a few always has a large share of the squares, and every weight reads all
                # pixels.
                several = s.size == 8 or min(down - ty * g.m, g.m) * min(across - tx * g.m, g.m) > 4
                odd[0] = fe_wino_is_peak(q, cols, several)
            else:
                odd[0] = fe_wino_is_wide(q, cols, <int>g.k, <int>min(down - ty * g.m, g.m),
                                         <int>min(across - tx * g.m, g.m))
            odd += 1


cdef inline void gather_run(const Wino *g, Run run, const Plane *p, Window s, const WinoDesk *d, float *v,
                            int64_t step) noexcept nogil:
    """Transform a run's tiles into v."""
    cdef int64_t r0 = max(run.ty * g.m - s.top, 0), r1 = min((run.ty + run.rows - 1) * g.m - s.top + s.size,
                                                             p.h)
    cdef int64_t c0 = max(run.tx * g.m - s.left, 0), c1 = min((run.tx + run.cols - 1) * g.m - s.left + s.size,
                                                              p.w)
    cdef int64_t ty, tx, i, j, row, col
    cdef const float *at[64]
    if g.unit > 1:
        c0, c1 = 0, p.w
    if r1 > r0 and c1 > c0:
        to_pixels(p, run.image, r0, r1, c0, c1, d.pixels)
    for ty in range(run.ty, run.ty + run.rows):
        for tx in range(run.tx, run.tx + run.cols):
            for i in range(s.size):
                row = ty * g.m - s.top + i
                for j in range(s.size):
                    col = tx * g.m - s.left + j
                    at[s.size * i + j] = d.pixels + ((row - r0) * (c1 - c0) + col - c0) * p.padded \
                        if 0 <= row < p.h and 0 <= col < p.w else d.zeros
            if s.size == 8:
                fe_wino_in(at, p.padded, v, step)
            else:
                fe_wino_back(<int>g.m, at, p.padded, v, step)
            v += p.padded


cdef inline void gather(const Wino *g, const Plane *p, Window s, int64_t at, int64_t end, const WinoDesk *d,
                        float *v, int64_t step, int64_t *odd) noexcept nogil:
    """Transform the tiles [at, end) into v, run by run. odd: the tiles that need plain sums."""
    cdef Run run
    while at < end:
        run = next_run(g, at, end)
        find_odd(g, run, p, s, d, odd)
        gather_run(g, run, p, s, d, v, step)
        at += run.rows * run.cols
        odd += run.rows * run.cols
        v += run.rows * run.cols * p.padded


cdef inline void scatter(const Wino *g, Run run, const float *products, int64_t step, float *pixels,
                         const Plane *p) noexcept nogil:
    """Compute a run's outputs from its products."""
    cdef int64_t r0 = run.ty * g.m, r1 = min((run.ty + run.rows) * g.m, p.h)
    cdef int64_t c0 = run.tx * g.m, c1 = min((run.tx + run.cols) * g.m,
                                             p.w), ty, tx, r, pitch = (c1 - c0) * p.padded
    cdef float *to = p.data + run.image * p.image
    for ty in range(run.rows):
        for tx in range(run.cols):
            fe_wino_out(<int>g.m, products, step, p.padded, pixels + ty * g.m * pitch + tx * g.m * p.padded,
                        pitch, <int>min(g.m, r1 - r0 - ty * g.m), <int>min(g.m, c1 - c0 - tx * g.m))
            products += p.padded
    if c1 - c0 == p.w:
        fe_transpose_f(pixels, p.padded, (r1 - r0) * p.w, p.channels, to + r0 * p.w, p.h * p.w, False)
        return
    for r in range(r0, r1):
        fe_transpose_f(pixels + (r - r0) * pitch, p.padded, c1 - c0, p.channels, to + r * p.w + c0,
                       p.h * p.w, False)


cdef inline void all_kernels(const Wino *g, bint turned, const fe_team *team, float *w, float *u, float *taps,
                             float *notes) noexcept nogil:
    """Transform w (o, c, k, k) into u[slab][64][in][out]. notes: magnitudes of the weights in this thread's
    share."""
    cdef int64_t area = g.k * g.k, all = g.slabs.vectors * g.slabs.lanes, lo, hi, ch, c, end, s, m, m0, ld
    memset(notes, 0, 2 * all * 4)
    fe_split(g.ins, 4, team, &lo, &hi)
    ch = lo
    while ch < hi:
        end = min(ch + 4, hi)
        if turned:
            for c in range(ch, end):
                fe_transpose_f(w + c * g.outs * area, area, g.outs, area, taps + (c - ch) * area * all,
                               all, True)
        else:
            fe_transpose_f(w + ch * area, g.ins * area, g.outs, (end - ch) * area, taps, all, True)
        for s in range(g.slabs.count):
            m0 = slab_start(g.slabs, s) * g.slabs.lanes
            ld = slab_start(g.slabs, s + 1) * g.slabs.lanes - m0
            for c in range(ch, end):
                m = 0
                while m < ld:
                    fe_wino_kernel(<int>g.k, taps + (c - ch) * area * all + m0 + m, all, turned,
                                   u + 64 * g.ins * m0 + c * ld + m, g.ins * ld)
                    fe_wino_note(<int>area, taps + (c - ch) * area * all + m0 + m, all, notes + m0 + m,
                                 notes + all + m0 + m)
                    m += g.slabs.lanes
        ch = end


cdef struct Rows:            # `count` rows, `apart` elements from one to the next
    float *first
    int64_t apart, count


cdef inline void products(Rows r, int64_t *off, int64_t steps, float *mat, float *out, int64_t ld,
                          bint accumulate) noexcept nogil:
    """Set out (count, ld) to rows x mat, or add the product to it."""
    cdef float *base[FE_ROWS]
    cdef int nv = <int>(ld // lanes(4))
    cdef int64_t q = 0, i, n, most = fe_tile_rows(nv), uses = (r.count + most - 1) // most
    while q < r.count:
        n = min(most, r.count - q)
        for i in range(n):
            base[i] = r.first + (q + i) * r.apart
        tile(nv, base, <int>n, off, steps, before(mat, steps, mat + steps * ld, steps * ld, q // most, uses),
             out + q * ld, accumulate)
        q += n


cdef inline void tile_pixels(const Wino *g, const Plane *p, Window s, int64_t t, float *to) noexcept nogil:
    """Copy the pixels of one tile to channels-last order, with zeros outside the image."""
    cdef int64_t area = g.down * g.across, c, i, j
    cdef int64_t top = t % area // g.across * g.m - s.top, left = t % g.across * g.m - s.left
    cdef float *at = p.data + t // area * p.image
    memset(to, 0, s.size * s.size * p.padded * 4)
    for i in range(max(-top, 0), min(s.size, p.h - top)):
        for j in range(max(-left, 0), min(s.size, p.w - left)):
            for c in range(p.channels):
                to[(i * s.size + j) * p.padded + c] = at[(c * p.h + top + i) * p.w + left + j]


cdef struct PlainSums:               # arguments of a convolution computed as plain sums
    const Wino *g
    const Plane *src
    const Plane *dst
    float *w
    const WinoDesk *d
    bint turned                      # input gradient: kernels are transposed and rotated by 180 degrees


cdef inline void one_tap(const PlainSums *p, int64_t t, int64_t tap, int64_t *off, float *mat,
                         int64_t ld) noexcept nogil:
    """Add a tap of one channel to the outputs of a tile that read a pixel there. Padding is skipped, not
    multiplied by zero, because a weight may be infinite."""
    cdef const Wino *g = p.g
    cdef const Plane *src = p.src
    cdef const WinoDesk *d = p.d
    cdef int64_t i = tap // g.k, j = tap % g.k
    cdef int64_t top = t % (g.down * g.across) // g.across * g.m - g.top + i
    cdef int64_t left = t % g.across * g.m - g.left + j, r
    cdef int64_t c0 = min(max(-left, 0), g.m), c1 = max(min(g.m, src.w - left), c0)
    for r in range(max(-top, 0), min(g.m, src.h - top)):
        products(Rows(d.pixels + (r * 8 + c0) * src.padded, src.padded, c1 - c0), off, 1, mat,
                 d.made + (r * g.m + c0) * ld, ld, True)


cdef inline void plain_tile(const PlainSums *p, bint padded, int64_t t, int64_t m0,
                            int64_t ld) noexcept nogil:
    """Compute the outputs of one tile, channels [m0, m0 + ld), as plain sums; p.d.pixels holds its pixels.

    padded: process tap by tap, skipping the padding."""
    cdef const Wino *g = p.g
    cdef const Plane *src = p.src
    cdef const Plane *dst = p.dst
    cdef const WinoDesk *d = p.d
    cdef float *w = p.w
    cdef bint turned = p.turned
    cdef int64_t area = g.k * g.k, count = min(ld, g.outs
                                               - m0), ch = 0, c, n, i, j, r, tap, all = g.down * g.across
    cdef int64_t top = t % all // g.across * g.m, left = t % g.across * g.m
    cdef float *to = dst.data + t // all * dst.image + m0 * dst.h * dst.w
    memset(d.made, 0, g.m * g.m * ld * 4)
    while ch < g.ins:
        n = min(4, g.ins - ch)
        if not turned:
            fe_transpose_f(w + (m0 * g.ins + ch) * area, g.ins * area, count, n * area, d.taps, ld, True)
        for c in range(n):
            if turned:
                fe_transpose_f(w + ((ch + c) * g.outs + m0) * area, area, count, area, d.taps + c * area * ld,
                               ld, True)
            for i in range(area):
                tap = area - 1 - i if turned else i
                d.off[c * area + i] = (tap // g.k * 8 + tap % g.k) * src.padded + ch + c
        if padded:
            for i in range(n * area):
                tap = area - 1 - i % area if turned else i % area
                one_tap(p, t, tap, d.off + i, d.taps + i * ld, ld)
        else:
            for r in range(g.m):
                products(Rows(d.pixels + r * 8 * src.padded, src.padded, g.m), d.off, n * area, d.taps,
                         d.made + r * g.m * ld, ld, True)
        ch += n
    for c in range(count):
        for i in range(min(g.m, dst.h - top)):
            for j in range(min(g.m, dst.w - left)):
                to[(c * dst.h + top + i) * dst.w + left + j] = d.made[(i * g.m + j) * ld + c]


cdef inline void plain_tiles(const PlainSums *p, const fe_team *team, const WinoRoom *room, int64_t at,
                             int64_t end, float *notes) noexcept nogil:
    """Recompute the outputs of a block's tiles [at, end) that lost digits: all outputs of odd tiles, and in
    all tiles the outputs of kernels dominated by a few weights. notes: those of the first thread."""
    cdef const Wino *g = p.g
    cdef const WinoDesk *d = p.d
    cdef int64_t t, s, m0, all = g.slabs.vectors * g.slabs.lanes, wide = g.slabs.lanes
    cdef bint few = False
    for s in range(g.slabs.vectors):
        few = few or fe_wino_are_few(notes + s * wide, notes + all + s * wide, team.nt, room.total)
    for t in range(at, end):
        if d.odd[t - at] or few:
            tile_pixels(g, p.src, Window(8, g.top, g.left), t, d.pixels)
        if d.odd[t - at]:
            for s in range(g.slabs.count):
                m0 = slab_start(g.slabs, s) * wide
                plain_tile(p, few, t, m0, slab_start(g.slabs, s + 1) * wide - m0)
        elif few:
            for s in range(g.slabs.vectors):
                if fe_wino_are_few(notes + s * wide, notes + all + s * wide, team.nt, room.total):
                    plain_tile(p, True, t, s * wide, wide)
    for t in range(g.ins):                   # restore the offsets for the products of transforms
        d.off[t] = t


cdef inline void winograd(const Conv *k, const fe_team *team, float *source, float *w, float *result,
                          bint packed, char *work) noexcept nogil:
    """Compute y from x, or dx from dy. packed: an earlier call has already put the transformed kernels into
    `work`."""
    cdef Wino g = wino_of(k)
    cdef Plane src = inputs_of(k, source), dst = outputs_of(k, result), part
    if k.role == INPUT_GRAD:
        src, dst = outputs_of(k, source), inputs_of(k, result)
    cdef WinoRoom room = wino_room(&g, &src, &dst)
    cdef float *u = <float *>work
    cdef WinoDesk d = desk_of(&room, u + room.kernels + team.tid * room.total)
    cdef PlainSums plain = PlainSums(&g, &src, &dst, w, &d, k.role == INPUT_GRAD)
    cdef int64_t at, end, hi, t, xi, s, m0, ld, vstep = step_of(&g, src.padded), step
    cdef Run run
    for t in range(g.ins):
        d.off[t] = t
    if not packed:
        all_kernels(&g, k.role == INPUT_GRAD, team, w, u, d.taps, d.notes)
        fe_wait(team)
    fe_split(g.tiles, g.unit, team, &at, &hi)
    while at < hi:
        end = min(at + g.block, hi)
        gather(&g, &src, Window(8, g.top, g.left), at, end, &d, d.v, vstep, d.odd)
        for s in range(g.slabs.count):
            m0 = slab_start(g.slabs, s) * g.slabs.lanes
            ld = slab_start(g.slabs, s + 1) * g.slabs.lanes - m0
            part, step = slab_of(&dst, m0, ld), step_of(&g, ld)
            for xi in range(64):
                products(Rows(d.v + xi * vstep, src.padded, end - at), d.off, g.ins,
                         u + 64 * g.ins * m0 + xi * g.ins * ld, d.made + xi * step, ld, False)
            t = at
            while t < end:
                run = next_run(&g, t, end)
                scatter(&g, run, d.made + (t - at) * part.padded, step, d.pixels, &part)
                t += run.rows * run.cols
        plain_tiles(&plain, team, &room, at, end, d.notes - team.tid * room.total)
        at = end


cdef inline void plain_weights(const Wino *g, const Plane *src, const Plane *part, int64_t t, int64_t m0,
                               const WinoDesk *d) noexcept nogil:
    """Add one tile's part of the kernels' gradients to d.plain[slab][tap][in][out], for the slab `part` of
    dy."""
    cdef float *mat = d.pixels + 64 * src.padded
    cdef int64_t i, j, r, r1, area = g.k * g.k, top, left, c0, c1
    tile_pixels(g, src, Window(8, g.top, g.left), t, d.pixels)
    tile_pixels(g, part, Window(g.m, 0, 0), t, mat)
    for i in range(g.m):
        for j in range(g.m):
            d.off[i * g.m + j] = (i * 8 + j) * src.padded
    for i in range(area):                    # skip padding of either side: 0 times infinity is NaN
        top = t % (g.down * g.across) // g.across * g.m
        left = t % g.across * g.m
        r1 = min(min(g.m, part.h - top), src.h - (top - g.top + i // g.k))
        c1 = min(min(g.m, part.w - left), src.w - (left - g.left + i % g.k))
        c0 = min(max(g.left - i % g.k - left, 0), c1)
        for r in range(max(g.top - i // g.k - top, 0), r1):
            products(Rows(d.pixels + (i // g.k * 8 + i % g.k) * src.padded, 1, g.ins), d.off + r * g.m + c0,
                     c1 - c0,
                     mat + (r * g.m + c0) * part.padded, d.plain + m0 * area * g.ins
                     + i * g.ins * part.padded, part.padded, True)
    for i in range(g.block):
        d.off[i] = i * src.padded


cdef inline void clear_tile(float *v, int64_t step, int64_t channels) noexcept nogil:
    """Set a tile's transform to zero, which removes it from the sums."""
    cdef int64_t xi
    for xi in range(64):
        memset(v + xi * step, 0, channels * 4)


cdef inline void winograd_weights(const Conv *k, const fe_team *team, float *dy, float *x, float *dw,
                                  char *work) noexcept nogil:
    """Compute dw = G' (sum over tiles of (B' d B) * (A dy A')) G."""
    cdef Wino g = wino_of(k)
    cdef Plane src = inputs_of(k, x), dst = outputs_of(k, dy), part
    cdef WinoRoom room = wino_room(&g, &src, &dst)
    cdef WinoDesk d = desk_of(&room, <float *>work + team.tid * room.total)
    cdef int64_t at, end, hi, t, xi, s, m0, ld, vstep = step_of(&g, src.padded), step, blocks = 0
    cdef int64_t size = 64 * g.ins * g.slabs.vectors * g.slabs.lanes
    cdef float *recent = d.sums + size
    memset(d.sums, 0, 2 * size * 4)
    memset(d.plain, 0, room.plain * 4)
    for t in range(g.block):
        d.off[t] = t * src.padded
    fe_split(g.tiles, g.unit, team, &at, &hi)
    while at < hi:
        end = min(at + g.block, hi)
        gather(&g, &src, Window(8, g.top, g.left), at, end, &d, d.v, vstep, d.odd)
        for t in range(at, end):
            if d.odd[t - at]:
                clear_tile(d.v + (t - at) * src.padded, vstep, src.padded)
        for s in range(g.slabs.count):
            m0 = slab_start(g.slabs, s) * g.slabs.lanes
            ld = slab_start(g.slabs, s + 1) * g.slabs.lanes - m0
            part, step = slab_of(&dst, m0, ld), step_of(&g, ld)
            gather(&g, &part, Window(g.m, 0, 0), at, end, &d, d.made, step, d.odd + g.block)
            for t in range(at, end):
                if d.odd[t - at] or d.odd[g.block + t - at]:
                    clear_tile(d.made + (t - at) * ld, step, ld)
                    plain_weights(&g, &src, &part, t, m0, &d)
            for xi in range(64):
                products(Rows(d.v + xi * vstep, 1, g.ins), d.off, end - at, d.made + xi * step,
                         recent + 64 * g.ins * m0 + xi * g.ins * ld, ld, True)
        at = end
        blocks += 1
        if blocks % RECENT == 0 or at == hi:
            for t in range(size):
                d.sums[t] += recent[t]
                recent[t] = 0
    fe_wait(team)
    kernels_back(&g, team, &room, d.sums - team.tid * room.total, d.plain - team.tid * room.total, d.taps, dw)


cdef inline void kernels_back(const Wino *g, const fe_team *team, const WinoRoom *room, float *sums,
                              float *plain, float *taps, float *dw) noexcept nogil:
    """Compute dw from the sums of all threads; the first thread's sums are at `sums` and `plain`."""
    cdef int64_t all = g.slabs.vectors * g.slabs.lanes, area = g.k * g.k, lo, hi, c, s, m, m0, ld
    fe_split(g.ins, 1, team, &lo, &hi)
    for c in range(lo, hi):
        for s in range(g.slabs.count):
            m0 = slab_start(g.slabs, s) * g.slabs.lanes
            ld = slab_start(g.slabs, s + 1) * g.slabs.lanes - m0
            m = 0
            while m < ld:
                fe_wino_taps(<int>g.k, sums + 64 * g.ins * m0 + c * ld + m, g.ins * ld, team.nt, room.total,
                             taps + m0 + m, all)
                fe_wino_add(<int>area, plain + m0 * area * g.ins + c * ld + m, g.ins * ld, team.nt,
                            room.total, taps + m0 + m, all)
                m += g.slabs.lanes
        fe_transpose_f(taps, all, area, g.outs, dw + c * area, g.ins * area, False)
