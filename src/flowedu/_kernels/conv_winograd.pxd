# Dense convolution of stride 1 by Winograd's method, float only (winograd.h has the transforms): 64 matrix products in
# place of a correlation, with a fifth of the multiplications. Forward, input gradient (the kernels turned round) and
# weight gradient. Errors grow from some 1e-7 to 4e-6 (5x5) or 1e-5 (3x3) of the largest output.
#
# A thread takes a block of some 30 tiles at a time, so that all 64 of its little matrices stay in the second cache:
# pixels to pixel-major order, transform, 64 products, transform, back to planes.
from flowedu._kernels.conv_geometry cimport *
from flowedu._kernels.conv_tiles cimport *
from flowedu._kernels.winograd_tiles cimport *

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


cdef inline void gather(const Wino *g, Run run, const Plane *p, int64_t size, int64_t top, int64_t left,
                        float *pixels, const float *zeros, float *v, int64_t step, int64_t slot) noexcept nogil:
    """Transform a run's tiles into v from `slot` on. size 8: windows of the input; size m: outputs (weight gradient)."""
    cdef int64_t r0 = max(run.ty * g.m - top, 0), r1 = min((run.ty + run.rows - 1) * g.m - top + size, p.h)
    cdef int64_t c0 = max(run.tx * g.m - left, 0), c1 = min((run.tx + run.cols - 1) * g.m - left + size, p.w)
    cdef int64_t ty, tx, i, j, row, col
    cdef const float *at[64]
    if g.unit > 1:
        c0, c1 = 0, p.w
    if r1 > r0 and c1 > c0:
        to_pixels(p, run.image, r0, r1, c0, c1, pixels)
    for ty in range(run.ty, run.ty + run.rows):
        for tx in range(run.tx, run.tx + run.cols):
            for i in range(size):
                row = ty * g.m - top + i
                for j in range(size):
                    col = tx * g.m - left + j
                    at[size * i + j] = pixels + ((row - r0) * (c1 - c0) + col - c0) * p.padded \
                        if 0 <= row < p.h and 0 <= col < p.w else zeros
            if size == 8:
                fe_wino_in(at, p.padded, v + slot * p.padded, step)
            else:
                fe_wino_back(<int>g.m, at, p.padded, v + slot * p.padded, step)
            slot += 1


cdef inline void scatter(const Wino *g, Run run, const float *products, int64_t step, int64_t slot, float *pixels,
                         const Plane *p) noexcept nogil:
    """A run's outputs, from the products at `slot`."""
    cdef int64_t r0 = run.ty * g.m, r1 = min((run.ty + run.rows) * g.m, p.h)
    cdef int64_t c0 = run.tx * g.m, c1 = min((run.tx + run.cols) * g.m, p.w), ty, tx, r, pitch = (c1 - c0) * p.padded
    cdef float *to = p.data + run.image * p.image
    for ty in range(run.rows):
        for tx in range(run.cols):
            fe_wino_out(<int>g.m, products + slot * p.padded, step, p.padded, pixels + ty * g.m * pitch + tx * g.m * p.padded,
                        pitch, <int>min(g.m, r1 - r0 - ty * g.m), <int>min(g.m, c1 - c0 - tx * g.m))
            slot += 1
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


cdef inline void products(int nv, float *rows, int64_t apart, int64_t count, int64_t *off, int64_t steps, float *mat,
                          float *out, int64_t ld, bint accumulate) noexcept nogil:
    """out (count, ld) = or += rows x mat; row i starts at rows + i * apart."""
    cdef float *base[FE_ROWS]
    cdef int64_t q = 0, i, n
    while q < count:
        n = min(fe_tile_rows(nv), count - q)
        for i in range(n):
            base[i] = rows + (q + i) * apart
        fe_tile_f(nv, base, <int>n, off, steps, mat, out + q * ld, accumulate)
        q += n


