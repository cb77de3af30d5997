# cython: language_level=3
"""conv2d and its two gradients on NCHW arrays. Convolution is bilinear, so the three call one another's code.

conv2d: x, w -> y.  conv2d_input_grad: dy, w -> dx.  conv2d_weight_grad: dy, x -> dw.
ints: stride h, w; pad top, bottom, left, right; dilation h, w; groups.

Routines, picked by `algorithm`:
  WINOGRAD   stride 1 and 3x3 to 5x5, enough channels on both sides, float: conv_winograd.pxd.
  POINTWISE  1x1 kernels are matrix products: OpenBLAS, one serial GEMM per thread.
  TILES      register tiles that read the input in place (conv_tiles.pxd, conv_weight.pxd, conv_tile.h).
  FLAT       one channel at a time (conv_flat.pxd): depthwise, and too few channels to fill a vector.
"""
from libc.stdint cimport int64_t
from flowedu._kernels.abi cimport *
from flowedu._kernels.blas cimport *
from flowedu._kernels.conv_geometry cimport *
from flowedu._kernels.conv_tiles cimport *
from flowedu._kernels.conv_weight cimport *
from flowedu._kernels.conv_flat cimport *
from flowedu._kernels.conv_winograd cimport *

cdef enum Algorithm:
    POINTWISE, WINOGRAD, TILES, FLAT


cdef Algorithm algorithm(const Conv *k, Role role, int64_t item) noexcept nogil:
    """The routine for these shapes."""
    cdef int64_t side_by_side = k.cg if role == INPUT_GRAD else k.og    # channels that share a vector in TILES
    if k.kh == 1 and k.kw == 1 and k.sh == 1 and k.sw == 1 and k.h == k.oh and k.w == k.ow and k.groups == 1 \
            and k.top == 0 and k.left == 0 and k.h * k.w >= 64:
        return POINTWISE
    if winograd_pays(k, role, item):
        return WINOGRAD
    if side_by_side * 4 <= lanes(item):
        return FLAT
    return TILES


cdef inline void gemm(bint ta, bint tb, int64_t m, int64_t n, int64_t k, real *a, int64_t lda, real *b, int64_t ldb,
                      real beta, real *c, int64_t ldc) noexcept nogil:
    if m == 0 or n == 0:
        return
    if real is float:
        fe_gemm_f(ta, tb, <int>m, <int>n, <int>k, 1.0, a, <int>lda, b, <int>ldb, beta, c, <int>ldc)
    else:
        fe_gemm_d(ta, tb, <int>m, <int>n, <int>k, 1.0, a, <int>lda, b, <int>ldb, beta, c, <int>ldc)


cdef void pointwise(const Conv *k, Role role, const fe_team *team, real *src, real *w, real *dst) noexcept nogil:
    """Per image, y = w x or dx = transpose(w) dy, with planes as rows."""
    cdef int64_t area = k.h * k.w, n, lo, hi, p, q
    cdef int64_t rows = k.o if role == FORWARD else k.c, inner = k.c if role == FORWARD else k.o
    if k.n >= team.nt:
        fe_split(k.n, 1, team, &lo, &hi)
        p, q = 0, area
    else:                                    # few images: every thread takes a band of pixels of each
        lo, hi = 0, k.n
        fe_split(area, 16, team, &p, &q)
    for n in range(lo, hi):
        gemm(role == INPUT_GRAD, False, rows, q - p, inner, w, k.c, src + n * inner * area + p, area,
             <real>0, dst + n * rows * area + p, area)


cdef void pointwise_weight(const Conv *k, const fe_team *team, real *dy, real *x, real *dw) noexcept nogil:
    """dw = sum over images of dy transpose(x); each thread owns a band of dw's longer side."""
    cdef int64_t area = k.h * k.w, n, lo, hi
    if k.o >= k.c:
        fe_split(k.o, 8, team, &lo, &hi)
        for n in range(k.n):
            gemm(False, True, hi - lo, k.c, area, dy + (n * k.o + lo) * area, area, x + n * k.c * area, area,
                 <real>(n > 0), dw + lo * k.c, k.c)
    else:
        fe_split(k.c, 8, team, &lo, &hi)
        for n in range(k.n):
            gemm(False, True, k.o, hi - lo, area, dy + n * k.o * area, area, x + (n * k.c + lo) * area, area,
                 <real>(n > 0), dw + lo, k.c)


