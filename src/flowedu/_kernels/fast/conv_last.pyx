# cython: language_level=3
"""Convolution of channels-last images (NHWC) and its two gradients, and convolution fused with batch norm and
clipping.

conv2d_last: x, w -> y.  conv2d_last_input_grad: dy, w -> dx.  conv2d_last_weight_grad: dy, x -> dw.
conv2d_last_norm: x, w, gamma, beta, mean, var -> y.  reals of the last: epsilon, low, high.
ints: stride h, w; pad top, bottom, left, right; dilation h, w; groups. Weights are (o, c / groups, kh, kw),
as for NCHW.

Depthwise convolutions use the loops of conv_last_depth.pxd; all others are matrix products
(conv_last_dense.pxd).
"""
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.table cimport *
from flowedu._kernels.ops.blas cimport *
from flowedu._kernels.fast.conv_last_geometry cimport *
from flowedu._kernels.fast.conv_last_depth cimport *
from flowedu._kernels.fast.conv_last_dense cimport *


cdef void finished(const Conv *k, const fe_team *team, real *x, real *w, real *y, Finish f, bint packed,
                   char *work) noexcept nogil:
    if is_depthwise(k):
        depth_forward(k, team, x, w, y, f, packed, work)
    else:
        dense_forward(k, team, x, w, y, f, packed, work)


cdef int convolve(fe_call *call, Role role, const fe_team *team, real *tag) noexcept nogil:
    """Compute y from x and w, dx from dy and w, or dw from dy and x."""
    cdef Conv k = read_conv(call, role, True)
    cdef real *a = <real *>call.args[0].data
    cdef real *b = <real *>call.args[1].data
    cdef real *out = <real *>call.args[2].data
    cdef bint depth = is_depthwise(&k)
    if fe_numel(&call.args[2]) == 0:
        return FE_OK
    if role == FORWARD:
        finished(&k, team, a, b, out, Finish(NULL, NULL, 0, 0), call.kept != 0, call.work)
    elif role == INPUT_GRAD and depth:
        depth_input_grad(&k, team, a, b, out, call.work)
    elif role == INPUT_GRAD:
        dense_input_grad(&k, team, a, b, out, call.work)
    elif depth:
        depth_weight_grad(&k, team, a, b, out, call.work)
    else:
        dense_weight_grad(&k, team, a, b, out, call.work)
    return FE_OK


cdef int64_t room(const fe_call *call, Role role, int nt) noexcept nogil:
    """Return the scratch of all threads, in bytes."""
    cdef Conv k = read_conv(call, role, True)
    cdef int64_t item = item_of(call)
    return (depth_room(&k, item) * nt if is_depthwise(&k)
            else dense_shared(&k, item) + dense_room(&k, item) * nt)


cdef int conv2d_last_norm(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """Convolve, then apply batch norm and clipping; every thread computes scale and shift for itself."""
    cdef Conv k = read_conv(call, FORWARD, True)
    cdef real *scale = <real *>(call.work + team.tid * 2 * round64(k.o * sizeof(real)))
    cdef real *shift = <real *>(<char *>scale + round64(k.o * sizeof(real)))
    if not call.kept:
        norm_terms(&call.args[2], call.reals[0], scale, shift)
    if fe_numel(&call.args[6]) > 0:
        finished(&k, team, <real *>call.args[0].data, <real *>call.args[1].data, <real *>call.args[6].data,
                 Finish(<char *>scale, <char *>shift, call.reals[1], call.reals[2]), call.kept != 0,
                 call.work + team.nt * 2 * round64(k.o * sizeof(real)))
    return FE_OK


cdef int64_t norm_room(const fe_call *call, int nt) noexcept nogil:
    return room(call, FORWARD, nt) + nt * 2 * round64(call.args[6].shape[3] * item_of(call))


include "conv_roles.pxi"


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}"""
    return {**roles("conv2d_last"),
            "conv2d_last_norm": of_reals(<void *>conv2d_last_norm[float], <void *>conv2d_last_norm[double],
                                         <void *>norm_room)}