cdef inline void winograd(const Conv *k, Role role, const fe_team *team, float *source, float *w, float *result,
                          char *work) noexcept nogil:
    """y from x, or dx from dy."""
    cdef Wino g = wino_of(k, role)
    cdef Plane src = inputs_of(k, source), dst = outputs_of(k, result), part
    if role == INPUT_GRAD:
        src, dst = outputs_of(k, source), inputs_of(k, result)
    cdef WinoRoom room = wino_room(&g, role, &src, &dst)
    cdef float *u = <float *>work
    cdef float *v = u + room.kernels + team.tid * room.total
    cdef float *made = v + room.v
    cdef float *pixels = made + room.products
    cdef float *zeros = pixels + room.pixels
    cdef float *taps = zeros + room.zeros
    cdef int64_t *off = <int64_t *>(taps + room.taps)
    cdef int64_t at, end, hi, t, xi, s, m0, ld, vstep = step_of(&g, src.padded), step
    cdef Run run
    all_kernels(&g, role == INPUT_GRAD, team, w, u, taps)
    memset(zeros, 0, room.zeros * 4)
    for t in range(g.ins):
        off[t] = t
    fe_wait(team)
    fe_split(g.tiles, g.unit, team, &at, &hi)
    while at < hi:
        end = min(at + g.block, hi)
        t = at
        while t < end:
            run = next_run(&g, t, end)
            gather(&g, run, &src, 8, g.top, g.left, pixels, zeros, v, vstep, t - at)
            t += run.rows * run.cols
        for s in range(g.slabs.count):
            m0 = slab_start(g.slabs, s) * g.slabs.lanes
            ld = slab_start(g.slabs, s + 1) * g.slabs.lanes - m0
            part, step = slab_of(&dst, m0, ld), step_of(&g, ld)
            for xi in range(64):
                products(<int>(ld // g.slabs.lanes), v + xi * vstep, src.padded, end - at, off, g.ins,
                         u + 64 * g.ins * m0 + xi * g.ins * ld, made + xi * step, ld, False)
            t = at
            while t < end:
                run = next_run(&g, t, end)
                scatter(&g, run, made, step, t - at, pixels, &part)
                t += run.rows * run.cols
        at = end


cdef inline void winograd_weights(const Conv *k, const fe_team *team, float *dy, float *x, float *dw,
                                  char *work) noexcept nogil:
    """dw = G' (sum over tiles of (B' d B) * (A dy A')) G."""
    cdef Wino g = wino_of(k, WEIGHT_GRAD)
    cdef Plane src = inputs_of(k, x), dst = outputs_of(k, dy), part
    cdef WinoRoom room = wino_room(&g, WEIGHT_GRAD, &src, &dst)
    cdef float *v = <float *>work + team.tid * room.total
    cdef float *back = v + room.v
    cdef float *pixels = back + room.products
    cdef float *zeros = pixels + room.pixels
    cdef float *taps = zeros + room.zeros
    cdef int64_t *off = <int64_t *>(taps + room.taps)
    cdef int64_t at, end, hi, t, xi, s, m, m0, ld, c, vstep = step_of(&g, src.padded), step, blocks = 0
    cdef int64_t all = g.slabs.vectors * g.slabs.lanes, area = g.k * g.k, size = 64 * g.ins * all
    cdef float *sums = taps + room.taps + room.off
    cdef float *recent = sums + size
    cdef Run run
    memset(zeros, 0, room.zeros * 4)
    memset(sums, 0, 2 * size * 4)
    for t in range(g.block):
        off[t] = t * src.padded
    fe_split(g.tiles, g.unit, team, &at, &hi)
    while at < hi:
        end = min(at + g.block, hi)
        t = at
        while t < end:
            run = next_run(&g, t, end)
            gather(&g, run, &src, 8, g.top, g.left, pixels, zeros, v, vstep, t - at)
            t += run.rows * run.cols
        for s in range(g.slabs.count):
            m0 = slab_start(g.slabs, s) * g.slabs.lanes
            ld = slab_start(g.slabs, s + 1) * g.slabs.lanes - m0
            part, step = slab_of(&dst, m0, ld), step_of(&g, ld)
            t = at
            while t < end:
                run = next_run(&g, t, end)
                gather(&g, run, &part, g.m, 0, 0, pixels, zeros, back, step, t - at)
                t += run.rows * run.cols
            for xi in range(64):
                products(<int>(ld // g.slabs.lanes), v + xi * vstep, 1, g.ins, off, end - at, back + xi * step,
                         recent + 64 * g.ins * m0 + xi * g.ins * ld, ld, True)
        at = end
        blocks += 1
        if blocks % RECENT == 0 or at == hi:
            for t in range(size):
                sums[t] += recent[t]
                recent[t] = 0
    fe_wait(team)
    fe_split(g.ins, 1, team, &at, &hi)
    sums += -team.tid * room.total
    for c in range(at, hi):
        for s in range(g.slabs.count):
            m0 = slab_start(g.slabs, s) * g.slabs.lanes
            ld = slab_start(g.slabs, s + 1) * g.slabs.lanes - m0
            m = 0
            while m < ld:
                fe_wino_taps(<int>g.k, sums + 64 * g.ins * m0 + c * ld + m, g.ins * ld, team.nt, room.total,
                             taps + m0 + m, all)
                m += g.slabs.lanes
        fe_transpose_f(taps, all, area, g.outs, dw + c * area, g.ins * area, False)
