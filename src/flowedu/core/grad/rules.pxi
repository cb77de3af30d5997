# Gradients of one node, from its rules and saved values (part of tape.pyx).

cdef int check_versions(TapeNode n) except -1:
    """Raise GradientError if a saved tensor was written since it was saved."""
    cdef int i
    cdef int64_t then
    cdef TensorBase t
    for i in range(len(n.saved)):
        if n.saved[i] is None:
            continue
        t = <TensorBase>n.saved[i]
        then = n.versions[i] if i < 4 else n.more_versions[i]
        if version_of(t) != then:
            kind = f"{t.dtype.name}{list(t._sizes())}"
            what = n.entry.op.name if n.entry is not None else n.custom.name
            raise errors.modified_in_place(what, kind, version_of(t), then, n.line)
    return 0


cdef tuple get_saved(TapeNode n, bint create_graph):
    """Return the saved values. If create_graph, they have the history they had when saved."""
    cdef TensorBase y, x
    cdef int i, slot
    if n.saved is None:
        raise errors.released_node(n.name())
    cdef tuple saved = n.saved
    for i in range(len(saved)):
        if saved[i] is not None and not isinstance(saved[i], TensorBase):   # saved_tensors_hooks
            saved = tuple([s if s is None or isinstance(s, TensorBase) else s.unpack()
                           for s in saved])
            break
    else:
        check_versions(n)
    if not create_graph or n.entry is None:
        return saved
    out = list(saved)
    for i in range(len(out)):
        slot = i if n.entry.op.variadic else n.entry.op.saved[i]
        if out[i] is None:
            continue
        x = <TensorBase>out[i]
        if slot < 0:
            y = alias_of(x)
            set_output(y, n, ~slot, True)
            out[i] = y
            continue
        e = n.edges[slot]
        if e is None:
            if x.flags & TRACKED:
                out[i] = alias_of(x)
        elif type(e) is TapeNode:
            if x.node is not e or x.out_index != n.slot(slot) or x.flags & VIEW:
                y = alias_of(x)
                set_output(y, e, n.slot(slot), True)
                out[i] = y
        else:
            out[i] = e
    return tuple(out)


cdef list compute_gradients(TapeNode n, list douts, Sinks sinks):
    """Return a list with the gradient of each input; None if it is zero or not needed."""
    cdef OpBase op
    cdef Rule rule
    cdef tuple saved
    cdef int i
    cdef list grads
    if n.entry is None:
        get_saved(n, sinks.create_graph)
        return list(n.custom.backward(n, douts))
    op = n.entry.op
    if not op.rules:
        raise no_gradient(op.name, n.line)
    saved = get_saved(n, sinks.create_graph) if n.saved is None or len(n.saved) else NO_ATTRS
    if op.variadic:
        rule = op.by_input[0]
        return list(rule.apply(douts, (saved,), n.entry.attrs, (n.entry.in_shapes,),
                               (n.entry.in_dtypes,)))
    if op.star is not None:
        table = op.star.apply(douts, saved, n.entry.attrs, n.entry.in_shapes, n.entry.in_dtypes)
        return [table.get(name) for name in op.inputs]
    grads = [None] * len(n.edges)
    for i in range(len(n.edges)):
        e = n.edges[i]
        if e is not None and ((<TapeNode>e).wanted if type(e) is TapeNode else sinks.wanted is None
                              or id(e) in sinks.wanted):
            rule = op.by_input[i]
            if rule is not None:
                grads[i] = rule.apply(douts, saved, n.entry.attrs, n.entry.in_shapes,
                                      n.entry.in_dtypes)
    return grads


cdef list LEADING = [tuple(range(k)) for k in range(9)]


cdef object sum_to_shape(TensorBase x, tuple shape):
    """Sum the gradient x to `shape`. Leading axes, the usual case, need no Python code."""
    cdef int i, extra = x.v.ndim - len(shape)
    if extra < 0:
        return unbroadcast(x, shape)
    for i in range(len(shape)):
        if x.v.shape[extra + i] != <int64_t>shape[i]:
            return unbroadcast(x, shape)
    return x if extra == 0 else SUM.call((x,), (LEADING[extra], False))