cdef int conv2d(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef Conv k = read_conv(call, FORWARD)
    cdef real *x = <real *>call.args[0].data
    cdef real *w = <real *>call.args[1].data
    cdef real *y = <real *>call.args[2].data
    cdef Algorithm how = algorithm(&k, FORWARD, sizeof(real))
    if k.n * k.o * k.oh * k.ow == 0:
        return FE_OK
    if how == POINTWISE and k.c > 0:
        pointwise(&k, FORWARD, team, x, w, y)
    elif how == WINOGRAD:
        winograd(&k, FORWARD, team, <float *>x, <float *>w, <float *>y, call.work)
    elif how == FLAT:
        flat_forward(&k, team, x, w, y, call.work)
    else:
        correlate(&k, FORWARD, team, x, w, y, call.work)
    return FE_OK


cdef int conv2d_input_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef Conv k = read_conv(call, INPUT_GRAD)
    cdef real *dy = <real *>call.args[0].data
    cdef real *w = <real *>call.args[1].data
    cdef real *dx = <real *>call.args[2].data
    cdef Algorithm how = algorithm(&k, INPUT_GRAD, sizeof(real))
    if k.n * k.c * k.h * k.w == 0:
        return FE_OK
    if how == POINTWISE and k.o > 0:
        pointwise(&k, INPUT_GRAD, team, dy, w, dx)
    elif how == WINOGRAD:
        winograd(&k, INPUT_GRAD, team, <float *>dy, <float *>w, <float *>dx, call.work)
    elif how == FLAT:
        flat_input_grad(&k, team, dy, w, dx, call.work)
    else:
        correlate(&k, INPUT_GRAD, team, dy, w, dx, call.work)
    return FE_OK


cdef int conv2d_weight_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef Conv k = read_conv(call, WEIGHT_GRAD)
    cdef real *dy = <real *>call.args[0].data
    cdef real *x = <real *>call.args[1].data
    cdef real *dw = <real *>call.args[2].data
    cdef Algorithm how = algorithm(&k, WEIGHT_GRAD, sizeof(real))
    if k.o * k.cg * k.kh * k.kw == 0:
        return FE_OK
    if how == POINTWISE and k.n > 0:
        pointwise_weight(&k, team, dy, x, dw)
    elif how == WINOGRAD:
        winograd_weights(&k, team, <float *>dy, <float *>x, <float *>dw, call.work)
    elif how == FLAT:
        flat_weight_grad(&k, team, dy, x, dw, call.work)
    else:
        weight_sums(&k, team, dy, x, dw, call.work)
    return FE_OK


cdef int64_t correlate_work(const Conv *k, Role role, int64_t item, int nt) noexcept nogil:
    cdef Algorithm how = algorithm(k, role, item)
    if how == FLAT:
        return flat_room(k, role, item) * nt
    if how == WINOGRAD:
        return wino_bytes(k, role, nt)
    return round64(matrix_elements(k, role, item) * item) + correlate_room(k, role, item).total * nt


cdef int64_t conv2d_work(const fe_call *call, int nt) noexcept nogil:
    cdef Conv k = read_conv(call, FORWARD)
    return correlate_work(&k, FORWARD, 8 if call.args[0].dtype == FE_F64 else 4, nt)


cdef int64_t conv2d_input_grad_work(const fe_call *call, int nt) noexcept nogil:
    cdef Conv k = read_conv(call, INPUT_GRAD)
    return correlate_work(&k, INPUT_GRAD, 8 if call.args[0].dtype == FE_F64 else 4, nt)


cdef int64_t conv2d_weight_grad_work(const fe_call *call, int nt) noexcept nogil:
    cdef Conv k = read_conv(call, WEIGHT_GRAD)
    cdef int64_t item = 8 if call.args[0].dtype == FE_F64 else 4
    cdef Gather g = weight_gather(&k)
    cdef Algorithm how = algorithm(&k, WEIGHT_GRAD, item)
    if how == FLAT:
        return flat_room(&k, WEIGHT_GRAD, item) * nt
    if how == WINOGRAD:
        return wino_bytes(&k, WEIGHT_GRAD, nt)
    return weight_room(&k, &g, nt, item).total * nt


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}"""
    return {
        "conv2d": {FE_F32: (<size_t><void *>conv2d[float], <size_t><void *>conv2d_work),
                   FE_F64: (<size_t><void *>conv2d[double], <size_t><void *>conv2d_work)},
        "conv2d_input_grad": {FE_F32: (<size_t><void *>conv2d_input_grad[float],
                                       <size_t><void *>conv2d_input_grad_work),
                              FE_F64: (<size_t><void *>conv2d_input_grad[double],
                                       <size_t><void *>conv2d_input_grad_work)},
        "conv2d_weight_grad": {FE_F32: (<size_t><void *>conv2d_weight_grad[float],
                                        <size_t><void *>conv2d_weight_grad_work),
                               FE_F64: (<size_t><void *>conv2d_weight_grad[double],
                                        <size_t><void *>conv2d_weight_grad_work)},
    }


def bind(size_t sgemm, size_t dgemm):
    """Give this module OpenBLAS's two functions (see _kernels/__init__.py)."""
    global fe_sgemm, fe_dgemm
    fe_sgemm = <fe_sgemm_t>sgemm
    fe_dgemm = <fe_dgemm_t>dgemm
