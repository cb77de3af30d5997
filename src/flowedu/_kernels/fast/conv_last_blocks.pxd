# Dense convolution of channels-last images by the blocks of product_tile.h. The rows of the matrix product
# are the patches of output pixels, read in place: a row of the kernel reads kw * c contiguous values, and the
# values of the next output pixel begin sw * c further on. At the edges the part of the kernel over the
# padding is skipped.
from flowedu._kernels.fast.product_packed cimport *

cdef enum:
    NEAR = 262144            # elements of weights that stay in the L2 cache while pixels are processed


cdef inline int64_t depth_of_patch(const Conv *k) noexcept nogil:
    return k.kh * k.kw * k.cg


cdef inline bint by_blocks(const Conv *k) noexcept nogil:
    """Return True if flowedu's own blocks multiply. With narrow vectors OpenBLAS is faster: it selects
    kernels at run time."""
    return k.role == FORWARD and FE_VBYTES >= 32 and (
        is_pointwise(k) or k.groups == k.dw == 1 and depth_of_patch(k) * k.o <= NEAR)


cdef inline Conv as_matrix(const Conv *k) noexcept nogil:
    return pointwise(k.n * k.oh * k.ow, depth_of_patch(k), k.o)


cdef inline int64_t blocks_shared(const Conv *k, int64_t item) noexcept nogil:
    """Return the scratch shared by all threads: the packed weights, preceded by (o, kernel position, channel)
    weights."""
    cdef Conv m = as_matrix(k)
    return matrix_bytes(&m, item) + (0 if is_pointwise(k) else round64(k.o * m.c * item))


cdef inline int64_t blocks_room(const Conv *k) noexcept nogil:
    cdef Conv m = as_matrix(k)
    return pack_room(&m)


cdef inline void turn(const Conv *k, real *src, real *dst, bint back, const fe_team *team) noexcept nogil:
    """Rearrange weights (o, c, position) to (o, position, c), or back."""
    cdef int64_t lo, hi, o, c, t, taps = k.kh * k.kw, size = taps * k.cg
    fe_split(k.o, 1, team, &lo, &hi)
    for o in range(lo, hi):
        for t in range(taps):
            for c in range(k.cg):
                if back:
                    dst[o * size + c * taps + t] = src[o * size + t * k.cg + c]
                else:
                    dst[o * size + t * k.cg + c] = src[o * size + c * taps + t]


cdef inline void pack(const Conv *k, const fe_team *team, real *w, const real *scale, char *work,
                      char *rooms) noexcept nogil:
    """Pack the weights. scale: per output channel, or NULL. rooms: blocks_room bytes for each thread."""
    cdef Conv m = as_matrix(k)
    cdef real *turned = <real *>(work + matrix_bytes(&m, sizeof(real)))
    if not is_pointwise(k):
        turn(k, w, turned, False, team)
        fe_wait(team)
        w = turned
    if scale == NULL:
        pack_product(&m, team, w, work, rooms)
    else:
        pack_scaled(&m, team, w, scale, work, rooms)


cdef inline void pixel_row(const Conv *k, const Packed *p, Slabs sl, int64_t s, int64_t row,
                           real *y) noexcept nogil:
    """Compute the output channels of slab s of one row of pixels, which begins at y."""
    cdef int64_t top = row % k.oh * k.sh - k.top, left, i, j, j2, u = 0, rows
    cdef int64_t begin = min(max(up(k.left, k.sw), 0),
                             k.ow), end = max(min(down(k.w - k.kw + k.left, k.sw) + 1, k.ow), begin)
    cdef fe_block b = block_of(p, sl, s, sizeof(real))
    cdef int64_t m0 = slab_start(sl, s) * sl.lanes, ld = slab_start(sl, s + 1) * sl.lanes - m0
    cdef real *x
    cdef real *mat
    i = min(max(up(-top, k.dh), 0), k.kh)
    b.parts, b.part_x, b.part_m = (max(min(down(k.h - 1 - top, k.dh) + 1, k.kh) - i, 0), k.dh * k.w * k.c,
                                   k.kw * k.c * ld)
    b.ldx, b.add, b.last = k.sw * k.c, False, True
    x = <real *>p.x + (row // k.oh * k.h + top + i * k.dh) * k.w * k.c
    mat = <real *>p.mat + m0 * p.depth + i * b.part_m
    while u < k.ow:
        left = u * k.sw - k.left
        j, j2 = min(max(-left, 0), k.kw), min(max(k.w - left, 0), k.kw)
        rows = 1 if u < begin or u >= end else end - u
        b.steps = max(j2 - j, 0) * k.c
        blocks(y, <int>(ld // sl.lanes), &b, rows, x + (left + j) * k.c, mat + j * k.c * ld, y + m0 + u * k.o)
        u += rows


cdef inline void blocks_forward(const Conv *k, const fe_team *team, real *x, real *w, real *y, Finish f,
                                bint packed, char *work) noexcept nogil:
    """Convolve. packed: an earlier call has already packed the weights into `work`."""
    cdef Packed p = Packed(k.n * k.oh * k.ow, k.o, depth_of_patch(k), k.c, k.o, <char *>x, work, <char *>y,
                           f, NULL)
    cdef Slabs sl = slabs_of(k.o, sizeof(real))
    cdef int64_t t, lo, hi
    if not packed:
        pack(k, team, w, <real *>f.scale, work, work + blocks_shared(k, sizeof(real)))
    if is_pointwise(k):
        packed_product(&p, team, x)
        return
    fe_split(k.n * k.oh * sl.count, 1, team, &lo, &hi)
    for t in range(lo, hi):
        pixel_row(k, &p, sl, t % sl.count, t // sl.count, y + t // sl.count * k.ow * k.o)
