# Sizes of a pooling call, and the range of inputs of each window.
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *

cdef struct Pool:
    int64_t planes, h, w, oh, ow, kh, kw, sh, sw, top, left
    bint halves              # 2x2 windows without overlap or padding: the common case, with its own loops


cdef inline Pool read_pool(const fe_call *call, const fe_view *x, const fe_view *y) noexcept nogil:
    cdef Pool p
    cdef const int64_t *a = call.ints
    p.planes = x.shape[0] * x.shape[1]
    p.h, p.w, p.oh, p.ow = x.shape[2], x.shape[3], y.shape[2], y.shape[3]
    p.kh, p.kw, p.sh, p.sw, p.top, p.left = a[0], a[1], a[2], a[3], a[4], a[6]
    p.halves = p.kh == 2 and p.kw == 2 and p.sh == 2 and p.sw == 2 and p.top == 0 and p.left == 0 \
        and 2 * p.oh <= p.h and 2 * p.ow <= p.w
    return p


cdef inline int64_t clamp(int64_t v, int64_t lo, int64_t hi) noexcept nogil:
    return lo if v < lo else hi if v > hi else v


cdef inline void valid(int64_t tap, int64_t pad, int64_t stride, int64_t size, int64_t outs, int64_t *lo,
                       int64_t *hi) noexcept nogil:
    """Set [lo, hi) to the outputs whose window position `tap` is in the input, not in the padding."""
    lo[0] = clamp((pad - tap + stride - 1) // stride if pad > tap else 0, 0, outs)
    hi[0] = clamp((size - 1 + pad - tap) // stride + 1 if size + pad > tap else 0, lo[0], outs)


cdef inline int64_t real_elements(int64_t out, int64_t stride, int64_t pad, int64_t kernel,
                                  int64_t size) noexcept nogil:
    """Return how many of a window's positions along one axis are not padding."""
    return clamp(out * stride - pad + kernel, 0, size) - clamp(out * stride - pad, 0, size)


cdef inline int64_t band_rows(const Pool *p) noexcept nogil:
    """Return the output rows per band: few enough to stay in the L1 cache, enough to share a loop's
    set-up."""
    return max(2048 // max(p.ow, 1), 1)


cdef inline int64_t copy_pitch(const Pool *p) noexcept nogil:
    """Return the row length of the padded copy: whole vectors of outputs, whose last lanes may be unused."""
    return ((p.ow + 15) // 16 * 16 - 1) * p.sw + p.kw
