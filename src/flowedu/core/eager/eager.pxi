# Chapter 2: the eager interpreter (part of dispatch.pyx). Run an op now: its Entry, memory for the outputs, the kernel.
# That is all; where a gradient is wanted the tape (node.pxi) remembers it. A call that is not plain has a flag, of an input
# or of the Entry; the table SPECIALS has the function that answers it: views (link.pxi), graphs (lazy.pxi), devices (global.pxi, device.pxi).

cdef eager(OpBase op, tuple inputs, tuple attrs, const int64_t *drawn=NULL):
    """Run an op now. drawn: a random op's seed and draw, instead of those in `attrs`."""
    cdef int i, flags = 0
    cdef Entry e = None
    cdef object y
    for i in range(len(inputs)):
        x = inputs[i]
        if not isinstance(x, TensorBase):
            raise_not_tensor(op, x, i)
        flags |= flags_of(<TensorBase>x)
    if not flags & (SPECIAL ^ TRACKED):
        e = find(op, inputs, attrs)
        if e is not None and e.flags & ~VIEW == 0:
            y = run(e, inputs, flags & LOCAL_ONLY, drawn) if e.flags == 0 else \
                view_of(<TensorBase>inputs[0], op, attrs, e, flags)
            if flags & TRACKED and not fe_grad_off:
                tape(op, inputs, e, y)
            return y
    return special(op, inputs, attrs, e, flags, drawn)


cdef inline run(Entry e, tuple inputs, int local_only, const int64_t *drawn):
    """Memory for the output, filled by a kernel."""
    cdef fe_view args[MAX_ARGS]
    cdef TensorBase y
    y = fresh(e, 0, local_only)
    args[e.nin] = y.v
    compute(e, inputs, args, drawn)
    return y


ctypedef object (*Answering)(OpBase, tuple, tuple, Entry, int, const int64_t *, GlobalLayout)

cdef struct Special:                               # a flag of an input or of the call, and the function that answers
    int flag
    Answering answer

cdef Special[3] SPECIALS                           # each chapter enters its own: global.pxi, link.pxi, device.pxi


cdef special(OpBase op, tuple inputs, tuple attrs, Entry e, int flags, const int64_t *drawn, GlobalLayout at=None):
    """A call that is not plain: the interpreter of its first flag answers, which does its own part and hands the rest of the
    call on without that flag. e: the Entry, if it is known. at: the layout of the results, if they are global."""
    cdef int i
    if e is not None:
        flags |= e.flags & ON_DEVICE
    for i in range(3):
        if flags & SPECIALS[i].flag:
            return SPECIALS[i].answer(op, inputs, attrs, e, flags & ~SPECIALS[i].flag, drawn, at)
    return answered(op, inputs, attrs, e, flags, drawn, at, 0)


cdef answered(OpBase op, tuple inputs, tuple attrs, Entry e, int flags, const int64_t *drawn, GlobalLayout at, int device):
    """The call on inputs that are up to date and in one place."""
    if e is None:
        e = find(op, inputs, attrs)
    if e is None:                                  # a view that these strides do not allow
        return eager(op, (record_copy(<TensorBase>inputs[0]), *inputs[1:]), attrs, drawn)
    if e.flags & WRITES:
        mark_written(op, inputs, e)
    flags |= e.flags
    if e.flags & VIEW:
        result = view_of(<TensorBase>inputs[0], op, attrs, e, flags)
    elif device != 0:
        result = run_on_device(e, inputs, device, flags & LOCAL_ONLY, drawn)
    elif e.flags & MANY:
        result = run_many(e, inputs, flags & LOCAL_ONLY, drawn)
    else:
        result = run(e, inputs, flags & LOCAL_ONLY, drawn)
    if at is not None:
        label(result, at)
    if flags & TRACKED and not fe_grad_off:
        tape(op, inputs, e, result)
    return result


cdef run_many(Entry e, tuple inputs, int local_only, const int64_t *drawn):
    """`run` with several outputs, or many inputs (concat, add_n): the list of views may be long."""
    cdef int i
    cdef fe_view few[MAX_ARGS]
    cdef fe_view *args = &few[0] if e.nin + e.nout <= MAX_ARGS else <fe_view *>calloc(e.nin + e.nout, sizeof(fe_view))
    cdef list made
    if args == NULL:
        raise MemoryError
    try:
        made = [fresh(e, i, local_only) for i in range(e.nout)]
        for i in range(e.nout):
            args[e.nin + i] = (<TensorBase>made[i]).v
        compute_any(e, inputs, args, drawn)
    finally:
        if args != &few[0]:
            free(args)
    return made[0] if e.nout == 1 else tuple(made)


cdef raise_not_tensor(OpBase op, o, int i):
    name = op.inputs[0 if op.variadic else i] if i < len(op.inputs) or op.variadic else f"input {i}"
    raise NotATensorError(op.name, o, name)


def call_seeded(OpBase op, tuple inputs, tuple attrs, int64_t seed, int64_t draw):
    """Run a random op now with this seed and draw, whatever `attrs` says of them: so all draws share one Entry."""
    cdef int64_t drawn[2]                              # the first two integers of every random op (ops/random.py)
    drawn[0], drawn[1] = seed, draw
    return eager(op, inputs, attrs, drawn)
