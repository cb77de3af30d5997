# Chapter 2: the eager interpreter (part of dispatch.pyx). It finds the Entry of a call, allocates
# the outputs, runs the kernel, and records the call (node.pxi) if a gradient is needed. SPECIALS
# maps flags of inputs or the Entry to handlers in link.pxi (views), global.pxi and device.pxi.

cdef eager(OpBase op, tuple inputs, tuple attrs, const int64_t *drawn=NULL):
    """Run an op. drawn: the seed and the draw of a random op, which replace those in `attrs`."""
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
                make_view(<TensorBase>inputs[0], op, attrs, e, flags)
            if flags & TRACKED and not fe_grad_off:
                tape(op, inputs, e, y)
            return y
    return run_special(op, inputs, attrs, e, flags, drawn)


cdef inline run(Entry e, tuple inputs, int local_only, const int64_t *drawn):
    """Allocate the output and run the kernel."""
    cdef fe_view args[MAX_ARGS]
    cdef TensorBase y
    y = allocate_output(e, 0, local_only)
    args[e.nin] = y.v
    compute(e, inputs, args, drawn)
    return y


ctypedef object (*Handler)(OpBase, tuple, tuple, Entry, int, const int64_t *, GlobalLayout)

cdef struct Special:                               # flags, and the handler of their calls
    int flag
    Handler handle

cdef Special[3] SPECIALS                           # filled by global.pxi, link.pxi, device.pxi


cdef run_special(OpBase op, tuple inputs, tuple attrs, Entry e, int flags, const int64_t *drawn,
                 GlobalLayout at=None):
    """Run the slow path: clear the first special flag and call its handler, which dispatches again.
    e: the Entry, if already found. at: the layout of the results, if they are global."""
    cdef int i
    if e is not None:
        flags |= e.flags & ON_DEVICE
    for i in range(3):
        if flags & SPECIALS[i].flag:
            return SPECIALS[i].handle(op, inputs, attrs, e, flags & ~SPECIALS[i].flag, drawn, at)
    return run_resolved(op, inputs, attrs, e, flags, drawn, at, 0)


cdef run_resolved(OpBase op, tuple inputs, tuple attrs, Entry e, int flags, const int64_t *drawn,
                  GlobalLayout at, int device):
    """Run a call whose inputs are up to date and on one device."""
    if e is None:
        e = find(op, inputs, attrs)
    if e is None:                                  # the strides do not allow this view
        return eager(op, (record_copy(<TensorBase>inputs[0]), *inputs[1:]), attrs, drawn)
    if e.flags & WRITES:
        mark_written(op, inputs, e)
    flags |= e.flags
    if e.flags & VIEW:
        result = make_view(<TensorBase>inputs[0], op, attrs, e, flags)
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
    """Run a call with several outputs or many inputs (concat, add_n)."""
    cdef int i
    cdef fe_view stack[MAX_ARGS]
    cdef fe_view *args = &stack[0]
    cdef list outputs
    if e.nin + e.nout > MAX_ARGS:
        args = <fe_view *>calloc(e.nin + e.nout, sizeof(fe_view))
    if args == NULL:
        raise MemoryError
    try:
        outputs = [allocate_output(e, i, local_only) for i in range(e.nout)]
        for i in range(e.nout):
            args[e.nin + i] = (<TensorBase>outputs[i]).v
        compute_any(e, inputs, args, drawn)
    finally:
        if args != &stack[0]:
            free(args)
    return outputs[0] if e.nout == 1 else tuple(outputs)


cdef raise_not_tensor(OpBase op, o, int i):
    name = op.inputs[0 if op.variadic else i] if i < len(op.inputs) or op.variadic else f"input {i}"
    raise NotATensorError(op.name, o, name)


def call_seeded(OpBase op, tuple inputs, tuple attrs, int64_t seed, int64_t draw):
    """Run a random op with this seed and draw, so that calls with any seeds share one Entry."""
    cdef int64_t drawn[2]                # the first two integers of every random op (ops/random.py)
    drawn[0], drawn[1] = seed, draw
    return eager(op, inputs, attrs, drawn)
