# Chapter 6, global tensors: calls with one among their inputs (part of dispatch.pyx). What such a call does is core/sbp/tensor/interpreter.py;
# here it gets its history, which is that of logical values: a gradient rule does not know on how many devices it runs.

cdef class GlobalLayout:
    """How a global tensor lies: its placement, one sbp for each axis of it. Compare with `is`."""

    def __init__(self, placement, tuple sbp, layout, GlobalLayout whole=None):
        self.placement, self.sbp, self.layout, self.single = placement, sbp, layout, layout.k == 1
        self.whole = self if whole is None else whole

    def __repr__(self):
        return f"<{self.placement}, {self.sbp}>"


cdef inline void set_layout(TensorBase x, GlobalLayout at):
    x._layout = at
    set_flag(x, GLOBAL, at is not None)


def apart(tuple inputs):
    """Whether inputs with axes lie in different memories: a constant is not yet on the GPU."""
    return len({x._device for x in inputs if x.is_eager and (x.ndim or x._device)}) > 1


cdef GlobalLayout one_device(tuple inputs):
    """How the results lie if all inputs are in the memory of one device; None: they are not."""
    cdef PyObject *x                               # borrowed: counting references costs 20 ns of a call of 160
    cdef PyObject *found = NULL
    cdef int i
    for i in range(len(inputs)):
        x = <PyObject *>inputs[i]
        if (<TensorBase>x)._layout is None:
            if not (<TensorBase>x).flags & UNIFORM:          # it may differ from rank to rank: an error, later
                return None
        elif (<TensorBase>x).block == NULL or found != NULL and <PyObject *>(<TensorBase>x)._layout.whole != found:
            return None
        else:
            found = <PyObject *>(<TensorBase>x)._layout.whole
    return None if found == NULL else <GlobalLayout>found


cdef int label(result, GlobalLayout at) except -1:
    """Give every result this layout."""
    if isinstance(result, TensorBase):
        set_layout(<TensorBase>result, at)
    else:
        for y in result:
            set_layout(<TensorBase>y, at)
    return 0


cdef call_global(OpBase op, tuple inputs, tuple attrs, Entry e, int flags, const int64_t *drawn, GlobalLayout at):
    """A call with a global tensor among its inputs. If all are on one device, it runs on their memory as a local call."""
    if drawn == NULL and not (flags & ON_DEVICE and apart(inputs)):
        at = one_device(inputs)
        if at is not None:
            return special(op, inputs, attrs, e, flags, drawn, at)
    if drawn != NULL:
        attrs = (*attrs[:len(attrs) - 2], drawn[0], drawn[1])
    return call_spread(op, inputs, attrs)

SPECIALS[0].flag, SPECIALS[0].answer = GLOBAL, call_global


cdef call_spread(OpBase op, tuple inputs, tuple attrs):
    """A call on the devices of global tensors."""
    cdef bint wants = refresh_views(inputs) & TRACKED, old = set_grad_enabled(False)
    cdef Entry e
    try:
        result = filled.run_global(op, inputs, attrs)
    finally:
        set_grad_enabled(old)
    if op.view is None and not (wants and old):
        return result
    e = find(op, inputs, attrs)
    if e is None:
        return result
    if e.flags & VIEW:
        make_link(<TensorBase>inputs[0], <TensorBase>result, op, attrs)
    if wants and old:
        tape(op, inputs, e, result)
    return result


def global_tensor(tuple shape, dtype, GlobalLayout global_layout, parts):
    """A tensor that lies on several devices: a logical shape, and {rank: local tensor} of the ranks owned here."""
    cdef TensorBase y = lazy_tensor(None, shape, dtype)
    set_layout(y, global_layout)
    y.rare.parts = parts
    return y


def labelled(TensorBase x, GlobalLayout global_layout or None):
    """The memory of x as a tensor that lies on the one device of `global_layout` (None: a local tensor), without history."""
    cdef TensorBase y = alias_of(x)
    set_layout(y, global_layout)
    return y


def take_parts(TensorBase x, TensorBase z, bint history):
    """The global tensor x has the parts of z from here on; history: and z's autograd history."""
    x.rare.parts = z.rare.parts
    set_layout(x, z._layout)
    if history:
        copy_history(x, z)
    x.epoch += 1


cdef TensorBase kept_parts(TensorBase x):
    """What backward keeps of an input: of a global tensor on several devices the parts it has now."""
    cdef TensorBase y
    if x.block != NULL:
        return x
    y = alias_of(x)
    copy_history(y, x)
    return y


cdef int64_t version_of(TensorBase x):
    """How often the memory of x was written in place; of a global tensor, that of all its parts."""
    cdef int64_t n = 0
    if x.block != NULL:
        return x.block.version
    if x.rare is not None and x.rare.parts is not None:
        for t in x.rare.parts.values():
            n += (<TensorBase>t).block.version
    return n
