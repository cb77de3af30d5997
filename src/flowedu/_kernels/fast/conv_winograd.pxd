# Dense convolution of stride 1 by Winograd's method, float only (winograd.h has the transforms): 64 matrix products in
# place of a correlation, with a fifth of the multiplications. Forward, input gradient (the kernels turned round) and
# weight gradient. Errors grow from some 1e-7 to 4e-6 (5x5) or 1e-5 (3x3) of the largest output.
#
# A thread takes a block of some 30 tiles at a time, so that all 64 of its little matrices stay in the second cache:
# pixels to pixel-major order, transform, 64 products, transform, back to planes.
from flowedu._kernels.fast.conv_geometry cimport *
from flowedu._kernels.fast.conv_tiles cimport *
from flowedu._kernels.fast.winograd_tiles cimport *

cdef extern from "winograd.h" nogil:
    void fe_wino_in(const float *const *, int64_t, float *, int64_t) noexcept
    void fe_wino_out(int, const float *, int64_t, int64_t, float *, int64_t, int, int) noexcept
    void fe_wino_back(int, const float *const *, int64_t, float *, int64_t) noexcept
    void fe_wino_kernel(int, const float *, int64_t, int, float *, int64_t) noexcept
    void fe_wino_taps(int, const float *, int64_t, int, int64_t, float *, int64_t) noexcept

cdef inline void to_pixels(const Plane *p, int64_t image, int64_t r0, int64_t r1, int64_t c0, int64_t c1,
                           float *to) noexcept nogil:
    """Rows [r0, r1), columns [c0, c1) of an image, channels side by side."""
    cdef float *at = p.data + image * p.image
    cdef int64_t r
    if c1 - c0 == p.w:
        fe_transpose_f(at + r0 * p.w, p.h * p.w, p.channels, (r1 - r0) * p.w, to, p.padded, True)
        return
    for r in range(r0, r1):
        fe_transpose_f(at + r * p.w + c0, p.h * p.w, p.channels, c1 - c0, to + (r - r0) * (c1 - c0) * p.padded,
                       p.padded, True)


cdef struct Window:          # what a tile sees of a plane
    int64_t size, top, left  # size 8: of the input; size m: of the outputs (weight gradient)


cdef inline void gather_run(const Wino *g, Run run, const Plane *p, Window s, const WinoDesk *d, float *v,
                            int64_t step) noexcept nogil:
    """Transform a run's tiles into v."""
    cdef int64_t r0 = max(run.ty * g.m - s.top, 0), r1 = min((run.ty + run.rows - 1) * g.m - s.top + s.size, p.h)
    cdef int64_t c0 = max(run.tx * g.m - s.left, 0), c1 = min((run.tx + run.cols - 1) * g.m - s.left + s.size, p.w)
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


cdef inline void gather(const Wino *g, const Plane *p, Window s, int64_t at, int64_t end, const WinoDesk *d, float *v,
                        int64_t step) noexcept nogil:
    """Transform the tiles [at, end) into v, run by run."""
    cdef Run run
    while at < end:
        run = next_run(g, at, end)
        gather_run(g, run, p, s, d, v, step)
        at += run.rows * run.cols
        v += run.rows * run.cols * p.padded


cdef inline void scatter(const Wino *g, Run run, const float *products, int64_t step, float *pixels,
                         const Plane *p) noexcept nogil:
    """A run's outputs, from its products."""
    cdef int64_t r0 = run.ty * g.m, r1 = min((run.ty + run.rows) * g.m, p.h)
    cdef int64_t c0 = run.tx * g.m, c1 = min((run.tx + run.cols) * g.m, p.w), ty, tx, r, pitch = (c1 - c0) * p.padded
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
        fe_transpose_f(pixels + (r - r0) * pitch, p.padded, c1 - c0, p.channels, to + r * p.w + c0, p.h * p.w, False)


cdef inline void all_kernels(const Wino *g, bint turned, const fe_team *team, float *w, float *u, float *taps) noexcept nogil:
    """u[slab][64][in][out] from w (o, c, k, k)."""
    cdef int64_t area = g.k * g.k, all = g.slabs.vectors * g.slabs.lanes, lo, hi, ch, c, end, s, m, m0, ld
    fe_split(g.ins, 4, team, &lo, &hi)
    ch = lo
    while ch < hi:
        end = min(ch + 4, hi)
        if turned:
            for c in range(ch, end):
                fe_transpose_f(w + c * g.outs * area, area, g.outs, area, taps + (c - ch) * area * all, all, True)
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
                    m += g.slabs.lanes
        ch = end


cdef struct Rows:            # count rows, `apart` from one to the next
    float *first
    int64_t apart, count


