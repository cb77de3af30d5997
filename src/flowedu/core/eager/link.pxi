# Chapter 2: views and their history (part of dispatch.pyx).
#
# The history of a view is the call of its view op on its parent, recorded when the view is made. An
# in-place write changes the history of the base and increments base.epoch, which makes its views
# stale. The next use of a stale view records the view op again (tensor/inplace/writing.pyx).

@cython.freelist(64)
cdef class Link:
    """Origin of a view: its base, its parent, and the view op."""


cdef int make_link(TensorBase x, TensorBase y, OpBase op, tuple attrs) except -1:
    """Record that y is the view `op` of x."""
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


cdef TensorBase make_view(TensorBase x, OpBase op, tuple attrs, Entry e, int flags):
    """Return the output of a view op, which shares the memory of x."""
    cdef TensorBase y = new_tensor()
    set_flag(y, UNIFORM, not flags & LOCAL_ONLY)
    set_flag(y, ON_DEVICE, x.flags & ON_DEVICE)
    y.v, y.block = e.outs[0], x.block
    y.v.data = x.v.data + e.offset * itemsize(x.v.dtype)
    y.block.refs += 1
    make_link(x, y, op, attrs)
    return y


cdef call_refreshed(OpBase op, tuple inputs, tuple attrs, Entry e, int flags, const int64_t *drawn,
                    GlobalLayout at):
    """Run a call with a view, or a value without memory, among its inputs."""
    return run_special(op, inputs, attrs, e, refresh_views(inputs) & ~(GLOBAL | VIEW | NO_MEMORY),
                       drawn, at)

SPECIALS[1].flag, SPECIALS[1].handle = VIEW | NO_MEMORY, call_refreshed


cdef int refresh_views(tuple inputs) except -1:
    """Refresh the views among the inputs. Return the flags of all inputs, combined by OR."""
    cdef int i, flags = 0
    cdef TensorBase x
    for i in range(len(inputs)):
        x = <TensorBase>inputs[i]
        if flags_of(x) & (VIEW | NO_MEMORY):
            refresh_view(x)
        flags |= flags_of(x)
    return flags


cdef int refresh_view(TensorBase x) except -1:
    """Raise if x is lazy outside of a graph; record its history again if it is a stale view."""
    if x.block == NULL and not x.flags & GLOBAL and not lazy_mode():
        raise errors.lazy_tensor("it is used outside nn.Graph.build")
    if x.flags & VIEW and x.link.epoch != x.link.base.epoch and x.link.epoch != NO_HISTORY \
            and (not fe_grad_off or x.block == NULL):
        filled.renew(x)
    return 0
