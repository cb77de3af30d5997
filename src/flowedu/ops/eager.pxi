# The eager interpreter: allocate, run the kernel, record (part of core.pyx).

cdef TensorBase new_tensor():
    cdef TensorBase y = <TensorBase>(<_Type *>Tensor).tp_new(<PyTypeObject *>Tensor, <PyObject *>NOTHING, NULL)
    if fe_inference:
        y.inference = True
    return y


cdef TensorBase alias_of(TensorBase t):
    """The same memory as another tensor object, without history."""
    cdef TensorBase y = new_tensor()
    y.v, y.lay, y.uniform = t.v, t.lay, t.uniform
    y.block = t.block
    if y.block != NULL:
        y.block.refs += 1
    elif t.rare is not None:                       # lazy: the same symbol; global: the same parts
        y.rare = Rare()
        y.rare.symbol, y.rare.parts = t.rare.symbol, t.rare.parts
    return y


cdef TensorBase packed(TensorBase x):
    """A contiguous copy, without history."""
    cdef TensorBase y = new_tensor()
    cdef fe_view args[2]
    cdef int64_t n = fe_numel(&x.v), step = 1
    if x.block == NULL:
        raise_lazy("its values are needed")
    cdef int d
    y.v, y.lay = x.v, x.lay
    for d in range(x.v.ndim - 1, -1, -1):
        y.v.stride[d] = step
        step *= max(x.v.shape[d], 1)
    y.block = block_try(n * BYTES[x.v.dtype])
    if y.block == NULL:
        raise no_memory("contiguous", f"a copy of {x.spec}", x.spec.nbytes)
    y.v.data = y.block.data
    args[0], args[1] = x.v, y.v
    launch(<fe_kernel><void *>copy_kernel[x.v.dtype], args, 1, 2, NULL, NULL, NULL, NULL, n)
    return y

cdef int *BYTES = [4, 8, 4, 8, 1, 1, 1, 2, 2]


cdef int launch(fe_kernel fn, fe_view *args, int nin, int nargs, const int64_t *ints, const double *reals,
                fe_work work, const void *extra, int64_t cost) except -1:
    """Run one kernel now, on as many threads as its cost deserves."""
    cdef fe_call call
    cdef Block *scratch = NULL
    cdef int64_t need
    cdef int status, failed, nt = threads if cost >= 4 * SMALL else 1
    call.fn, call.args, call.nin, call.nargs = fn, args, nin, nargs
    call.ints, call.reals, call.extra, call.work = ints, reals, extra, NULL
    call.parallel, call.node, call.detail = nt > 1, 0, 0
    if work != NULL:
        need = work(&call, nt)
        if need != 0:                              # below 0: it does not fit into an int64, and block_new refuses it
            scratch = block_new(need)
            call.work = scratch.data
    if nt == 1 and cost < SMALL:
        status = fe_run(&call, 1, 1, &failed)
    else:
        with nogil:
            status = fe_run(&call, 1, nt, &failed)
    if scratch != NULL:
        block_drop(scratch)
    if status != FE_OK:
        raise KernelError(f"an index is out of range: {call.detail}")
    return 0


cdef TensorBase fresh(Entry e, int i):
    """Memory for output i."""
    cdef TensorBase y = new_tensor()
    y.v = e.outs[i]
    y.block = block_try(fe_numel(&y.v) * BYTES[y.v.dtype])
    if y.block == NULL:
        raise no_memory(e.op.name, f"{e.specs[i]}", e.specs[i].nbytes)
    y.v.data = y.block.data
    return y


