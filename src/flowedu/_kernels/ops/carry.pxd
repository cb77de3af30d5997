# 16-bit floats brought into a float32 array, and rounded back from there. Compiled into every module that cimports it.
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.axes cimport *

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
    """A contiguous float32 view of the same shape, without its data; a broadcast axis stays one. Returns its elements."""
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


cdef inline void run(const fe_view *narrow, char *a, int64_t s, float *w, int64_t t, int64_t n, bint widen) noexcept nogil:
    """n elements at `a`, of the 16-bit type of `narrow` (or float32), to or from `w`; s, t: from one to the next."""
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


cdef inline void carry(const fe_view *narrow, const fe_view *wide, bint widen, const fe_team *team) noexcept nogil:
    """Between a 16-bit argument and its float32 array, this thread's part. Broadcast axes count once. (Rounding only, what is
    float32 itself is copied.)"""
    cdef fe_view v = narrow[0]
    cdef Axis ax[8]
    cdef int64_t lo, hi, i, n, rest, col, s, t
    cdef int64_t item = 4 if narrow.dtype == FE_F32 else 2
    cdef int d, rank
    for d in range(v.ndim):
        if v.stride[d] == 0 and v.shape[d] > 1:
            v.shape[d] = 1
    rank = simplify(wide, &v, ax)
    if rank < 0:
        return
    fe_split(fe_numel(&v), 64, team, &lo, &hi)
    i, col = lo, lo % ax[0].n
    while i < hi:
        s, t, rest = col * ax[0].d, col * ax[0].s, i // ax[0].n
        for d in range(1, rank):
            s += rest % ax[d].n * ax[d].d
            t += rest % ax[d].n * ax[d].s
            rest //= ax[d].n
        n = min(ax[0].n - col, hi - i)
        run(narrow, narrow.data + s * item, ax[0].d, <float *>wide.data + t, ax[0].s, n, widen)
        i += n
        col = 0
