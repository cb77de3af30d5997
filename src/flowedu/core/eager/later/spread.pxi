# Chapter 6, global tensors: calls with one among their inputs (part of dispatch.pyx). What such a call does is core/sbp/tensor/interpreter.py;
# here it gets its history, which is that of logical values: a gradient rule does not know on how many devices it runs.

cdef class Lay:
    """How a global tensor lies: its placement, one sbp for each axis of it. Compare with `is`."""

    def __init__(self, placement, tuple sbp, layout, Lay whole=None):
        self.placement, self.sbp, self.layout, self.single = placement, sbp, layout, layout.k == 1
        self.whole = self if whole is None else whole

    def __repr__(self):
        return f"<{self.placement}, {self.sbp}>"


cdef inline void set_lay(TensorBase x, Lay lay):
    x._layout = lay
    set_flag(x, GLOBAL, lay is not None)


def apart(tuple inputs):
    """Whether inputs with axes lie in different memories: a constant is still to be brought to a GPU."""
    return len({x._device for x in inputs if x.is_eager and (x.ndim or x._device)}) > 1


cdef Lay one_device(tuple inputs):
    """How the results lie if all inputs are in the memory of one device; None: `spread_call` has to see to it."""
    cdef PyObject *x                               # borrowed: counting references costs 20 ns of a call of 160
    cdef PyObject *lay = NULL
    cdef int i
    for i in range(len(inputs)):
        x = <PyObject *>inputs[i]
        if (<TensorBase>x)._layout is None:
            if not (<TensorBase>x).flags & UNIFORM:          # it may differ from rank to rank: spread_call says what is wrong
                return None
        elif (<TensorBase>x).block == NULL or lay != NULL and <PyObject *>(<TensorBase>x)._layout.whole != lay:
            return None
        else:
            lay = <PyObject *>(<TensorBase>x)._layout.whole
    return None if lay == NULL else <Lay>lay


cdef int label(result, Lay lay) except -1:
    """All results lie so."""
    if isinstance(result, TensorBase):
        set_lay(<TensorBase>result, lay)
    else:
        for y in result:
            set_lay(<TensorBase>y, lay)
    return 0


cdef spread_call(OpBase op, tuple inputs, tuple attrs):
    """A call of which at least one input is a global tensor."""
    cdef bint wants = settle_all(inputs) & TRACKED, old = swap_grad(False)
    cdef Entry e
    try:
        result = filled.run_global(op, inputs, attrs)
    finally:
        swap_grad(old)
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


def global_tensor(tuple shape, dtype, Lay lay, dict parts):
    """A tensor that lies on several devices: a logical shape, and {rank: local tensor} of the ranks owned here."""
    cdef TensorBase y = lazy_tensor(None, shape, dtype)
    set_lay(y, lay)
    y.rare.parts = parts
    return y


def labelled(TensorBase x, Lay lay or None):
    """The memory of x as a tensor that lies on the one device of `lay` (None: a local tensor), without history."""
    cdef TensorBase y = alias_of(x)
    set_lay(y, lay)
    return y


def take_parts(TensorBase x, TensorBase z, bint history):
    """The global tensor x has the parts of z from here on; history: and came about as z did."""
    x.rare.parts = z.rare.parts
    set_lay(x, z._layout)
    if history:
        take_history(x, z)
    x.epoch += 1


cdef TensorBase kept_parts(TensorBase x):
    """What backward keeps of an input: of a global tensor on several devices the parts it has now."""
    cdef TensorBase y
    if x.block != NULL:
        return x
    y = alias_of(x)
    take_history(y, x)
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


cdef TensorBase brought(TensorBase x, Lay lay):
    """A gradient in the layout of its leaf."""
    return <TensorBase>filled.bring(x, lay)


cdef int take_memory(TensorBase x, TensorBase y) except -1:
    """set_data where one of the two is global."""
    cdef Block *old = x.block
    if y.block != NULL:
        y.block.refs += 1
    elif x.rare is None:
        x.rare = Rare()
    x.block, x.v = y.block, y.v
    set_link(x, None)
    set_lay(x, y._layout)
    set_flag(x, UNIFORM, y.flags & UNIFORM)
    set_flag(x, ELSEWHERE, y.flags & ELSEWHERE)
    if x.rare is not None:
        x.rare.parts = None if y.rare is None else y.rare.parts
    x.epoch += 1
    if old != NULL:
        block_drop(old)
    return 0