cdef inline void products(Rows r, int64_t *off, int64_t steps, float *mat, float *out, int64_t ld,
                          bint accumulate) noexcept nogil:
    """out (count, ld) = or += rows x mat."""
    cdef float *base[FE_ROWS]
    cdef int nv = <int>(ld // lanes(4))
    cdef int64_t q = 0, i, n, most = fe_tile_rows(nv), uses = (r.count + most - 1) // most
    while q < r.count:
        n = min(most, r.count - q)
        for i in range(n):
            base[i] = r.first + (q + i) * r.apart
        tile(nv, base, <int>n, off, steps, before(mat, steps, mat + steps * ld, steps * ld, q // most, uses), out + q * ld,
             accumulate)
        q += n


cdef inline void winograd(const Conv *k, const fe_team *team, float *source, float *w, float *result, bint packed,
                          char *work) noexcept nogil:
    """y from x, or dx from dy. packed: the kernels lie transformed in `work` already, as an earlier call has put them there."""
    cdef Wino g = wino_of(k)
    cdef Plane src = inputs_of(k, source), dst = outputs_of(k, result), part
    if k.role == INPUT_GRAD:
        src, dst = outputs_of(k, source), inputs_of(k, result)
    cdef WinoRoom room = wino_room(&g, &src, &dst)
    cdef float *u = <float *>work
    cdef WinoDesk d = desk_of(&room, u + room.kernels + team.tid * room.total)
    cdef int64_t at, end, hi, t, xi, s, m0, ld, vstep = step_of(&g, src.padded), step
    cdef Run run
    for t in range(g.ins):
        d.off[t] = t
    if not packed:
        all_kernels(&g, k.role == INPUT_GRAD, team, w, u, d.taps)
        fe_wait(team)
    fe_split(g.tiles, g.unit, team, &at, &hi)
    while at < hi:
        end = min(at + g.block, hi)
        gather(&g, &src, Window(8, g.top, g.left), at, end, &d, d.v, vstep)
        for s in range(g.slabs.count):
            m0 = slab_start(g.slabs, s) * g.slabs.lanes
            ld = slab_start(g.slabs, s + 1) * g.slabs.lanes - m0
            part, step = slab_of(&dst, m0, ld), step_of(&g, ld)
            for xi in range(64):
                products(Rows(d.v + xi * vstep, src.padded, end - at), d.off, g.ins, u + 64 * g.ins * m0 + xi * g.ins * ld,
                         d.made + xi * step, ld, False)
            t = at
            while t < end:
                run = next_run(&g, t, end)
                scatter(&g, run, d.made + (t - at) * part.padded, step, d.pixels, &part)
                t += run.rows * run.cols
        at = end


cdef inline void winograd_weights(const Conv *k, const fe_team *team, float *dy, float *x, float *dw,
                                  char *work) noexcept nogil:
    """dw = G' (sum over tiles of (B' d B) * (A dy A')) G."""
    cdef Wino g = wino_of(k)
    cdef Plane src = inputs_of(k, x), dst = outputs_of(k, dy), part
    cdef WinoRoom room = wino_room(&g, &src, &dst)
    cdef WinoDesk d = desk_of(&room, <float *>work + team.tid * room.total)
    cdef int64_t at, end, hi, t, xi, s, m0, ld, vstep = step_of(&g, src.padded), step, blocks = 0
    cdef int64_t size = 64 * g.ins * g.slabs.vectors * g.slabs.lanes
    cdef float *recent = d.sums + size
    memset(d.sums, 0, 2 * size * 4)
    for t in range(g.block):
        d.off[t] = t * src.padded
    fe_split(g.tiles, g.unit, team, &at, &hi)
    while at < hi:
        end = min(at + g.block, hi)
        gather(&g, &src, Window(8, g.top, g.left), at, end, &d, d.v, vstep)
        for s in range(g.slabs.count):
            m0 = slab_start(g.slabs, s) * g.slabs.lanes
            ld = slab_start(g.slabs, s + 1) * g.slabs.lanes - m0
            part, step = slab_of(&dst, m0, ld), step_of(&g, ld)
            gather(&g, &part, Window(g.m, 0, 0), at, end, &d, d.made, step)
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
    kernels_back(&g, team, &room, d.sums - team.tid * room.total, d.taps, dw)


cdef inline void kernels_back(const Wino *g, const fe_team *team, const WinoRoom *room, float *sums, float *taps,
                              float *dw) noexcept nogil:
    """dw from the sums of all threads, those of the first at `sums`."""
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
                m += g.slabs.lanes
        fe_transpose_f(taps, all, area, g.outs, dw + c * area, g.ins * area, False)
