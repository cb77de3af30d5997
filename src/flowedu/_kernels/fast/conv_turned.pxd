# Depthwise convolution of small NCHW planes: a plane of a few pixels does not fill a vector, but several
# channels do. Blocks of channels of a few images are transposed to channels-last order in scratch that stays
# in cache. The routines for channels-last images (conv_last_depth.pxd) compute there, and their result is
# transposed back.
#
# A thread owns its blocks of channels, so no two threads add to one sum: results are bitwise independent of
# the number of threads.
from flowedu._kernels.fast.conv_last_depth cimport *
from flowedu._kernels.fast.transpose cimport transpose

cdef enum:
    SMALL_PLANE = 400                # pixels; rows of larger planes fill vectors without a transposition
    FEWEST = 16                      # channels per block
    IN_CACHE = 131072                # bytes that a block reads and writes


cdef struct Turned:                  # how a call is split into blocks
    int64_t blocks, channels         # number of channel blocks, and the largest block's channels
    int64_t images                   # transposed together
    int64_t x, y                     # pixels of an input image and of an output image
    char *own                        # a thread's scratch: tables, weights, and a block of images and outputs
    char *xs
    char *ys


cdef inline bint turning_pays(const Conv *k) noexcept nogil:
    return is_depthwise(k) and k.c >= FEWEST and (k.sw > 1 or max(k.h * k.w, k.oh * k.ow) <= SMALL_PLANE)


cdef inline Turned turned_of(const Conv *k, int64_t item) noexcept nogil:
    cdef Turned t
    cdef int64_t most
    t.x, t.y = k.h * k.w, k.oh * k.ow
    most = max(IN_CACHE // max((t.x + t.y) * item, 1) // FEWEST * FEWEST, FEWEST)
    t.blocks = min(max((k.c + most - 1) // most, 8), k.c // FEWEST)
    t.channels = (k.c + t.blocks - 1) // t.blocks
    t.images = min(max(IN_CACHE // max((t.x + t.y) * t.channels * item, 1), 1), max(k.n, 1))
    return t


cdef inline Conv block_of(const Conv *k, int64_t channels, int64_t images) noexcept nogil:
    cdef Conv b = k[0]
    b.n, b.c, b.o, b.groups = images, channels, channels, channels
    return b


cdef inline int64_t turned_room(const Conv *k, int64_t item) noexcept nogil:
    """Return one thread's scratch: that of depth_room, and the images of a block."""
    cdef Turned t = turned_of(k, item)
    cdef Conv b = block_of(k, t.channels, t.images)
    return depth_room(&b, item) + round64(t.images * t.channels * t.x
                                          * item) + round64(t.images * t.channels * t.y * item)


cdef inline void turn_images(const Conv *k, real *images, real *turned, const Conv *b, int64_t pixels,
                             bint back) noexcept nogil:
    """Transpose the planes of block b to channels-last pixels, or back."""
    cdef int64_t n
    for n in range(b.n):
        if back:
            transpose(turned + n * b.c * pixels, images + n * k.c * pixels, pixels, b.c, b.c)
        else:
            transpose(images + n * k.c * pixels, turned + n * b.c * pixels, b.c, pixels, pixels)


cdef inline void turned(const Conv *k, const fe_team *team, real *x, real *w, real *y,
                        char *work) noexcept nogil:
    """Run a call of any role; x, w and y are the images, the weights and the outputs, or their gradients."""
    cdef Turned t = turned_of(k, sizeof(real))
    cdef int64_t first, last, block, c, channels, n, taps = k.kh * k.kw
    cdef Conv b = block_of(k, t.channels, t.images)
    cdef real *weights
    t.own = work + team.tid * turned_room(k, sizeof(real))
    t.xs = t.own + depth_room(&b, sizeof(real))
    t.ys = t.xs + round64(t.images * t.channels * t.x * sizeof(real))
    weights = <real *>(t.own + depth_tables(&b))
    fe_split(t.blocks, 1, team, &first, &last)
    for block in range(first, last):
        c = block * k.c // t.blocks
        channels = (block + 1) * k.c // t.blocks - c
        b = block_of(k, channels, t.images)
        if k.role == WEIGHT_GRAD:
            memset(weights, 0, taps * channels * sizeof(real))
        else:
            turn_weights(&b, w + c * taps, weights)
        n = 0
        while n < k.n:
            b.n = min(t.images, k.n - n)
            turned_block(k, &b, &t, x + (n * k.c + c) * t.x, weights, y + (n * k.c + c) * t.y)
            n += t.images
        if k.role == WEIGHT_GRAD:
            transpose(weights, w + c * taps, taps, channels, channels)


cdef inline void turned_block(const Conv *k, const Conv *b, const Turned *t, real *x, real *weights,
                              real *y) noexcept nogil:
    """Compute one block of some images."""
    cdef fe_team alone = fe_team(0, 1, NULL)
    cdef real *xs = <real *>t.xs
    cdef real *ys = <real *>t.ys
    cdef Depth d
    if k.role != INPUT_GRAD:
        turn_images(k, x, xs, b, t.x, False)
    if k.role != FORWARD:
        turn_images(k, y, ys, b, t.y, False)
    if k.role == INPUT_GRAD:
        depth_sweeps_back(b, &alone, ys, weights, xs, t.own)
        turn_images(k, x, xs, b, t.x, True)
    else:
        d = forward_depth(b, &alone, t.own)
        depth_sweep(&d, xs, weights, ys, k.role == WEIGHT_GRAD)
    if k.role == FORWARD:
        turn_images(k, y, ys, b, t.y, True)
