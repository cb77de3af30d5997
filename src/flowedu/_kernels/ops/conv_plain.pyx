# cython: language_level=3
"""conv2d as seven plain loops, a reference to read before _kernels/fast/conv.pyx. Only the test that compares
it with the record's definition loads it: register("conv_plain") replaces the fast kernel.

x (n, c, h, w), weights (o, c / groups, kh, kw), y (n, o, ...).
ints: [stride of rows, of columns, padding above, below, left, right, dilation of rows, of columns, groups].
"""
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.table cimport *


cdef int conv2d(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef fe_view *x = &call.args[0]
    cdef fe_view *w = &call.args[1]
    cdef fe_view *y = &call.args[2]
    cdef int64_t *p = <int64_t *>call.ints
    cdef int64_t channels = w.shape[1], lo, hi, plane, i, j, c, k, l, row, column, first
    cdef real *image
    cdef real *weights
    cdef real *out
    cdef real total
    fe_split(y.shape[0] * y.shape[1], 1, team, &lo, &hi)
    for plane in range(lo, hi):                                # one channel of one output image
        first = plane % y.shape[1] // (y.shape[1] // p[8]) * channels
        image = <real *>x.data + (plane // y.shape[1] * x.shape[1] + first) * x.shape[2] * x.shape[3]
        weights = <real *>w.data + plane % y.shape[1] * channels * w.shape[2] * w.shape[3]
        out = <real *>y.data + plane * y.shape[2] * y.shape[3]
        for i in range(y.shape[2]):
            for j in range(y.shape[3]):
                total = 0
                for c in range(channels):
                    for k in range(w.shape[2]):
                        row = i * p[0] - p[2] + k * p[6]
                        for l in range(w.shape[3] if 0 <= row < x.shape[2] else 0):
                            column = j * p[1] - p[4] + l * p[7]
                            if 0 <= column < x.shape[3]:       # outside is padding: zeros
                                total += image[(c * x.shape[2] + row) * x.shape[3] + column] \
                                    * weights[(c * w.shape[2] + k) * w.shape[3] + l]
                out[i * y.shape[3] + j] = total
    return FE_OK


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}"""
    return {"conv2d": of_reals(<void *>conv2d[float], <void *>conv2d[double], NULL)}
