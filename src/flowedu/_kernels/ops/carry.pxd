# Conversion of 16-bit floats to a float32 array, rounded on the way back.
# Compiled into every module that cimports it.
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.ops.axes cimport *

cdef extern from "halves.h" nogil:
    ctypedef long double half "fe_half"
    ctypedef unsigned short bfloat "fe_bf16"
    float fe_from_f16(half)
    half fe_to_f16(float)
    float fe_from_bf16(bfloat)
    bfloat fe_to_bf16(float)
    void fe_widen_f16(const half *, float *, int64_t)
    void fe_round_f16(const float *, half *, int64_t)
    void fe_widen_bf16(const bfloat *, float *, int64_t)
    void fe_round_bf16(const float *, bfloat *, int64_t)


cdef inline int64_t rounded(int64_t n) noexcept nogil:
    return (n + 63) // 64 * 64


cdef inline bint is_half(const fe_view *v) noexcept nogil:
    return v.dtype == FE_F16 or v.dtype == FE_BF16


cdef inline int64_t widened(const fe_view *v, fe_view *w) noexcept nogil:
    """Make `w` a contiguous float32 view of the same shape, without data; broadcast axes stay broadcast.
    Return its elements."""
    cdef int64_t n = 1
    cdef int d
    w[0] = v[0]
    w.dtype = FE_F32
    for d in range(v.ndim - 1, -1, -1):
        if v.stride[d] == 0 and v.shape[d] > 1:
            w.stride[d] = 0
        else:
            w.stride[d] = n
            n *= v.shape[d]
    return n


cdef inline void run(const fe_view *narrow, char *a, int64_t s, float *w, int64_t t, int64_t n,
                     bint widen) noexcept nogil:
    """Convert n elements at `a`, in the dtype of `narrow`, to or from `w`; s and t are the strides of `a` and
    `w`."""
    cdef half *h = <half *>a
    cdef bfloat *b = <bfloat *>a
    cdef float *f = <float *>a
    cdef int64_t i
    if narrow.dtype == FE_F32:
        for i in range(n):
            f[i * s] = w[i * t]
    elif s == 1 and t == 1 and narrow.dtype == FE_BF16:
        if widen:
            fe_widen_bf16(b, w, n)
        else:
            fe_round_bf16(w, b, n)
    elif s == 1 and t == 1:
        if widen:
            fe_widen_f16(h, w, n)
        else:
            fe_round_f16(w, h, n)
    elif narrow.dtype == FE_BF16:
        for i in range(n):
            if widen:
                w[i * t] = fe_from_bf16(b[i * s])
            else:
                b[i * s] = fe_to_bf16(w[i * t])
    else:
        for i in range(n):
            if widen:
                w[i * t] = fe_from_f16(h[i * s])
            else:
                h[i * s] = fe_to_f16(w[i * t])


cdef inline void carry(const fe_view *narrow, const fe_view *wide, bint widen,
                       const fe_team *team) noexcept nogil:
    """Convert this thread's part between a 16-bit argument and its float32 array. Broadcast axes are
    converted once. (When rounding, an argument that is already float32 is copied.)"""
    cdef fe_view v = narrow[0]
    cdef Axis ax[8]
    cdef int64_t at[8]
    cdef int64_t lo, hi, i, n, rest, s = 0, t = 0
    cdef int64_t item = 4 if narrow.dtype == FE_F32 else 2
    cdef int d, rank
    for d in range(v.ndim):
        if v.stride[d] == 0 and v.shape[d] > 1:
            v.shape[d] = 1
    rank = simplify(wide, &v, ax)
    if rank < 0:
        return
    fe_split(fe_numel(&v), 64, team, &lo, &hi)
    i, rest = lo, lo
    for d in range(rank):
        at[d] = rest % ax[d].n
        rest //= ax[d].n
        s += at[d] * ax[d].d
        t += at[d] * ax[d].s
    while i < hi:
        n = min(ax[0].n - at[0], hi - i)
        run(narrow, narrow.data + s * item, ax[0].d, <float *>wide.data + t, ax[0].s, n, widen)
        i += n
        s -= at[0] * ax[0].d                        # the next row
        t -= at[0] * ax[0].s
        at[0], d = 0, 1
        while d < rank:
            at[d] += 1
            s += ax[d].d
            t += ax[d].s
            if at[d] < ax[d].n:
                break
            s -= at[d] * ax[d].d
            t -= at[d] * ax[d].s
            at[d] = 0
            d += 1