cdef eager(OpBase op, tuple inputs, tuple attrs, const int64_t *drawn=NULL):
    """Run an op now. drawn: a random op's seed and draw, instead of those in `attrs`."""
    cdef int n = len(inputs), i
    cdef int64_t own[MAX_DRAWN]
    cdef const int64_t *ints
    cdef fe_view *views[MAX_ARGS]
    cdef fe_view args[MAX_ARGS]
    cdef TensorBase x, y
    cdef Entry e
    cdef bint wants = False, uniform = True, alone = False
    cdef Lay lay = None
    cdef list held = None
    if n > MAX_ARGS - 4:
        return eager_many(op, inputs, attrs)
    for i in range(n):
        o = inputs[i]
        if not isinstance(o, TensorBase):
            raise_not_tensor(op, o, i)
        x = <TensorBase>o
        views[i] = &x.v
        if x.lay is not None:
            if x.block == NULL or lay is not None and x.lay.whole is not lay:
                return spread_call(op, inputs, attrs)
            lay = x.lay.whole
        else:
            alone |= not x.uniform                 # a local tensor that may differ from rank to rank
        if x.block == NULL or x.link is not None:
            settle(x)
        wants |= x.tracked
        uniform &= x.uniform
    if lay is not None and alone:
        return spread_call(op, inputs, attrs)      # says what is wrong
    e = find(op, inputs, attrs, views)
    uniform &= n > 0 or e.source
    if e is None:
        x = record_copy(<TensorBase>inputs[0])
        return eager(op, (x,) + inputs[1:], attrs, drawn)
    if e.is_view:
        x = <TensorBase>inputs[0]
        y = new_tensor()
        y.v = e.outs[0]
        y.v.data = x.v.data + e.offset * BYTES[x.v.dtype]
        y.block = x.block
        y.block.refs += 1
        y.lay, y.uniform = lay, uniform
        make_link(x, y, op, attrs)
        if wants and not fe_grad_off:
            tape(op, inputs, e, y)
        return y
    if e.written is not None:
        mark_written(op, inputs, e)
    for i in range(n):
        args[i] = views[i][0]
        if (e.contiguous >> i) & 1 and not view_contiguous(&args[i]):
            if held is None:
                held = []
            x = packed(<TensorBase>inputs[i])
            held.append(x)
            args[i] = x.v
    if e.nout == 1:
        y = fresh(e, 0)
        args[n] = y.v
        y.lay, y.uniform = lay, uniform
        result = y
    else:
        result = []
        for i in range(e.nout):
            y = fresh(e, i)
            args[n + i] = y.v
            y.lay, y.uniform = lay, uniform
            result.append(y)
        result = tuple(result)
    if e.fn == NULL:
        raise_no_kernel(op, inputs)
    ints = e.ints
    if drawn != NULL:                              # a copy: other threads use the Entry, too
        memcpy(own, e.ints, min(e.nints, MAX_DRAWN) * 8)
        own[0], own[1] = drawn[0], drawn[1]
        ints = own
    if e.python:
        run_python(e, args, n, n + e.nout, op, (inputs, held))
    elif e.cost < SMALL and e.work == NULL:
        quick(e, args, n, n + e.nout, ints, op)
    else:
        try:
            launch(e.fn, args, n, n + e.nout, ints, e.reals, e.work, e.extra, e.cost)
        except KernelError as error:
            raise index_error(op, error.problem) from None
    if wants and not fe_grad_off:
        tape(op, inputs, e, result)
    return result


cdef int mark_written(OpBase op, tuple inputs, Entry e) except -1:
    """The kernel is about to write into some of its inputs."""
    cdef TensorBase x
    for i in e.written:
        x = <TensorBase>inputs[i]
        if x.block.readonly:
            raise_readonly(op.name)
        x.block.version += 1
        x.uniform = False
    return 0


cdef inline int quick(Entry e, fe_view *args, int nin, int nargs, const int64_t *ints, OpBase op) except -1:
    """A small call without scratch: straight into the kernel."""
    cdef fe_call call
    cdef fe_team solo
    solo.tid, solo.nt, solo.barrier = 0, 1, NULL
    call.args, call.nin, call.nargs = args, nin, nargs
    call.ints, call.reals, call.extra, call.work = ints, e.reals, e.extra, NULL
    if e.fn(&call, &solo, NULL) != FE_OK:
        raise index_error(op, f"an index is out of range: {call.detail}")
    return 0


cdef int run_python(Entry e, fe_view *args, int nin, int nargs, OpBase op, owner) except -1:
    """A call of a Python kernel. `owner` holds the inputs; what the kernel raised is raised here."""
    cdef fe_call call
    cdef fe_team solo
    solo.tid, solo.nt, solo.barrier = 0, 1, NULL
    call.args, call.nin, call.nargs, call.extra = args, nin, nargs, e.extra
    call.work, call.detail = <char *><PyObject *>owner, 0
    if e.fn(&call, &solo, NULL) != FE_OK:
        raise kept_error(call.detail, f"in op {op.name}, called at {user_line()}")
    return 0


