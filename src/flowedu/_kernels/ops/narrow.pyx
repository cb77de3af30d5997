# cython: language_level=3
"""16-bit floats for any kernel of float32: what it reads is widened into scratch, what it writes is rounded once from there.

    wide = Wide(kernel, work, extra)                # of float32: addresses, and an object with one, or None
    (KERNEL, WORK), wide                            # the kernel of a call with 16-bit floats, and its `extra`

Slower than a kernel that loads 16-bit floats itself, and takes the memory of float32 while it runs; right for all.
Scratch: [fe_call][views][a float32 array for each 16-bit argument][the kernel's own scratch].
"""
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
from flowedu._kernels.core.abi cimport *

cdef extern from "halves.h" nogil:
    ctypedef long double half "fe_half"
    ctypedef unsigned short bfloat "fe_bf16"
    float fe_from_f16(half)
    half fe_to_f16(float)
    float fe_from_bf16(bfloat)
    bfloat fe_to_bf16(float)

cdef struct Kernel:
    fe_kernel fn
    fe_work work
    const void *extra
    int64_t written                                 # bit i: input i is changed


cdef inline int64_t rounded(int64_t n) noexcept nogil:
    return (n + 63) // 64 * 64


cdef inline bint is_half(const fe_view *v) noexcept nogil:
    return v.dtype == FE_F16 or v.dtype == FE_BF16


cdef int64_t widened(const fe_view *v, fe_view *w) noexcept nogil:
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


cdef int64_t heads(const fe_call *call) noexcept nogil:
    return rounded(sizeof(fe_call)) + rounded(call.nargs * sizeof(fe_view))


cdef int64_t laid_out(const fe_call *call, fe_view *views, char *at) noexcept nogil:
    """Fills `views`; their data from `at` on. Returns the bytes of all arrays."""
    cdef int64_t used = 0, n
    cdef int i
    for i in range(call.nargs):
        if is_half(&call.args[i]):
            n = widened(&call.args[i], &views[i])
            views[i].data = at + used if at else NULL
            used += rounded(n * 4)
        else:
            views[i] = call.args[i]
    return used


cdef int64_t work(const fe_call *call, int nt) noexcept nogil:
    cdef const Kernel *k = <const Kernel *>call.extra
    cdef fe_call wide
    cdef int64_t used, own = 0
    cdef fe_view *views = <fe_view *>malloc(call.nargs * sizeof(fe_view))
    if views == NULL:
        return -1
    used = laid_out(call, views, NULL)
    if k.work != NULL:
        wide = call[0]
        wide.args, wide.extra, wide.fn = views, k.extra, k.fn
        own = k.work(&wide, nt)
    free(views)
    return own if own < 0 else heads(call) + used + own


cdef void move(const fe_view *narrow, const fe_view *wide, bint widen, const fe_team *team) noexcept nogil:
    """Between a 16-bit argument and its float32 array, this thread's part. Broadcast axes count once."""
    cdef int64_t shape[FE_MAX_DIM]
    cdef int64_t n = 1, lo, hi, i, rest, at
    cdef int d
    cdef bint flat = True
    cdef half *h = <half *>narrow.data
    cdef bfloat *b = <bfloat *>narrow.data
    cdef float *w = <float *>wide.data
    for d in range(narrow.ndim - 1, -1, -1):
        shape[d] = 1 if narrow.stride[d] == 0 and narrow.shape[d] > 1 else narrow.shape[d]           # 0 stays 0
        flat = flat and (shape[d] <= 1 or narrow.stride[d] == n)
        n *= shape[d]
    fe_split(n, 64, team, &lo, &hi)
    if flat and widen:
        if narrow.dtype == FE_F16:
            for i in range(lo, hi):
                w[i] = fe_from_f16(h[i])
        else:
            for i in range(lo, hi):
                w[i] = fe_from_bf16(b[i])
        return
    if flat:
        if narrow.dtype == FE_F16:
            for i in range(lo, hi):
                h[i] = fe_to_f16(w[i])
        else:
            for i in range(lo, hi):
                b[i] = fe_to_bf16(w[i])
        return
    for i in range(lo, hi):
        rest, at = i, 0
        for d in range(narrow.ndim - 1, -1, -1):
            at += rest % shape[d] * narrow.stride[d]
            rest //= shape[d]
        if widen:
            w[i] = fe_from_f16(h[at]) if narrow.dtype == FE_F16 else fe_from_bf16(b[at])
        elif narrow.dtype == FE_F16:
            h[at] = fe_to_f16(w[i])
        else:
            b[at] = fe_to_bf16(w[i])


cdef int narrow(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    cdef const Kernel *k = <const Kernel *>call.extra
    cdef fe_call *shared = <fe_call *>call.work
    cdef fe_view *views = <fe_view *>(call.work + rounded(sizeof(fe_call)))
    cdef fe_call mine
    cdef int64_t used
    cdef int i, status
    if team.tid == 0:
        used = laid_out(call, views, call.work + heads(call))
        shared[0] = call[0]
        shared.args, shared.extra, shared.fn = views, k.extra, k.fn
        shared.work = call.work + heads(call) + used
    fe_wait(team)
    for i in range(call.nin):
        if is_half(&call.args[i]):
            move(&call.args[i], &views[i], True, team)
    fe_wait(team)
    mine = shared[0]
    status = k.fn(&mine, team, NULL)
    if status != FE_OK:
        call.detail = mine.detail
    fe_wait(team)
    for i in range(call.nargs):
        if is_half(&call.args[i]) and (i >= call.nin or i < 63 and (k.written >> i) & 1):
            move(&call.args[i], &views[i], False, team)
    return status


cdef class Wide:
    """A kernel of float32, as the `extra` of a call with 16-bit floats. Keeps `extra`. written: the inputs it changes."""

    cdef Kernel k
    cdef object keep

    def __cinit__(self, size_t kernel, size_t scratch, extra=None, written=()):
        self.k.fn, self.k.work, self.keep = <fe_kernel><void *>kernel, <fe_work><void *>scratch, extra
        self.k.extra = NULL if extra is None else <const void *><size_t>extra.address
        for i in written:
            self.k.written |= (<int64_t>1) << i

    @property
    def address(self):
        return <size_t>&self.k


KERNEL = (<size_t><void *>narrow, <size_t><void *>work)


def table():
    return {}
