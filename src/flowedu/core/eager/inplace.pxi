# Chapter 2, in-place: writing into a tensor's memory (part of dispatch.pyx). What a write means for histories is tensor/inplace.py.

cdef raise_readonly(what):
    raise ArgumentError(f"{what}: the array this tensor was made from is read-only", expected="memory that may be written",
                        fix="write into a copy: x = x.clone()")


cdef int mark_written(OpBase op, tuple inputs, Entry e) except -1:
    """The kernel of this call is about to write into some of its inputs."""
    cdef TensorBase x
    for i in e.written:
        x = <TensorBase>inputs[i]
        if x.block.readonly:
            raise_readonly(op.name)
        x.block.version += 1
        x.flags &= ~UNIFORM
    return 0


cdef bint same_view(const fe_view *a, const fe_view *b) noexcept:
    cdef int d
    if a.data != b.data or a.ndim != b.ndim or a.dtype != b.dtype:
        return False
    for d in range(a.ndim):
        if a.shape[d] != b.shape[d] or (a.stride[d] != b.stride[d] and a.shape[d] != 1):
            return False
    return True


def tape_position():
    """A number that all calls recorded later are above."""
    return sequence


def copy_into(TensorBase x, TensorBase z):
    """Write the values of z, of the same dtype and of a shape that broadcasts to x's, into x's memory."""
    cdef fe_view args[2]
    cdef int d, shift
    if x.block == NULL or z.block == NULL:
        raise_lazy("its memory is written")
    args[0], args[1] = z.v, x.v
    shift = x.v.ndim - z.v.ndim
    args[0].ndim = x.v.ndim
    for d in range(x.v.ndim - 1, -1, -1):
        if d >= shift and z.v.shape[d - shift] == x.v.shape[d]:
            args[0].shape[d], args[0].stride[d] = z.v.shape[d - shift], z.v.stride[d - shift]
        elif d < shift or z.v.shape[d - shift] == 1:
            args[0].shape[d], args[0].stride[d] = x.v.shape[d], 0
        else:
            shift = MAX_ARGS
            break
    if shift < 0 or shift == MAX_ARGS or z.v.dtype != x.v.dtype:
        raise ShapeError("in-place: the value does not fit", expected=f"{x.spec}", got=f"{z.spec}")
    if z.block == x.block and not same_view(&args[0], &args[1]):
        z = packed(z)
        copy_into(x, z)
        return
    if (x.flags | z.flags) & ELSEWHERE and z.block != x.block:
        z = alias_of(z)
        z.v = args[0]
        filled.carry(z, x)
    elif z.block != x.block:
        copy_values(&args[0], &args[1])
    x.block.version += 1
    set_flag(x, UNIFORM, x.flags & z.flags & UNIFORM)


cdef bint try_into(OpBase op, tuple inputs, tuple attrs, TensorBase x) except -1:
    """Run an elementwise op with x's memory as its output, if that is safe; False: nothing was done.

    Safe: x is contiguous, the result has its shape and dtype, inputs that lie in x's memory are x itself, and backward does
    not need a value that is overwritten. With a gradient, x gets the history of the result; a view gets none here.
    """
    cdef fe_view args[MAX_ARGS]
    cdef int flags = 0
    cdef bint wants
    cdef TensorBase y
    cdef Entry e
    if lazy_mode() or x.block == NULL or not op.elementwise or len(inputs) > MAX_INPUTS or not view_contiguous(&x.v) \
            or not can_read(inputs, x, &flags):
        return False
    wants = flags & TRACKED and not fe_grad_off
    if wants:
        if x.flags & VIEW or overwrites_saved(op, inputs, x):
            return False
    elif not fe_grad_off and x.flags & TRACKED:
        return False
    e = find(op, inputs, attrs)
    if e is None or not fits(e, x) or wants and e.differentiable and not (op.any_rule or differentiable_inputs(op, inputs)):
        return False
    args[e.nin] = x.v
    if flags & ELSEWHERE:
        start(e, inputs, [x], x.block.device, NULL)
    else:
        compute(e, inputs, args, NULL)
    x.block.version += 1
    if flags & LOCAL_ONLY:
        x.flags &= ~UNIFORM
    if wants:
        y = alias_of(x)
        tape(op, inputs, e, y)
        take_history(x, y)
        x.epoch += 1
    return True


cdef bint can_read(tuple inputs, TensorBase x, int *flags) except -1:
    """Whether a kernel may read all inputs while it writes x's memory; their flags."""
    cdef TensorBase t
    cdef int i
    for i in range(len(inputs)):
        if not isinstance(inputs[i], TensorBase):
            return False
        t = <TensorBase>inputs[i]
        if t.block == NULL or (t._layout is not x._layout and not t.flags & UNIFORM) or t.block.device != x.block.device and (
                t.block.device != 0 or t.v.ndim or t.flags & TRACKED):
            return False
        if t.flags & VIEW:
            settle(t)
        if t.block == x.block and not same_view(&t.v, &x.v):
            return False
        flags[0] |= flags_of(t)
    return True


cdef bint overwrites_saved(OpBase op, tuple inputs, TensorBase x) except -1:
    """Whether backward of the call needs an input that lies in x's memory."""
    cdef int64_t mask = wanted_values(op, inputs)
    for i in op.saved:
        if mask & 1 and i >= 0 and (<TensorBase>inputs[i]).block == x.block:
            return True
        mask >>= 1
    return False


cdef bint fits(Entry e, TensorBase x) noexcept:
    """Whether a kernel makes one output, of x's shape and dtype."""
    cdef int d
    if e.flags & VIEW or e.nout != 1 or e.fn == NULL or e.python or e.outs[0].dtype != x.v.dtype \
            or e.outs[0].ndim != x.v.ndim:
        return False
    for d in range(x.v.ndim):
        if e.outs[0].shape[d] != x.v.shape[d]:
            return False
    return True


cdef update(OpBase op, x, other):
    """`x op= other`."""
    cdef TensorBase t
    if not isinstance(x, TensorBase):
        return NotImplemented
    t = <TensorBase>x
    if not lazy_mode() and isinstance(other, TensorBase) and (<TensorBase>other).v.dtype == t.v.dtype and has_gradient(t.v.dtype) \
            and not t.flags & (TRACKED | VIEW) and t.block != NULL and not t.block.readonly \
            and try_into(op, (x, other), NOTHING, t):
        return x
    return filled.write(x, op, other)


def set_data(TensorBase x, TensorBase y):
    """x looks at the memory of y from here on; its history and gradient stay."""
    cdef Block *old = x.block
    if (x.flags | y.flags) & GLOBAL:
        take_memory(x, y)
        return
    if x.block == NULL or y.block == NULL:
        raise_lazy("its memory is exchanged")
    if y.block.version <= old.version:             # what was saved of x is gone: make backward notice
        y.block.version = old.version + 1
    y.block.refs += 1
    x.block, x.v = y.block, y.v
    set_link(x, None)
    set_flag(x, UNIFORM, y.flags & UNIFORM)
    set_flag(x, ELSEWHERE, y.flags & ELSEWHERE)
    x.epoch += 1
    block_drop(old)
