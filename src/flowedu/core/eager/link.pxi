# Chapter 2, views: the base of each, and its history when an in-place op rewrote that of its base (part of dispatch.pyx).
#
# A view's history is "this view op, of my parent". Without writes in place it is recorded once, when the view is made.
# A write rewrites the base's history and counts base.epoch up; every view of it is then stale, and makes its history anew
# when it is used next: the same view op again, on the same memory (tensor/writing.pyx).

@cython.freelist(64)
cdef class Link:
    """How a view was made."""


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
    set_flag(y, ON_DEVICE, x.flags & ON_DEVICE)
    y.v, y.block = e.outs[0], x.block
    y.v.data = x.v.data + e.offset * itemsize(x.v.dtype)
    y.block.refs += 1
    make_link(x, y, op, attrs)
    return y


cdef call_refreshed(OpBase op, tuple inputs, tuple attrs, Entry e, int flags, const int64_t *drawn, GlobalLayout at):
    """A call with a view, or a value without memory, among its inputs."""
    return special(op, inputs, attrs, e, refresh_views(inputs) & ~(GLOBAL | VIEW | NO_MEMORY), drawn, at)

SPECIALS[1].flag, SPECIALS[1].answer = VIEW | NO_MEMORY, call_refreshed


cdef int refresh_views(tuple inputs) except -1:
    """refresh_view every input; returns their flags."""
    cdef int i, flags = 0
    cdef TensorBase x
    for i in range(len(inputs)):
        x = <TensorBase>inputs[i]
        if flags_of(x) & (VIEW | NO_MEMORY):
            refresh_view(x)
        flags |= flags_of(x)
    return flags


cdef int refresh_view(TensorBase x) except -1:
    """Before x is used: refuse lazy tensors where numbers are needed, bring the history of a stale view up to date."""
    if x.block == NULL and not x.flags & GLOBAL and not lazy_mode():
        raise_lazy("it is used outside nn.Graph.build")
    if x.flags & VIEW and x.link.epoch != x.link.base.epoch and x.link.epoch != NO_HISTORY \
            and (not fe_grad_off or x.block == NULL):
        filled.renew(x)
    return 0
