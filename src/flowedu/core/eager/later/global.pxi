# Chapter 6: calls with global tensors among their inputs (part of dispatch.pyx). They run in
# core/sbp/tensor/interpreter.py. They are recorded here, as calls on logical values.

cdef class GlobalLayout:
    """Layout of a global tensor: a placement, and an sbp per placement axis. Compare by `is`."""

    def __init__(self, placement, tuple sbp, layout, GlobalLayout whole=None):
        self.placement, self.sbp, self.layout, self.single = placement, sbp, layout, layout.k == 1
        self.whole = self if whole is None else whole

    def __repr__(self):
        return f"<{self.placement}, {self.sbp}>"


cdef inline void set_layout(TensorBase x, GlobalLayout at):
    x._layout = at
    set_flag(x, GLOBAL, at is not None)


def on_several_devices(tuple inputs):
    """Return True if the inputs, without 0-dim ones in main memory, are on several devices."""
    return len({x._device for x in inputs if x.is_eager and (x.ndim or x._device)}) > 1


cdef GlobalLayout find_layout(tuple inputs):
    """Return the layout of the results if all inputs are on one device, else None."""
    cdef PyObject *x                    # borrowed, as counting references costs 20 of 160 ns
    cdef PyObject *layout = NULL
    cdef int i
    for i in range(len(inputs)):
        x = <PyObject *>inputs[i]
        if (<TensorBase>x)._layout is None:
            if not (<TensorBase>x).flags & UNIFORM:    # may differ between ranks; raises later
                return None
        elif (<TensorBase>x).block == NULL or layout != NULL \
                and <PyObject *>(<TensorBase>x)._layout.whole != layout:
            return None
        else:
            layout = <PyObject *>(<TensorBase>x)._layout.whole
    return None if layout == NULL else <GlobalLayout>layout


cdef int label(result, GlobalLayout at) except -1:
    """Set the layout of every result."""
    if isinstance(result, TensorBase):
        set_layout(<TensorBase>result, at)
    else:
        for y in result:
            set_layout(<TensorBase>y, at)
    return 0


cdef call_global(OpBase op, tuple inputs, tuple attrs, Entry e, int flags, const int64_t *drawn,
                 GlobalLayout at):
    """Run a call with a global input, as a local call if all inputs are on one device."""
    if drawn == NULL and not (flags & ON_DEVICE and on_several_devices(inputs)):
        at = find_layout(inputs)
        if at is not None:
            return run_special(op, inputs, attrs, e, flags, drawn, at)
    if drawn != NULL:
        attrs = (*attrs[:len(attrs) - 2], drawn[0], drawn[1])
    return call_spread(op, inputs, attrs)

SPECIALS[0].flag, SPECIALS[0].handle = GLOBAL, call_global


cdef call_spread(OpBase op, tuple inputs, tuple attrs):
    """Run a call on the devices of global tensors, and record it."""
    cdef bint tracked = refresh_views(inputs) & TRACKED, old = set_grad_enabled(False)
    cdef Entry e
    try:
        result = filled.run_global(op, inputs, attrs)
    finally:
        set_grad_enabled(old)
    if op.view is None and not (tracked and old):
        return result
    e = find(op, inputs, attrs)
    if e is None:
        return result
    if e.flags & VIEW:
        make_link(<TensorBase>inputs[0], <TensorBase>result, op, attrs)
    if tracked and old:
        tape(op, inputs, e, result)
    return result


def global_tensor(tuple shape, dtype, GlobalLayout global_layout, parts):
    """Make a tensor on several devices. parts: {rank: local tensor} of this process's ranks."""
    cdef TensorBase y = lazy_tensor(None, shape, dtype)
    set_layout(y, global_layout)
    y.rare.parts = parts
    return y


def labelled(TensorBase x, GlobalLayout global_layout or None):
    """Return an alias of x with this single-device layout (None: local), without history."""
    cdef TensorBase y = alias_of(x)
    set_layout(y, global_layout)
    return y


def take_parts(TensorBase x, TensorBase z, bint history):
    """Give the global tensor x the parts of z, and with `history` the autograd history of z."""
    x.rare.parts = z.rare.parts
    set_layout(x, z._layout)
    if history:
        copy_history(x, z)
    x.epoch += 1


cdef TensorBase alias_parts(TensorBase x):
    """Return x if it has memory, else an alias with its current parts, for backward."""
    cdef TensorBase y
    if x.block != NULL:
        return x
    y = alias_of(x)
    copy_history(y, x)
    return y


cdef int64_t version_of(TensorBase x):
    """Return the number of in-place writes to the memory of x, or of all its parts."""
    cdef int64_t n = 0
    if x.block != NULL:
        return x.block.version
    if x.rare is not None and x.rare.parts is not None:
        for t in x.rare.parts.values():
            n += (<TensorBase>t).block.version
    return n
