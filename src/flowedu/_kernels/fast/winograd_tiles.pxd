# Winograd's convolution: when it is faster, how images are cut into tiles and tiles into blocks, and its
# scratch size.
from flowedu._kernels.fast.conv_geometry cimport *
from flowedu._kernels.fast.conv_tiles cimport *

cdef enum:
    TOGETHER = 16            # images with rows of fewer tiles: several tile rows at a time
    RECENT = 8               # blocks per partial sum, because long sums of floats lose digits


cdef struct Plane:           # channels of the images on one side of the convolution
    float *data
    int64_t channels, padded, h, w, image    # padded: channels rounded up to whole vectors; image: stride


cdef struct Wino:
    # Tiles of an image: down x across; of all images: tiles.
    int64_t k, m, n, down, across, tiles, top, left
    int64_t high, wide       # outputs of an image (for the weight gradient: of dy)
    int64_t unit, block      # tiles are split between threads by unit, processed by block
    Slabs slabs              # of the side with contiguous channels in the products
    bint weights             # true for the gradient of the kernels
    int64_t ins, outs        # channels of the other side, and of this one


cdef inline bint winograd_pays(const Conv *k, int64_t item) noexcept nogil:
    """Return True if 64 products per tile, and the transforms, take less work than the plain sum.
    Transforming all kernels, or their gradients, costs as much as several dozen tiles."""
    cdef int64_t m = 9 - k.kh, tiles, pairs = k.c * k.o
    if item != 4 or k.kh != k.kw or k.kh < 3 or k.kh > 5 or k.sh != 1 or k.sw != 1 or k.dh != 1 or k.dw != 1 \
            or k.groups != 1 or k.top >= k.kh or k.left >= k.kw or min(k.c, k.o) < 16 \
            or k.n * k.oh * k.ow == 0:
        return False
    if k.oh - k.top > k.h or k.ow - k.left > k.w:        # some outputs read only padding
        return False
    tiles = k.n * ((k.oh + m - 1) // m) * ((k.ow + m - 1) // m)
    return 64 * ((tiles + (80 if k.role == WEIGHT_GRAD else 40)) * pairs + tiles * 12 * (k.c + k.o)) \
        < k.n * k.oh * k.ow * k.kh * k.kw * pairs


cdef inline Wino wino_of(const Conv *k) noexcept nogil:
    cdef Wino g
    cdef int64_t h = k.h if k.role == INPUT_GRAD else k.oh, w = k.w if k.role == INPUT_GRAD else k.ow
    g.high, g.wide = h, w
    g.k, g.m, g.n, g.weights = k.kh, 9 - k.kh, k.n, k.role == WEIGHT_GRAD
    g.down, g.across = (h + g.m - 1) // g.m, (w + g.m - 1) // g.m
    g.tiles = g.n * g.down * g.across
    g.top = k.kh - 1 - k.top if k.role == INPUT_GRAD else k.top
    g.left = k.kw - 1 - k.left if k.role == INPUT_GRAD else k.left
    g.ins = k.o if k.role == INPUT_GRAD else k.c
    g.outs = k.c if k.role == INPUT_GRAD else k.o
    g.slabs = slabs_of(g.outs, 4)
    g.unit = g.across if g.across < TOGETHER else 1
    g.block = max((56 if k.role == WEIGHT_GRAD or g.ins > 64 else 28) // g.unit, 1) * g.unit
    return g


cdef inline int64_t whole(int64_t channels) noexcept nogil:
    return (channels + lanes(4) - 1) // lanes(4) * lanes(4)


cdef inline int64_t most_pixels(const Wino *g, const Plane *p, int64_t size) noexcept nogil:
    """Return the number of pixels of p under one run of tiles, each `size` x `size` pixels."""
    if g.unit == 1:
        return size * min(p.w, (g.block - 1) * g.m + size)
    return min(p.h, (min(g.block // g.unit, g.down) - 1) * g.m + size) * p.w


cdef inline int64_t most_squares(const Wino *g) noexcept nogil:
    """Return the number of pixels that the tiles of one run read, including those outside the image."""
    if g.unit == 1:
        return 8 * whole((min(g.block, g.across) - 1) * g.m + 8)
    return whole(((min(g.block // g.unit, g.down) - 1) * g.m + 8) * ((g.across - 1) * g.m + 8))


cdef struct WinoRoom:        # scratch in floats: shared kernels, then each thread's
    int64_t kernels, v, products, pixels, zeros, taps, off, odd, squares, notes, total
    int64_t plain            # gradients of the kernels from tiles computed as plain sums


cdef inline int64_t step_of(const Wino *g, int64_t channels) noexcept nogil:
    """Return the distance between two of the 64 values: an odd number of vectors, to spread them over the
    cache's sets."""
    return g.block * channels // lanes(4) // 2 * 2 * lanes(4) + 3 * lanes(4)


cdef inline int64_t wide(const Wino *g) noexcept nogil:
    """Return the number of channels of the widest slab."""
    return (g.slabs.vectors + g.slabs.count - 1) // g.slabs.count * g.slabs.lanes


cdef inline WinoRoom wino_room(const Wino *g, const Plane *src, const Plane *dst) noexcept nogil:
    cdef WinoRoom r
    cdef int64_t all = g.slabs.vectors * g.slabs.lanes
    r.kernels = 64 * g.ins * all
    r.v = 64 * step_of(g, src.padded)
    r.products = 64 * step_of(g, wide(g))
    r.pixels = max(most_pixels(g, src, 8) * src.padded, most_pixels(g, dst, g.m) * dst.padded)
    r.pixels = max(r.pixels, 64 * src.padded + g.m * g.m * wide(g))
    r.zeros = max(src.padded, dst.padded)
    r.taps = 4 * g.k * g.k * all
    r.off = whole(2 * max(max(g.ins, g.block), 4 * g.k * g.k))
    r.odd = whole(2 * 2 * g.block)
    r.squares = 2 * most_squares(g) + 4 * lanes(4)
    r.notes = 2 * all
    r.total = r.v + r.products + r.pixels + r.zeros + r.taps + r.off + r.odd + r.squares + r.notes
    r.plain = 0
    if g.weights:                        # every thread's own sums, of all blocks and of the recent ones
        r.plain = g.k * g.k * g.ins * all
        r.total += 2 * r.kernels + r.plain
        r.kernels = 0
    return r


cdef inline Plane inputs_of(const Conv *k, float *x) noexcept nogil:
    return Plane(x, k.c, whole(k.c), k.h, k.w, k.c * k.h * k.w)


cdef inline Plane outputs_of(const Conv *k, float *y) noexcept nogil:
    return Plane(y, k.o, whole(k.o), k.oh, k.ow, k.o * k.oh * k.ow)


cdef inline Plane slab_of(const Plane *p, int64_t m0, int64_t ld) noexcept nogil:
    """Return the channels of one slab, from m0 on."""
    return Plane(p.data + m0 * p.h * p.w, min(ld, p.channels - m0), ld, p.h, p.w, p.image)


cdef inline int64_t wino_bytes(const Conv *k, int nt) noexcept nogil:
    cdef Plane x = inputs_of(k, NULL), y = outputs_of(k, NULL)
    cdef Wino g = wino_of(k)
    cdef WinoRoom r = wino_room(&g, &y if k.role == INPUT_GRAD else &x, &x if k.role == INPUT_GRAD else &y)
    return (r.kernels + r.total * nt) * 4


cdef struct Run:             # a rectangle of tiles of one image
    int64_t image, ty, tx, rows, cols


cdef inline Run next_run(const Wino *g, int64_t at, int64_t end) noexcept nogil:
    cdef Run r
    cdef int64_t area = g.down * g.across, first = at % area
    r.image, r.ty, r.tx = at // area, first // g.across, first % g.across
    if g.unit == 1:
        r.rows, r.cols = 1, min(end - at, g.across - r.tx)
    else:
        r.rows, r.cols = min(end - at, area - first) // g.across, g.across
    return r


cdef struct WinoDesk:        # one thread's buffers
    float *v                 # the transformed inputs
    float *made              # the products
    float *pixels
    float *zeros
    float *taps
    int64_t *off
    int64_t *odd             # flags of a block's tiles that need plain sums, then those of dy
    float *squares           # squares of the pixels of a run, then scratch of the same size
    float *notes             # sums and maxima of squares of the kernels
    float *sums              # gradients of the kernels: all blocks, then the recent ones
    float *plain             # gradients of the kernels from tiles computed as plain sums


cdef inline WinoDesk desk_of(const WinoRoom *r, float *own) noexcept nogil:
    """Lay out one thread's buffers at `own`, and clear the zeros."""
    cdef WinoDesk d
    d.v, d.made = own, own + r.v
    d.pixels = d.made + r.products
    d.zeros = d.pixels + r.pixels
    d.taps = d.zeros + r.zeros
    d.off = <int64_t *>(d.taps + r.taps)
    d.odd = <int64_t *>(d.taps + r.taps + r.off)
    d.squares = <float *>d.odd + r.odd
    d.notes = d.squares + r.squares
    d.sums = d.notes + r.notes
    d.plain = own + r.total - r.plain
    memset(d.zeros, 0, r.zeros * 4)
    return d
