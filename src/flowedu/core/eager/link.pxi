# Chapter 2, views: where one came from, and its history when an in-place op rewrote that of its base (part of dispatch.pyx).
#
# A view's history is "this view op, of my parent". While nobody writes in place it is recorded once, when the view is made.
# A write rewrites the base's history and counts base.epoch up; every view of it is then stale, and makes its history anew
# when it is used next: the same view op again, on the same memory.

@cython.freelist(64)
cdef class Link:
    """How a view came about."""


cdef int make_link(TensorBase x, TensorBase y, OpBase op, tuple attrs) except -1:
    """y is a view of x by `op`."""
    cdef Link link = Link.__new__(Link)
    link.base = x if x.link is None else x.link.base
    if x.link is None:
        link.depth = 1
    elif x.link.parent is None or x.link.depth >= MAX_DEPTH or x.link.epoch == NO_HISTORY:
        link.depth = MAX_DEPTH
    else:
        link.depth = x.link.depth + 1
    if link.depth < MAX_DEPTH and not (fe_grad_off and y.block != NULL):
        link.parent, link.op, link.attrs = x, op, attrs
    link.epoch = NO_HISTORY if fe_grad_off and y.block != NULL else link.base.epoch
    link.plain = fe_grad_off
    set_link(y, link)
    return 0


cdef inline void set_link(TensorBase x, Link link):
    x.link = link
    set_flag(x, VIEW, link is not None)


cdef TensorBase view_of(TensorBase x, OpBase op, tuple attrs, Entry e, int flags):
    """The output of a view op: the memory of x, seen otherwise."""
    cdef TensorBase y = new_tensor()
    set_flag(y, UNIFORM, not flags & LOCAL_ONLY)
    set_flag(y, ELSEWHERE, x.flags & ELSEWHERE)
    y.v, y.block = e.outs[0], x.block
    y.v.data = x.v.data + e.offset * BYTES[x.v.dtype]
    y.block.refs += 1
    make_link(x, y, op, attrs)
    return y


cdef int settle_all(tuple inputs) except -1:
    """settle every input; returns their flags."""
    cdef int i, flags = 0
    cdef TensorBase x
    for i in range(len(inputs)):
        x = <TensorBase>inputs[i]
        if flags_of(x) & (VIEW | NO_MEMORY):
            settle(x)
        flags |= flags_of(x)
    return flags


cdef int settle(TensorBase x) except -1:
    """Before x is used: refuse lazy tensors where numbers are needed, bring the history of a stale view up to date."""
    if x.block == NULL and not x.flags & GLOBAL and not lazy_mode():
        raise_lazy("it is used outside nn.Graph.build")
    if x.flags & VIEW and x.link.epoch != x.link.base.epoch and x.link.epoch != NO_HISTORY \
            and (not fe_grad_off or x.block == NULL):
        renew(x)
    return 0


cdef int renew(TensorBase x) except -1:
    """Make the history of a stale view anew."""
    cdef Link link = x.link
    cdef TensorBase base = link.base, y
    cdef int d
    cdef bint same
    if x.flags & TRACKED and x.node is None and x.block != NULL:        # a leaf by its user's own word
        link.epoch = base.epoch
        return 0
    if link.parent is None:
        if (base.flags | x.flags) & TRACKED:
            raise GradientError("this view was made by too many view ops to follow what was written into its base",
                                expected=f"fewer than {MAX_DEPTH} views of views", got="a view whose base was written "
                                "in place by an op with a gradient", fix="clone() the view when it is made")
        link.epoch = base.epoch
        return 0
    if x.block != NULL and not (base.flags | x.flags) & TRACKED:
        link.epoch = base.epoch
        return 0
    old = swap_grad(not link.plain and not fe_grad_off) if x.flags & GLOBAL else not fe_grad_off
    try:
        y = link.op.call((link.parent,), link.attrs)
    except ShapeError:
        y = None
    finally:
        swap_grad(old)
    same = y is not None and y.v.ndim == x.v.ndim and y.v.data == x.v.data
    for d in range(x.v.ndim):
        same = same and y.v.shape[d] == x.v.shape[d] and (y.v.stride[d] == x.v.stride[d] or x.v.shape[d] == 1)
    if not same and (x.block != NULL or y is None):
        raise GradientError("the shape or strides of a view's base were changed in place (t_, squeeze_, set data), and then "
                            "its values by an op with a gradient", got=f"a view of shape {x._sizes()}",
                            fix="make the view again from its base")
    take_history(x, y)
    if x.block == NULL:
        take_symbol(x, y)
    link.epoch = base.epoch
    return 0


def twin(TensorBase x):
    """x as it is now in another object: the same memory, history and base."""
    cdef TensorBase y = alias_of(x)
    take_history(y, x)
    set_link(y, x.link)
    return y
