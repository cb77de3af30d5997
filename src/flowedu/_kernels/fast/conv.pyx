# cython: language_level=3
"""conv2d and its two gradients on NCHW arrays: one body with three roles, because convolution is bilinear.

conv2d: x, w -> y.  conv2d_input_grad: dy, w -> dx.  conv2d_weight_grad: dy, x -> dw.
ints: stride h, w; pad top, bottom, left, right; dilation h, w; groups.

Routines, picked by `algorithm`:
  WINOGRAD   stride 1 and 3x3 to 5x5, enough channels on both sides, float: conv_winograd.pxd.
  POINTWISE  1x1 kernels are matrix products: OpenBLAS, a serial GEMM per thread.
  TILES      register tiles that read the input in place (conv_tiles.pxd, conv_weight.pxd, conv_tile.h).
  TURNED     depthwise, small planes: converted to channels-last blocks (conv_turned.pxd).
  FLAT       one channel at a time (conv_flat.pxd): depthwise, and too few channels to fill a vector.
"""
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.table cimport *
from flowedu._kernels.ops.blas cimport *
from flowedu._kernels.fast.conv_geometry cimport *
from flowedu._kernels.fast.conv_tiles cimport *
from flowedu._kernels.fast.conv_weight cimport *
from flowedu._kernels.fast.conv_flat cimport *
from flowedu._kernels.fast.conv_turned cimport *
from flowedu._kernels.fast.conv_winograd cimport *

cdef enum Algorithm:
    POINTWISE, WINOGRAD, TILES, TURNED, FLAT


cdef Algorithm algorithm(const Conv *k, int64_t item) noexcept nogil:
    """Choose the routine for these shapes."""
    # Channels that share a vector in TILES.
    cdef int64_t side_by_side = k.cg if k.role == INPUT_GRAD else k.og
    if is_pointwise(k) and k.h * k.w >= 64 and k.n > 0:
        return POINTWISE
    if winograd_pays(k, item):
        return WINOGRAD
    if turning_pays(k):
        return TURNED
    if side_by_side * 4 <= lanes(item):
        return FLAT
    return TILES


cdef int convolve(fe_call *call, Role role, const fe_team *team, real *tag) noexcept nogil:
    """Compute y from x and w, dx from dy and w, or dw from dy and x."""
    cdef Conv k = read_conv(call, role, False)
    cdef real *a = <real *>call.args[0].data
    cdef real *b = <real *>call.args[1].data
    cdef real *out = <real *>call.args[2].data
    cdef Algorithm how = algorithm(&k, sizeof(real))
    if fe_numel(&call.args[2]) == 0:
        return FE_OK
    if role == WEIGHT_GRAD:
        sum_weights(&k, how, team, a, b, out, call.work)
    elif how == POINTWISE:
        pointwise(&k, team, a, b, out)
    elif how == WINOGRAD:
        winograd(&k, team, <float *>a, <float *>b, <float *>out, call.kept != 0, call.work)
    elif how == TILES:
        correlate(&k, team, a, b, out, call.kept != 0, call.work)
    elif how == TURNED and role == FORWARD:
        turned(&k, team, a, b, out, call.work)
    elif how == TURNED:
        turned(&k, team, out, b, a, call.work)
    elif role == FORWARD:
        flat_forward(&k, team, a, b, out, call.work)
    else:
        flat_input_grad(&k, team, a, b, out, call.work)
    return FE_OK


cdef void sum_weights(const Conv *k, Algorithm how, const fe_team *team, real *dy, real *x, real *dw,
                      char *work) noexcept nogil:
    if how == POINTWISE:
        pointwise_weight(k, team, dy, x, dw)
    elif how == WINOGRAD:
        winograd_weights(k, team, <float *>dy, <float *>x, <float *>dw, work)
    elif how == TURNED:
        turned(k, team, x, dw, dy, work)
    elif how == FLAT:
        flat_weight_grad(k, team, dy, x, dw, work)
    else:
        weight_sums(k, team, dy, x, dw, work)


cdef int64_t room(const fe_call *call, Role role, int nt) noexcept nogil:
    """Return the scratch of all threads, in bytes."""
    cdef Conv k = read_conv(call, role, False)
    cdef int64_t item = item_of(call)
    cdef Algorithm how = algorithm(&k, item)
    if how == FLAT:
        return flat_room(&k, item) * nt
    if how == TURNED:
        return turned_room(&k, item) * nt
    if how == WINOGRAD:
        return wino_bytes(&k, nt)
    return weights_bytes(&k, nt, item) if role == WEIGHT_GRAD else correlate_bytes(&k, nt, item)


cdef void pointwise(const Conv *k, const fe_team *team, real *src, real *w, real *dst) noexcept nogil:
    """Compute y = w x or dx = transpose(w) dy for each image, with planes as rows."""
    cdef int64_t area = k.h * k.w, n, lo, hi, p, q
    cdef int64_t rows = k.o if k.role == FORWARD else k.c, inner = k.c if k.role == FORWARD else k.o
    if k.n >= team.nt:
        fe_split(k.n, 1, team, &lo, &hi)
        p, q = 0, area
    else:                                    # few images: every thread takes a band of the pixels of each
        lo, hi = 0, k.n
        fe_split(area, 16, team, &p, &q)
    for n in range(lo, hi):
        gemm(Product(k.role == INPUT_GRAD, False, rows, q - p, inner, k.c, area, area), w,
             src + n * inner * area + p, <real>1, <real>0, dst + n * rows * area + p)


cdef void pointwise_weight(const Conv *k, const fe_team *team, real *dy, real *x, real *dw) noexcept nogil:
    """Compute dw = sum over images of dy transpose(x); each thread owns a band of dw's longer side."""
    cdef int64_t area = k.h * k.w, n, o = 0, c = 0, rows = k.o, cols = k.c
    if k.o >= k.c:
        fe_split(k.o, 8, team, &o, &rows)
        rows -= o
    else:
        fe_split(k.c, 8, team, &c, &cols)
        cols -= c
    for n in range(k.n):
        gemm(Product(False, True, rows, cols, area, area, area, k.c), dy + (n * k.o + o) * area,
             x + (n * k.c + c) * area, <real>1, <real>(n > 0), dw + o * k.c + c)


include "conv_roles.pxi"


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}"""
    return roles("conv2d")
