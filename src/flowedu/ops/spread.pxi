# Global tensors: calls with one among their inputs (part of core.pyx). What such a call does is dist/tensor/interpreter.py;
# here it gets its history, which is that of logical values: a gradient rule does not know on how many devices it runs.

cdef class Lay:
    """How a global tensor lies: its placement, one sbp for each axis of it. Compare with `is`."""

    def __init__(self, placement, tuple sbp, layout, Lay whole=None):
        self.placement, self.sbp, self.layout, self.single = placement, sbp, layout, layout.k == 1
        self.whole = self if whole is None else whole

    def __repr__(self):
        return f"<{self.placement}, {self.sbp}>"

cdef object run_global = None, bring = None


def register_global(run, to_lay):
    """dist/tensor gives `run(op, inputs, attrs)`, which answers a call without recording it, and `to_lay(x, lay)`, which
    boxes a gradient."""
    global run_global, bring
    run_global, bring = run, to_lay


cdef spread_call(OpBase op, tuple inputs, tuple attrs):
    """A call of which at least one input is a global tensor."""
    cdef int i, n = len(inputs)
    cdef fe_view *views[MAX_ARGS]
    cdef bint wants = False
    cdef TensorBase x
    cdef Entry e
    for i in range(n):
        if not isinstance(inputs[i], TensorBase):
            raise_not_tensor(op, inputs[i], i)
        x = <TensorBase>inputs[i]
        if x.block == NULL or x.link is not None:
            settle(x)
        wants |= x.tracked
    cdef bint old = swap_grad(False)
    try:
        result = run_global(op, inputs, attrs)
    finally:
        swap_grad(old)
    if op.view is None and not (wants and old):
        return result
    if n > MAX_ARGS - 4:
        e = find_many(op, inputs, attrs)
    else:
        for i in range(n):
            views[i] = &(<TensorBase>inputs[i]).v
        e = find(op, inputs, attrs, views)
    if e is None:
        return result
    if e.is_view:
        make_link(<TensorBase>inputs[0], <TensorBase>result, op, attrs)
    if wants and old:
        tape(op, inputs, e, result)
    return result


def global_tensor(tuple shape, dtype, Lay lay, dict parts):
    """A tensor that lies on several devices: a logical shape, and {rank: local tensor} of the ranks owned here."""
    cdef TensorBase y = lazy_tensor(None, shape, dtype)
    y.lay, y.rare.parts = lay, parts
    return y


def labelled(TensorBase x, Lay lay or None):
    """The memory of x as a tensor that lies on the one device of `lay` (None: a local tensor), without history."""
    cdef TensorBase y = alias_of(x)
    y.lay = lay
    return y


def take_parts(TensorBase x, TensorBase z, bint history):
    """The global tensor x has the parts of z from here on; history: and came about as z did."""
    x.rare.parts, x.lay = z.rare.parts, z.lay
    if history:
        x.node, x.out_index, x.tracked = z.node, z.out_index, z.tracked
    x.epoch += 1


cdef TensorBase kept_parts(TensorBase x):
    """What backward keeps of an input: of a global tensor on several devices the parts it has now."""
    cdef TensorBase y
    if x.block != NULL:
        return x
    y = alias_of(x)
    y.node, y.out_index, y.tracked = x.node, x.out_index, x.tracked
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
    return <TensorBase>bring(x, lay)


cdef int take_memory(TensorBase x, TensorBase y) except -1:
    """set_data where one of the two is global."""
    cdef Block *old = x.block
    if y.block != NULL:
        y.block.refs += 1
    elif x.rare is None:
        x.rare = Rare()
    x.block, x.v, x.link, x.lay, x.uniform = y.block, y.v, None, y.lay, y.uniform
    if x.rare is not None:
        x.rare.parts = None if y.rare is None else y.rare.parts
    x.epoch += 1
    if old != NULL:
        block_drop(old)
    return 0
