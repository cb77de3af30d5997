# Chapter 2: in-place writes to memory (part of dispatch.pyx). tensor/inplace/history.py updates
# autograd histories; tensor/inplace/writing.pyx computes an op in the memory of an input.

cdef raise_readonly(what):
    raise errors.read_only(what)


cdef int mark_written(OpBase op, tuple inputs, Entry e) except -1:
    """Increment the version of each input that the kernel of this call writes."""
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
    """Return the sequence number of the last recorded call."""
    return sequence


def copy_into(TensorBase x, TensorBase z):
    """Copy z into the memory of x. z has the dtype of x, and broadcasts to the shape of x."""
    cdef fe_view args[2]
    cdef int d, shift
    if x.block == NULL or z.block == NULL:
        raise errors.lazy_tensor("its memory is written")
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
        z = copy_contiguous(z)
        copy_into(x, z)
        return
    if (x.flags | z.flags) & ON_DEVICE and z.block != x.block:
        z = alias_of(z)
        z.v = args[0]
        filled.carry(z, x)
    elif z.block != x.block:
        copy_values(&args[0], &args[1])
    x.block.version += 1
    set_flag(x, UNIFORM, x.flags & z.flags & UNIFORM)


cdef update(OpBase op, x, other):
    """Run `x op= other`."""
    return filled.write(x, op, other) if isinstance(x, TensorBase) else NotImplemented


def set_data(TensorBase x, TensorBase y):
    """Make x use the memory of y. x keeps its history and its gradient."""
    cdef Block *old = x.block
    if not (x.flags | y.flags) & GLOBAL:
        if x.block == NULL or y.block == NULL:
            raise errors.lazy_tensor("its memory is exchanged")
        if y.block.version <= old.version:         # makes backward detect the change
            y.block.version = old.version + 1
    if y.block != NULL:
        y.block.refs += 1
    elif x.rare is None:
        x.rare = Rare()
    x.block, x.v = y.block, y.v
    set_link(x, None)
    set_layout(x, y._layout)
    set_flag(x, UNIFORM, y.flags & UNIFORM)
    set_flag(x, ON_DEVICE, y.flags & ON_DEVICE)
    if x.rare is not None:
        x.rare.parts = None if y.rare is None else y.rare.parts
    x.epoch += 1
    if old != NULL:
        block_drop(old)