def eager_many(op, inputs, attrs):
    """The same for calls with many inputs (concat, add_n): allocates its argument list."""
    cdef int n = len(inputs), i
    cdef TensorBase x, y
    cdef fe_view *args
    cdef Entry e
    held = []
    for i, o in enumerate(inputs):
        if not isinstance(o, TensorBase):
            raise_not_tensor(op, o, i)
        x = <TensorBase>o
        if x.lay is not None:
            return spread_call(op, inputs, attrs)
        if x.block == NULL or x.link is not None:
            settle(x)
    e = find_many(op, inputs, attrs)
    if e.written is not None:
        mark_written(op, inputs, e)
    if e.fn == NULL:
        raise_no_kernel(op, inputs)
    args = <fe_view *>calloc(n + e.nout, sizeof(fe_view))
    if args == NULL:
        raise MemoryError
    try:
        for i in range(n):
            x = <TensorBase>inputs[i]
            if (i >= 63 or (e.contiguous >> i) & 1) and not view_contiguous(&x.v):
                x = packed(x)
                held.append(x)
            args[i] = x.v
        outs = []
        for i in range(e.nout):
            y = fresh(e, i)
            args[n + i] = y.v
            outs.append(y)
        if e.python:
            run_python(e, args, n, n + e.nout, op, (inputs, held))
        else:
            launch(e.fn, args, n, n + e.nout, e.ints, e.reals, e.work, e.extra, e.cost)
    finally:
        free(args)
    result = outs[0] if e.nout == 1 else tuple(outs)
    if not fe_grad_off and any([x.tracked for x in inputs]):
        tape(op, inputs, e, result)
    return result


cdef index_error(OpBase op, str problem):
    return KernelError(f"{op.name}: {problem}", expected=op.range_help or "indices inside the range of their axis",
                       fix="check the labels or indices before the call")


cdef raise_not_tensor(OpBase op, o, int i):
    name = op.inputs[0 if op.variadic else i] if i < len(op.inputs) or op.variadic else f"input {i}"
    raise NotATensorError(op.name, o, name)


cdef raise_no_kernel(OpBase op, inputs):
    got = ", ".join(str(x.spec) for x in inputs)
    raise DTypeError(f"{op.name}: no kernel for this element type", expected="float32 or float64"
                     + ("" if op.float_only else ", int32 or int64"), got=got or "no inputs", fix="convert with flow.cast")


def record_copy(TensorBase x):
    """x made contiguous; differentiable (the identity)."""
    from flowedu.ops.define import REGISTRY
    return REGISTRY["contiguous"](x)


def call_seeded(OpBase op, tuple inputs, tuple attrs, int64_t seed, int64_t draw):
    """Run a random op now with this seed and draw, whatever `attrs` says of them: so all draws share one Entry."""
    cdef int64_t drawn[2]                              # the first two integers of every random op (ops/random.py)
    cdef int i
    for i in range(len(inputs)):
        if not isinstance(inputs[i], TensorBase):
            raise_not_tensor(op, inputs[i], i)
        if (<TensorBase>inputs[i]).lay is not None:
            return spread_call(op, inputs, (*attrs[:len(attrs) - 2], seed, draw))
    drawn[0], drawn[1] = seed, draw
    return eager(op, inputs, attrs, drawn)


def scalar_tensor(value, dtype):
    """The number `value` as a 0-d tensor."""
    cdef TensorBase y = new_tensor()
    y.v.ndim, y.v.dtype, y.uniform = 0, dtype.code, True
    y.block = block_new(8)
    y.v.data = y.block.data
    if y.v.dtype == FE_F32:
        (<float *>y.v.data)[0] = value
    elif y.v.dtype == FE_F64:
        (<double *>y.v.data)[0] = value
    elif y.v.dtype == FE_I32:
        (<int32_t *>y.v.data)[0] = value
    elif y.v.dtype == FE_I64:
        (<int64_t *>y.v.data)[0] = value
    elif y.v.dtype == FE_I8:
        (<int8_t *>y.v.data)[0] = <int8_t><int64_t>int(value)           # wraps, as C does
    elif y.v.dtype == FE_U8:
        (<uint8_t *>y.v.data)[0] = <uint8_t><int64_t>int(value)
    elif y.v.dtype == FE_BOOL:
        (<uint8_t *>y.v.data)[0] = bool(value)
    elif y.v.dtype == FE_F16:
        y.numpy()[()] = value
        y.uniform = True
    else:
        from flowedu.ops.define import REGISTRY
        return eager(REGISTRY["constant"], NOTHING, ((), value, dtype))
    return y
