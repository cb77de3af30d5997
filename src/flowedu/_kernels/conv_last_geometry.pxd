# Channels-last convolution: sizes of a call, and what its routines share.
from libc.stdint cimport int32_t, int64_t
from libc.math cimport sqrt
from flowedu._kernels.abi cimport *
from flowedu._kernels.conv_geometry cimport Axis, Conv, Role, FORWARD, INPUT_GRAD, WEIGHT_GRAD, forward_axis, \
    gradient_axis, round64


cdef struct Finish:          # what is done to an output before it is stored: clip(y * scale + shift, low, high)
    char *scale              # one per output channel; NULL: nothing is done
    char *shift
    double low, high


cdef inline Conv read_last(const fe_call *call, Role role) noexcept nogil:
    """ints: stride h, w; pad top, bottom, left, right; dilation h, w; groups. x (n, h, w, c), w (o, c / groups, kh, kw)."""
    cdef const fe_view *x = &call.args[0 if role == FORWARD else call.nin if role == INPUT_GRAD else 1]
    cdef const fe_view *w = &call.args[call.nin if role == WEIGHT_GRAD else 1]
    cdef const fe_view *y = &call.args[call.nin if role == FORWARD else 0]
    cdef const int64_t *a = call.ints
    cdef Conv k
    k.n, k.h, k.w, k.c = x.shape[0], x.shape[1], x.shape[2], x.shape[3]
    k.oh, k.ow, k.o = y.shape[1], y.shape[2], y.shape[3]
    k.kh, k.kw = w.shape[2], w.shape[3]
    k.sh, k.sw, k.top, k.left, k.dh, k.dw, k.groups = a[0], a[1], a[2], a[4], a[6], a[7], a[8]
    k.cg, k.og = k.c // k.groups, k.o // k.groups
    return k


cdef inline bint is_depthwise(const Conv *k) noexcept nogil:
    return k.groups > 1 and k.cg == 1 and k.og == 1


cdef inline bint is_pointwise(const Conv *k) noexcept nogil:
    """Whether every output pixel sees just the input pixel at its own place."""
    return k.kh == 1 and k.kw == 1 and k.sh == 1 and k.sw == 1 and k.groups == 1 and k.top == 0 and k.left == 0 \
        and k.h == k.oh and k.w == k.ow


cdef inline int64_t item_of(const fe_call *call) noexcept nogil:
    return 8 if call.args[0].dtype == FE_F64 else 4
