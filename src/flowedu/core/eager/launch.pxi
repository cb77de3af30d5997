# Chapter 2: calls of kernels, in C or in Python, on one or several threads (part of dispatch.pyx).

cdef inline int compute(Entry e, tuple inputs, fe_view *args, const int64_t *drawn) except -1:
    """Call the kernel. args: space for the views of the inputs, followed by those of the outputs.
    drawn: the seed and the draw of a random op, or NULL."""
    cdef fe_call call
    cdef bint plain = e.quick and drawn == NULL
    cdef int i
    for i in range(e.nin if plain else 0):
        args[i] = (<TensorBase>inputs[i]).v
        plain = plain and not ((e.contiguous >> i) & 1 and not view_contiguous(&args[i]))
    if not plain:
        return compute_any(e, inputs, args, drawn)
    bind(&call, e, args, e.ints)
    return 0 if call_alone(&call) == FE_OK else raise_index(e, call.detail)


cdef int compute_any(Entry e, tuple inputs, fe_view *args, const int64_t *drawn) except -1:
    """Run the slow path of compute: large calls, random ops, Python kernels, strided inputs."""
    cdef fe_call call
    cdef int64_t seeded[MAX_DRAWN]
    cdef const int64_t *ints = e.ints
    cdef int i
    cdef TensorBase x
    cdef list copies = None                        # keeps contiguous copies of inputs alive
    for i in range(e.nin):
        x = <TensorBase>inputs[i]
        if (i >= 63 or (e.contiguous >> i) & 1) and not view_contiguous(&x.v):
            if copies is None:
                copies = []
            x = copy_contiguous(x)
            copies.append(x)
        args[i] = x.v
    if drawn != NULL:                              # a copy, as other threads may use the Entry
        memcpy(seeded, e.ints, min(e.nints, MAX_DRAWN) * 8)
        seeded[0], seeded[1] = drawn[0], drawn[1]
        ints = seeded
    bind(&call, e, args, ints)
    if e.python:                                   # `work` holds the inputs
        owner = (inputs, copies)
        call.work = <char *><PyObject *>owner
        if call_alone(&call) != FE_OK:
            raise e.keep.kept_error(call.detail, f"in op {e.op.name}, called at {user_line()}")
        return 0
    if e.fn == NULL:
        raise no_kernel(e.op, [x.spec for x in inputs], e.attrs, e.specs, BY_CODE)
    return 0 if launch(&call, e.work, e.cost) == FE_OK else raise_index(e, call.detail)


cdef int raise_index(Entry e, int64_t got) except -1:
    raise index_error(e.op, e.attrs, got)


cdef inline int call_alone(fe_call *call) noexcept:
    """Call the kernel on this thread."""
    cdef fe_team solo
    solo.tid, solo.nt, solo.barrier = 0, 1, NULL
    return call.fn(call, &solo, NULL)


cdef int launch(fe_call *call, fe_work work, int64_t cost) except -1:
    """Run a kernel with its scratch memory, on all threads if its cost is high, else on one."""
    cdef Block *scratch = NULL
    cdef int64_t need
    cdef int status, failed, nt = threads if cost >= 4 * SMALL else 1
    call.parallel = nt > 1
    if work != NULL:
        need = work(call, nt)
        if need != 0:                              # below 0: overflow, which block_new rejects
            scratch = block_new(need)
            call.work = scratch.data
    if nt == 1 and cost < SMALL:
        status = fe_run(call, 1, 1, &failed, NULL, NULL)
    else:
        with nogil:
            status = fe_run(call, 1, nt, &failed, NULL, NULL)
    if scratch != NULL:
        block_drop(scratch)
    return status


cdef int copy_values(fe_view *source, fe_view *target) except -1:
    """Copy between views of equal shape and dtype, with any strides."""
    cdef fe_view args[2]
    cdef fe_call call
    args[0], args[1] = source[0], target[0]
    call.fn, call.args = <fe_kernel><void *>copy_kernel[target.dtype], args
    call.nin, call.nargs, call.node, call.kept, call.detail = 1, 2, 0, 0, 0
    call.ints, call.reals, call.extra, call.work = NULL, NULL, NULL, NULL
    launch(&call, NULL, fe_numel(target))
    return 0


def index_error(op, tuple attrs, int64_t got, at=None, problem=None):
    """Return the error for a value, such as an index, that a kernel rejected."""
    if callable(op.range_help):
        return op.range_help(got, at, *attrs)
    return KernelError(problem or f"{op.name}: an index is out of range: {got}", at=at,
                       expected=op.range_help or "indices inside the range of their axis",
                       fix="check the labels or indices before the call")
