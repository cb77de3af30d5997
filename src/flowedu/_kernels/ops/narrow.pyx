# cython: language_level=3
"""Adapter that runs any float32 kernel on 16-bit floats: inputs are widened into scratch, outputs rounded
once.

    wide = Wide(kernel, work, written, slices)      # float32 addresses; modified inputs; None or slices
    (KERNEL, WORK), wide                            # the kernel of a call with 16-bit floats, and its `extra`

A small call is widened as a whole. A large one is processed slice by slice (ops/slices.py chooses the axes):
each thread widens the inputs of a slice into its own scratch, calls the kernel alone, and rounds the output.
So scratch does not grow with the sliced arrays. Inputs that every slice reads are widened once and shared. An
output that is not sliced is reduced (sum, maximum or minimum) by each thread, then over the threads, in
order.

Scratch, whole:  [fe_call][views][a float32 array for each 16-bit argument][the kernel's own scratch]
Scratch, sliced: [each thread's views][inputs of every slice]
                 [for each thread: arrays of a slice, results so far, the kernel's own]
"""
from libc.stdint cimport int64_t, int8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.fold cimport Max, Min, Sum, combine
from flowedu._kernels.ops.carry cimport *

cdef enum:
    LOOPS = 4
    SUM = 0
    MAX = 1

cdef struct Kernel:
    fe_kernel fn
    fe_work work
    int64_t written                                 # bit i is set if input i is modified
    int loops, fold                                 # sliced axes, outer ones first; how results are combined
    int64_t size[LOOPS]
    int64_t step[LOOPS]                             # 1 except for the last
    int8_t *loop                                    # [argument * FE_MAX_DIM + axis]: its loop, or -1
    # Attributes of a slice, and of the last, which may be shorter.
    int64_t *ints[2]


# ---- the whole call at once
cdef int64_t heads(const fe_call *call) noexcept nogil:
    return rounded(sizeof(fe_call)) + rounded(call.nargs * sizeof(fe_view))


cdef int64_t laid_out(const fe_call *call, fe_view *views, char *at) noexcept nogil:
    """Fill `views`, with their data from `at` on. Return the bytes of all arrays."""
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


cdef int64_t own_work(const fe_call *call, fe_view *views, const int64_t *ints, int nt) noexcept nogil:
    cdef const Kernel *k = <const Kernel *>call.extra
    cdef fe_call wide = call[0]
    if k.work == NULL:
        return 0
    wide.args, wide.extra, wide.fn, wide.ints = views, NULL, k.fn, ints
    return k.work(&wide, nt)


cdef int whole(fe_call *call, const fe_team *team) noexcept nogil:
    cdef const Kernel *k = <const Kernel *>call.extra
    cdef fe_call *shared = <fe_call *>call.work
    cdef fe_view *views = <fe_view *>(call.work + rounded(sizeof(fe_call)))
    cdef fe_call mine
    cdef int64_t used
    cdef int i, status
    if team.tid == 0:
        used = laid_out(call, views, call.work + heads(call))
        shared[0] = call[0]
        shared.args, shared.extra, shared.fn = views, NULL, k.fn
        shared.work, shared.kept = call.work + heads(call) + used, 0
    fe_wait(team)
    for i in range(call.nin):
        if is_half(&call.args[i]):
            carry(&call.args[i], &views[i], True, team)
    fe_wait(team)
    mine = shared[0]
    status = k.fn(&mine, team, NULL)
    if status != FE_OK:
        call.detail = mine.detail
    fe_wait(team)
    for i in range(call.nargs):
        if is_half(&call.args[i]) and (i >= call.nin or i < 63 and (k.written >> i) & 1):
            carry(&call.args[i], &views[i], False, team)
    return status


# ---- slice by slice
cdef int64_t slices(const Kernel *k) noexcept nogil:
    cdef int64_t n = 1
    cdef int i
    for i in range(k.loops):
        n *= (k.size[i] + k.step[i] - 1) // k.step[i]
    return n if k.loops else 0


cdef bint divided(const Kernel *k, int arg) noexcept nogil:
    """Return True if slices have different parts of this argument."""
    cdef int d
    for d in range(FE_MAX_DIM):
        if k.loop[arg * FE_MAX_DIM + d] >= 0:
            return True
    return False


