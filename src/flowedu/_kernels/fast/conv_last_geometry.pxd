# Channels-last convolution: code shared by its routines.
from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.fast.conv_geometry cimport Axis, Conv, Role, FORWARD, INPUT_GRAD, WEIGHT_GRAD, \
    forward_axis, gradient_axis, is_pointwise, item_of, read_conv, round64


cdef struct Finish:          # applied to an output before it is stored: clip(y * scale + shift, low, high)
    char *scale              # one per output channel; NULL for no change
    char *shift
    double low, high


cdef inline bint is_depthwise(const Conv *k) noexcept nogil:
    return k.groups > 1 and k.cg == 1 and k.og == 1


cdef inline void norm_terms(const fe_view *norm, double epsilon, real *scale, real *shift) noexcept nogil:
    """Fold inference batch norm into y * scale + shift. norm: views of gamma, beta, mean and var."""
    cdef const real *gamma = <const real *>norm[0].data
    cdef const real *beta = <const real *>norm[1].data
    cdef const real *mean = <const real *>norm[2].data
    cdef const real *var = <const real *>norm[3].data
    cdef double a
    cdef int64_t i
    for i in range(norm.shape[0]):
        a = gamma[i] / sqrt(var[i] + epsilon)
        scale[i], shift[i] = <real>a, <real>(beta[i] - mean[i] * a)
