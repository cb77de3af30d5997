# Chapter 2: how a kernel is called (part of dispatch.pyx): at once, on several threads, or as a Python function.

cdef inline int compute(Entry e, tuple inputs, fe_view *args, const int64_t *drawn) except -1:
    """Call the kernel. args: room for views of the inputs, then those of the outputs. drawn: a random op's seed and draw, or
    NULL."""
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
    """The same for calls that are large, draw random numbers, have a Python kernel, or inputs that must be packed first."""
    cdef fe_call call
    cdef int64_t own[MAX_DRAWN]
    cdef const int64_t *ints = e.ints
    cdef int i
    cdef TensorBase x
    cdef list held = None                          # contiguous copies of inputs that have to be contiguous
    for i in range(e.nin):
        x = <TensorBase>inputs[i]
        if (i >= 63 or (e.contiguous >> i) & 1) and not view_contiguous(&x.v):
            if held is None:
                held = []
            x = packed(x)
            held.append(x)
        args[i] = x.v
    if drawn != NULL:                              # a copy: other threads use the Entry, too
        memcpy(own, e.ints, min(e.nints, MAX_DRAWN) * 8)
        own[0], own[1] = drawn[0], drawn[1]
        ints = own
    bind(&call, e, args, ints)
    if e.python:                                   # `work` owns the inputs; what the function raised is raised here
        owner = (inputs, held)
        call.work = <char *><PyObject *>owner
        if call_alone(&call) != FE_OK:
            raise e.keep.kept_error(call.detail, f"in op {e.op.name}, called at {user_line()}")
        return 0
    if e.fn == NULL:
        raise no_kernel(e.op, [x.spec for x in inputs], e.attrs, e.specs, BY_CODE)
    return 0 if launch(&call, e.work, e.cost) == FE_OK else raise_index(e, call.detail)


cdef int raise_index(Entry e, int64_t got) except -1:
    raise index_error(e.op, e.attrs, got)


cdef inline void bind(fe_call *call, Entry e, fe_view *args, const int64_t *ints) noexcept:
    call.fn, call.args, call.nin, call.nargs = e.fn, args, e.nin, e.nin + e.nout
    call.ints, call.reals, call.extra, call.work = ints, e.reals, e.extra, NULL
    call.parallel, call.node, call.kept, call.detail = 0, 0, 0, 0


cdef inline int call_alone(fe_call *call) noexcept:
    """Straight into the kernel, on this thread."""
    cdef fe_team solo
    solo.tid, solo.nt, solo.barrier = 0, 1, NULL
    return call.fn(call, &solo, NULL)


cdef int launch(fe_call *call, fe_work work, int64_t cost) except -1:
    """Run one kernel, with the scratch it wants, on as many threads as its cost deserves."""
    cdef Block *scratch = NULL
    cdef int64_t need
    cdef int status, failed, nt = threads if cost >= 4 * SMALL else 1
    call.parallel = nt > 1
    if work != NULL:
        need = work(call, nt)
        if need != 0:                              # below 0: it does not fit into an int64, and block_new refuses it
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
    """Of one shape and dtype; any strides."""
    cdef fe_view args[2]
    cdef fe_call call
    args[0], args[1] = source[0], target[0]
    call.fn, call.args, call.nin, call.nargs = <fe_kernel><void *>copy_kernel[target.dtype], args, 1, 2
    call.ints, call.reals, call.extra, call.work, call.node, call.kept, call.detail = NULL, NULL, NULL, NULL, 0, 0, 0
    launch(&call, NULL, fe_numel(target))
    return 0


def index_error(op, tuple attrs, int64_t got, at=None, problem=None):
    """Return the error for a value that a kernel refused, such as an index out of range; a record may have its own."""
    if callable(op.range_help):
        return op.range_help(got, at, *attrs)
    return KernelError(problem or f"{op.name}: an index is out of range: {got}", at=at,
                       expected=op.range_help or "indices inside the range of their axis",
                       fix="check the labels or indices before the call")
