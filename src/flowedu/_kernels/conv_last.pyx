# cython: language_level=3
"""Convolution of channels-last images (NHWC), its two gradients, and with inference batch norm and clipping behind it.

conv2d_last: x, w -> y.  conv2d_last_input_grad: dy, w -> dx.  conv2d_last_weight_grad: dy, x -> dw.
conv2d_last_norm: x, w, gamma, beta, mean, var -> y.  reals of the last: epsilon, low, high.
ints: stride h, w; pad top, bottom, left, right; dilation h, w; groups. Weights are (o, c / groups, kh, kw), as for NCHW.

Depthwise convolutions have loops of their own (conv_last_depth.pxd), all others are matrix products (conv_last_dense.pxd).
"""
from libc.math cimport sqrt
from libc.stdint cimport int64_t
from flowedu._kernels.abi cimport *
from flowedu._kernels.blas cimport *
from flowedu._kernels.conv_last_geometry cimport *
from flowedu._kernels.conv_last_depth cimport *
from flowedu._kernels.conv_last_dense cimport *


cdef void forward(const Conv *k, const fe_team *team, real *x, real *w, real *y, Finish f, char *work) noexcept nogil:
    if k.n * k.o * k.oh * k.ow == 0:
        return
    if is_depthwise(k):
        depth_forward(k, team, x, w, y, f, work)
    else:
        dense_forward(k, team, x, w, y, f, work)


cdef int conv2d_last(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef Conv k = read_last(call, FORWARD)
    forward(&k, team, <real *>call.args[0].data, <real *>call.args[1].data, <real *>call.args[2].data,
            Finish(NULL, NULL, 0, 0), call.work)
    return FE_OK


cdef int conv2d_last_norm(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """Batch norm with known statistics is y * scale + shift. Every thread works them out for itself."""
    cdef Conv k = read_last(call, FORWARD)
    cdef const real *gamma = <const real *>call.args[2].data
    cdef const real *beta = <const real *>call.args[3].data
    cdef const real *mean = <const real *>call.args[4].data
    cdef const real *var = <const real *>call.args[5].data
    cdef real *scale = <real *>(call.work + team.tid * 2 * round64(k.o * sizeof(real)))
    cdef real *shift = <real *>(<char *>scale + round64(k.o * sizeof(real)))
    cdef double a
    cdef int64_t i
    for i in range(k.o):
        a = gamma[i] / sqrt(var[i] + call.reals[0])
        scale[i], shift[i] = <real>a, <real>(beta[i] - mean[i] * a)
    forward(&k, team, <real *>call.args[0].data, <real *>call.args[1].data, <real *>call.args[6].data,
            Finish(<char *>scale, <char *>shift, call.reals[1], call.reals[2]),
            call.work + team.nt * 2 * round64(k.o * sizeof(real)))
    return FE_OK


cdef int conv2d_last_input_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef Conv k = read_last(call, INPUT_GRAD)
    cdef real *dy = <real *>call.args[0].data
    cdef real *w = <real *>call.args[1].data
    cdef real *dx = <real *>call.args[2].data
    if k.n * k.c * k.h * k.w == 0:
        return FE_OK
    if is_depthwise(&k):
        depth_input_grad(&k, team, dy, w, dx, call.work)
    else:
        dense_input_grad(&k, team, dy, w, dx, call.work)
    return FE_OK


cdef int conv2d_last_weight_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef Conv k = read_last(call, WEIGHT_GRAD)
    cdef real *dy = <real *>call.args[0].data
    cdef real *x = <real *>call.args[1].data
    cdef real *dw = <real *>call.args[2].data
    if k.o * k.cg * k.kh * k.kw == 0:
        return FE_OK
    if is_depthwise(&k):
        depth_weight_grad(&k, team, dy, x, dw, call.work)
    else:
        dense_weight_grad(&k, team, dy, x, dw, call.work)
    return FE_OK


cdef int64_t room(const Conv *k, Role role, int64_t item, int nt) noexcept nogil:
    if is_depthwise(k):
        return depth_room(k, item) * nt
    return dense_shared(k, item) + dense_room(k, role, item) * nt


cdef int64_t forward_work(const fe_call *call, int nt) noexcept nogil:
    cdef Conv k = read_last(call, FORWARD)
    return room(&k, FORWARD, item_of(call), nt)


cdef int64_t norm_work(const fe_call *call, int nt) noexcept nogil:
    cdef Conv k = read_last(call, FORWARD)
    return room(&k, FORWARD, item_of(call), nt) + nt * 2 * round64(k.o * item_of(call))


cdef int64_t input_grad_work(const fe_call *call, int nt) noexcept nogil:
    cdef Conv k = read_last(call, INPUT_GRAD)
    return room(&k, INPUT_GRAD, item_of(call), nt)


cdef int64_t weight_grad_work(const fe_call *call, int nt) noexcept nogil:
    cdef Conv k = read_last(call, WEIGHT_GRAD)
    return room(&k, WEIGHT_GRAD, item_of(call), nt)


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}"""
    return {
        "conv2d_last": {FE_F32: (<size_t><void *>conv2d_last[float], <size_t><void *>forward_work),
                        FE_F64: (<size_t><void *>conv2d_last[double], <size_t><void *>forward_work)},
        "conv2d_last_norm": {FE_F32: (<size_t><void *>conv2d_last_norm[float], <size_t><void *>norm_work),
                             FE_F64: (<size_t><void *>conv2d_last_norm[double], <size_t><void *>norm_work)},
        "conv2d_last_input_grad": {
            FE_F32: (<size_t><void *>conv2d_last_input_grad[float], <size_t><void *>input_grad_work),
            FE_F64: (<size_t><void *>conv2d_last_input_grad[double], <size_t><void *>input_grad_work)},
        "conv2d_last_weight_grad": {
            FE_F32: (<size_t><void *>conv2d_last_weight_grad[float], <size_t><void *>weight_grad_work),
            FE_F64: (<size_t><void *>conv2d_last_weight_grad[double], <size_t><void *>weight_grad_work)}}


def bind(size_t sgemm, size_t dgemm):
    """Give this module OpenBLAS's two functions (see _kernels/__init__.py)."""
    global fe_sgemm, fe_dgemm
    fe_sgemm = <fe_sgemm_t>sgemm
    fe_dgemm = <fe_dgemm_t>dgemm
