# Channels-last convolution: what its routines share.
from libc.stdint cimport int32_t, int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.fast.conv_geometry cimport Axis, Conv, Role, FORWARD, INPUT_GRAD, WEIGHT_GRAD, forward_axis, \
    gradient_axis, is_pointwise, item_of, read_conv, round64


cdef struct Finish:          # what is done to an output before it is stored: clip(y * scale + shift, low, high)
    char *scale              # one per output channel; NULL: nothing is done
    char *shift
    double low, high


cdef inline bint is_depthwise(const Conv *k) noexcept nogil:
    return k.groups > 1 and k.cg == 1 and k.og == 1