cdef bint cut(const Kernel *k, const fe_view *v, int arg, int64_t slice, fe_view *part) noexcept nogil:
    """Set `part` to the part of an argument that belongs to a slice. Return True if the slice is short."""
    cdef int64_t at[LOOPS]
    cdef int64_t n, off = 0
    cdef int i, d
    for i in range(k.loops - 1, -1, -1):
        n = (k.size[i] + k.step[i] - 1) // k.step[i]
        at[i] = slice % n * k.step[i]
        slice //= n
    part[0] = v[0]
    for d in range(v.ndim):
        i = k.loop[arg * FE_MAX_DIM + d]
        if i >= 0:
            part.shape[d] = min(k.step[i], k.size[i] - at[i])
            off += at[i] * v.stride[d]
    if part.data != NULL:
        part.data += off * fe_item[v.dtype]
    i = k.loops - 1
    return at[i] + k.step[i] > k.size[i]


cdef int64_t shared_arrays(const fe_call *call) noexcept nogil:
    """Return the bytes of the arrays that every slice reads."""
    cdef const Kernel *k = <const Kernel *>call.extra
    cdef int64_t used = 0
    cdef fe_view v
    cdef int i
    for i in range(call.nin):
        if is_half(&call.args[i]) and not divided(k, i):
            used += rounded(widened(&call.args[i], &v) * 4)
    return used


cdef int64_t lay_slice(const fe_call *call, int64_t slice, fe_view *views, char *shared, char *own,
                       bint *short) noexcept nogil:
    """Set up the views of a slice's call. Return the bytes of its arrays from `own` on. Each output that is
    not sliced has a second array, for this thread's result so far."""
    cdef const Kernel *k = <const Kernel *>call.extra
    cdef int64_t used = 0, ready = 0, n
    cdef fe_view part
    cdef bint mine, result
    cdef int a, turn
    for turn in range(2):                           # results first: their offsets are fixed
        for a in range(call.nargs):
            mine = divided(k, a)
            result = a >= call.nin and not mine
            if result == turn:
                continue
            short[0] = cut(k, &call.args[a], a, slice, &part)
            if not is_half(&part) and not result:
                views[a] = part
                continue
            n = rounded(widened(&part, &views[a]) * 4)
            if not mine and not result:
                views[a].data = shared + ready if shared else NULL
                ready += n
            else:
                views[a].data = own + used if own else NULL
                used += 2 * n if result else n
    return used


cdef int64_t thread_bytes(const fe_call *call, fe_view *views, int64_t *arrays) noexcept nogil:
    """Return one thread's scratch without its views, and set `arrays` to the bytes of its arrays."""
    cdef const Kernel *k = <const Kernel *>call.extra
    cdef int64_t last, most
    cdef bint short
    arrays[0] = lay_slice(call, slices(k) - 1, views, NULL, NULL, &short)
    last = own_work(call, views, k.ints[1] if short else k.ints[0], 1)
    arrays[0] = max(arrays[0], lay_slice(call, 0, views, NULL, NULL, &short))
    most = own_work(call, views, k.ints[0], 1)
    return -1 if last < 0 or most < 0 else rounded(arrays[0] + max(last, most))


cdef void join(const Kernel *k, float *sofar, const float *more, int64_t n) noexcept nogil:
    cdef int64_t i
    if k.fold == SUM:
        for i in range(n):
            sofar[i] = combine(sofar[i], more[i], <Sum *>NULL)
    elif k.fold == MAX:
        for i in range(n):
            sofar[i] = combine(sofar[i], more[i], <Max *>NULL)
    else:
        for i in range(n):
            sofar[i] = combine(sofar[i], more[i], <Min *>NULL)


cdef int one_slice(fe_call *call, int64_t i, fe_view *views, fe_call *mine, bint first) noexcept nogil:
    """Widen the inputs, call the kernel, and round the outputs. `mine` has its scratch."""
    cdef const Kernel *k = <const Kernel *>call.extra
    cdef fe_team alone
    cdef fe_view part
    cdef int64_t n
    cdef int a, status
    alone.tid, alone.nt, alone.barrier = 0, 1, NULL
    for a in range(call.nin):
        if is_half(&call.args[a]) and divided(k, a):
            cut(k, &call.args[a], a, i, &part)
            carry(&part, &views[a], True, &alone)
    status = k.fn(mine, &alone, NULL)
    if status != FE_OK:
        return status
    for a in range(call.nargs):
        if a >= call.nin and not divided(k, a):
            n = fe_numel(&views[a])
            if first:
                memcpy(views[a].data + rounded(n * 4), views[a].data, n * 4)
            else:
                join(k, <float *>(views[a].data + rounded(n * 4)), <float *>views[a].data, n)
        elif is_half(&call.args[a]) and (a >= call.nin or a < 63 and (k.written >> a) & 1):
            cut(k, &call.args[a], a, i, &part)
            carry(&part, &views[a], False, &alone)
    return FE_OK


