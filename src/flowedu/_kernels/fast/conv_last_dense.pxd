# Dense convolution of channels-last images as a matrix product with the weights. Each output pixel is a row:
# its patch of the input (kernel row, kernel column, channel). A 1x1 kernel needs no patches, because the
# input is the matrix.
#
# Each thread runs one serial GEMM per block. Blocks of outputs that need scale, shift and clip are small
# enough to be still in the cache then. Most forward convolutions use conv_last_blocks.pxd instead.
from libc.string cimport memcpy, memset
from flowedu._kernels.ops.blas cimport *
from flowedu._kernels.fast.conv_last_geometry cimport *
from flowedu._kernels.fast.conv_last_blocks cimport *

cdef enum:
    PATCH = 65536            # elements of a block of patches
    FINISH = 32768           # elements of a block of outputs that are finished while in cache


cdef inline int64_t block_rows(const Conv *k) noexcept nogil:
    return max(<int64_t>(PATCH // max(depth_of_patch(k), 1)), 16)


cdef inline int64_t dense_shared(const Conv *k, int64_t item) noexcept nogil:
    """Return the scratch shared by all threads: the weights, packed or as (o, kernel position, channel)."""
    if by_blocks(k):
        return blocks_shared(k, item)
    return 0 if is_pointwise(k) else round64(k.o * depth_of_patch(k) * item)


cdef inline int64_t dense_room(const Conv *k, int64_t item) noexcept nogil:
    """Return one thread's scratch: a block of patches; for the weight gradient also the thread's sum."""
    cdef int64_t room = 0
    if by_blocks(k):
        room = blocks_room(k)
    elif not is_pointwise(k):
        room = round64(block_rows(k) * depth_of_patch(k) * item)
    return room + (round64(k.o * depth_of_patch(k) * item) if k.role == WEIGHT_GRAD and sum_apart(k) else 0)


cdef inline bint sum_apart(const Conv *k) noexcept nogil:
    """Return True if each thread sums the weight gradient over part of the pixels, False if each owns part of
    the weights."""
    return not is_pointwise(k) or k.n * k.h * k.w >= 16 * max(k.o, k.c)


cdef inline void patches(const Conv *k, int64_t group, int64_t first, int64_t rows, real *x, real *to,
                         bint back) noexcept nogil:
    """Fill `rows` patches from pixel `first` on. back: add the patches to the pixels of x instead."""
    cdef int64_t p, oy, ox, i, j, y, u, c, size = k.cg
    cdef real *image
    cdef real *at
    for p in range(first, first + rows):
        image = x + p // (k.oh * k.ow) * k.h * k.w * k.c + group * k.cg
        oy, ox = p // k.ow % k.oh * k.sh - k.top, p % k.ow * k.sw - k.left
        for i in range(k.kh):
            y = oy + i * k.dh
            if not back and k.dw == 1 and k.groups == 1 and 0 <= y < k.h and ox >= 0 and ox + k.kw <= k.w:
                memcpy(to, image + (y * k.w + ox) * k.c, k.kw * size * sizeof(real))
                to += k.kw * size
                continue
            for j in range(k.kw):
                u = ox + j * k.dw
                if 0 <= y < k.h and 0 <= u < k.w:
                    at = image + (y * k.w + u) * k.c
                    if back:
                        for c in range(size):
                            at[c] += to[c]
                    else:
                        for c in range(size):
                            to[c] = at[c]
                elif not back and size > 0:            # without channels there is no memory to clear
                    memset(to, 0, size * sizeof(real))
                to += size


cdef inline void finish(real *y, int64_t ld, int64_t rows, int64_t cols, const real *scale, const real *shift,
                        real low, real high) noexcept nogil:
    cdef int64_t i, j
    cdef real v
    for i in range(rows):
        for j in range(cols):
            v = y[i * ld + j] * scale[j] + shift[j]
            v = low if v < low else v
            y[i * ld + j] = high if v > high else v


cdef inline void dense_forward(const Conv *k, const fe_team *team, real *x, real *w, real *y, Finish f,
                               bint packed, char *work) noexcept nogil:
    """Convolve. packed: an earlier call has already packed the weights into `work`."""
    cdef int64_t rows = k.n * k.oh * k.ow, size = depth_of_patch(k), lo, hi, n, g, q = 0, end = k.o, step
    cdef bint direct = is_pointwise(k)
    cdef real *weights = w
    cdef real *own = <real *>(work + dense_shared(k, sizeof(real)) + team.tid * dense_room(k, sizeof(real)))
    cdef real *scale = <real *>f.scale
    cdef real *shift = <real *>f.shift
    if by_blocks(k):
        blocks_forward(k, team, x, w, y, f, packed, work)
        return
    if not direct:
        weights = <real *>work
        if not packed:
            turn(k, w, weights, False, team)
            fe_wait(team)
    if direct and rows < k.o:                # few pixels: threads share the output channels
        lo, hi = 0, rows
        fe_split(k.o, 16, team, &q, &end)
    else:
        fe_split(rows, 8, team, &lo, &hi)
    step = (block_rows(k) if not direct else max(FINISH // max(k.o, 1), 64) if scale != NULL
            else max(hi - lo, 1))
    while lo < hi:
        n = min(step, hi - lo)
        if direct:
            gemm(Product(False, True, n, end - q, k.c, k.c, k.c, k.o),
                 x + lo * k.c, weights + q * k.c, <real>1, <real>0, y + lo * k.o + q)
        else:
            for g in range(k.groups):
                patches(k, g, lo, n, x, own, False)
                gemm(Product(False, True, n, k.og, size, size, size, k.o),
                     own, weights + g * k.og * size, <real>1, <real>0, y + lo * k.o + g * k.og)
        if scale != NULL:
            finish(y + lo * k.o + q, k.o, n, end - q, scale + q, shift + q, <real>f.low, <real>f.high)
        lo += n


cdef inline void dense_input_grad(const Conv *k, const fe_team *team, real *dy, real *w, real *dx,
                                  char *work) noexcept nogil:
    cdef int64_t rows = k.n * k.oh * k.ow, size = depth_of_patch(k), lo, hi, n, g, q = 0, end = k.c
    cdef real *weights = <real *>work
    cdef real *own = <real *>(work + dense_shared(k, sizeof(real)) + team.tid * dense_room(k, sizeof(real)))
    if is_pointwise(k):
        if rows < k.c:
            lo, hi = 0, rows
            fe_split(k.c, 16, team, &q, &end)
        else:
            fe_split(rows, 8, team, &lo, &hi)
        gemm(Product(False, False, hi - lo, end - q, k.o, k.o, k.c, k.c),
             dy + lo * k.o, w + q, <real>1, <real>0, dx + lo * k.c + q)
        return
    turn(k, w, weights, False, team)
    fe_wait(team)
    fe_split(k.n, 1, team, &lo, &hi)         # windows overlap, images do not
    memset(dx + lo * k.h * k.w * k.c, 0, (hi - lo) * k.h * k.w * k.c * sizeof(real))
    lo, hi = lo * k.oh * k.ow, hi * k.oh * k.ow
    while lo < hi:
        n = min(block_rows(k), hi - lo)
        for g in range(k.groups):
            gemm(Product(False, False, n, size, k.og, k.o, size, size),
                 dy + lo * k.o + g * k.og, weights + g * k.og * size, <real>1, <real>0, own)
            patches(k, g, lo, n, dx, own, True)
        lo += n


cdef inline void dense_weight_grad(const Conv *k, const fe_team *team, real *dy, real *x, real *dw,
                                   char *work) noexcept nogil:
    cdef int64_t rows = k.n * k.oh * k.ow, size = depth_of_patch(k), lo, hi, n, g, i, part
    cdef int64_t room = dense_room(k, sizeof(real)), total = round64(k.o * size * sizeof(real))
    cdef char *sums
    cdef real *own
    cdef real *block
    cdef real *other
    cdef bint direct = is_pointwise(k)
    if not sum_apart(k):
        if k.o >= k.c:
            fe_split(k.o, 8, team, &lo, &hi)
            gemm(Product(True, False, hi - lo, k.c, rows, k.o, k.c, k.c), dy + lo, x, <real>1, <real>0,
                 dw + lo * k.c)
        else:
            fe_split(k.c, 8, team, &lo, &hi)
            gemm(Product(True, False, k.o, hi - lo, rows, k.o, k.c, k.c), dy, x + lo, <real>1, <real>0,
                 dw + lo)
        return
    work += dense_shared(k, sizeof(real))
    sums = work + room - total                   # of thread 0
    block, own = <real *>(work + team.tid * room), <real *>(sums + team.tid * room)
    memset(own, 0, k.o * size * sizeof(real))
    fe_split(rows, 8, team, &lo, &hi)
    while lo < hi:
        n = hi - lo if direct else min(block_rows(k), hi - lo)
        for g in range(k.groups):
            if not direct:
                patches(k, g, lo, n, x, block, False)
            gemm(Product(True, False, k.og, size, n, k.o, size, size),
                 dy + lo * k.o + g * k.og, x + lo * k.c if direct else block, <real>1, <real>1,
                 own + g * k.og * size)
        lo += n
    fe_wait(team)
    fe_split(k.o * size, 64, team, &lo, &hi)
    for part in range(1, team.nt):
        own, other = <real *>sums, <real *>(sums + part * room)
        for i in range(lo, hi):
            own[i] += other[i]
    if direct:
        memcpy(dw + lo, sums + lo * sizeof(real), (hi - lo) * sizeof(real))
        return
    fe_wait(team)
    turn(k, <real *>sums, dw, True, team)