cdef void join_threads(fe_call *call, const fe_team *team, fe_view *views, int64_t each) noexcept nogil:
    """Combine the threads' results for outputs that are not sliced."""
    cdef const Kernel *k = <const Kernel *>call.extra
    cdef fe_view total
    cdef int64_t n, lo, hi
    cdef int a, t
    cdef char *first
    for a in range(call.nin, call.nargs):
        if divided(k, a):
            continue
        n = fe_numel(&views[a])
        first = views[a].data + rounded(n * 4) - team.tid * each
        fe_split(n, 64, team, &lo, &hi)
        for t in range(1, team.nt):
            join(k, <float *>first + lo, <float *>(first + t * each) + lo, hi - lo)
        total = views[a]
        total.data = first
        carry(&call.args[a], &total, False, team)


cdef int sliced(fe_call *call, const fe_team *team) noexcept nogil:
    cdef const Kernel *k = <const Kernel *>call.extra
    cdef int64_t lo, hi, i, arrays, room = rounded(call.nargs * sizeof(fe_view))
    cdef fe_view *views = <fe_view *>(call.work + team.tid * room)
    cdef char *shared = call.work + team.nt * room
    cdef int64_t each = thread_bytes(call, views, &arrays)
    cdef char *own = shared + shared_arrays(call) + team.tid * each
    cdef fe_call mine = call[0]
    cdef bint short
    cdef int a, status = FE_OK
    lay_slice(call, 0, views, shared, own, &short)
    for a in range(call.nin):
        if is_half(&call.args[a]) and not divided(k, a):
            carry(&call.args[a], &views[a], True, team)
    fe_wait(team)
    mine.args, mine.extra, mine.fn, mine.work, mine.kept = views, NULL, k.fn, own + arrays, 0
    fe_split(slices(k), 1, team, &lo, &hi)
    for i in range(lo, hi):
        lay_slice(call, i, views, shared, own, &short)
        mine.ints = k.ints[1] if short else k.ints[0]
        status = one_slice(call, i, views, &mine, i == lo)
        if status != FE_OK:
            call.detail = mine.detail
            break
    lay_slice(call, 0, views, shared, own, &short)
    fe_wait(team)
    join_threads(call, team, views, each)
    return status


# ---- either
cdef int64_t work(const fe_call *call, int nt) noexcept nogil:
    cdef const Kernel *k = <const Kernel *>call.extra
    cdef int64_t used, own, arrays
    cdef fe_view *views = <fe_view *>malloc(call.nargs * sizeof(fe_view))
    if views == NULL:
        return -1
    if slices(k) >= nt:
        own = thread_bytes(call, views, &arrays)
        used = shared_arrays(call) + nt * (rounded(call.nargs * sizeof(fe_view)) + own)
    else:
        used = heads(call) + laid_out(call, views, NULL)
        own = own_work(call, views, call.ints, nt)
        used += own
    free(views)
    return own if own < 0 else used


cdef int narrow(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    return sliced(call, team) if slices(<const Kernel *>call.extra) >= team.nt else whole(call, team)


cdef class Wide:
    """Pack a float32 kernel as the `extra` of a call with 16-bit floats. written: the inputs that the kernel
    modifies. slices: see ops/slices.py."""

    cdef Kernel k

    def __cinit__(self, size_t kernel, size_t scratch, written=(), slices=None):
        cdef int i, j
        self.k.fn, self.k.work = <fe_kernel><void *>kernel, <fe_work><void *>scratch
        for i in written:
            self.k.written |= (<int64_t>1) << i
        if slices is None:
            return
        self.k.loop = <int8_t *>malloc(len(slices.where) * FE_MAX_DIM + 1)
        for j in range(2):
            self.k.ints[j] = <int64_t *>calloc(max(len(slices.ints), 1), 8)
        if self.k.loop == NULL or self.k.ints[0] == NULL or self.k.ints[1] == NULL:
            raise MemoryError
        for i, axes in enumerate(slices.where):
            for j in range(FE_MAX_DIM):
                self.k.loop[i * FE_MAX_DIM + j] = axes[j] if j < len(axes) else -1
        for i in range(len(slices.ints)):
            self.k.ints[0][i], self.k.ints[1][i] = slices.ints[i], slices.last_ints[i]
        for i, (size, step) in enumerate(slices.loops):
            self.k.size[i], self.k.step[i] = size, step
        self.k.fold = ("sum", "max", "min").index(slices.fold)
        self.k.loops = len(slices.loops)

    def __dealloc__(self):
        free(self.k.loop)
        free(self.k.ints[0])
        free(self.k.ints[1])

    @property
    def address(self):
        return <size_t>&self.k


KERNEL = (<size_t><void *>narrow, <size_t><void *>work)


def table():
    return {}
