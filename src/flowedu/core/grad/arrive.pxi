# What happens when a gradient is known: hooks run, leaves add it to their .grad (part of tape.pyx).

cdef int before_node(Node n, list douts) except -1:
    """Tensor hooks and retain_grad of the node's outputs, then its prehooks."""
    cdef int slot
    cdef TensorBase g
    for slot in range(len(douts)):
        if douts[slot] is None:
            continue
        for f in list(n.hooks.get(slot, {}).values()):
            new = f(douts[slot])
            if new is not None:
                douts[slot] = checked(new, douts[slot])
        weak = n.hooks.get(("keep", slot))
        t = weak() if weak is not None else None
        if t is not None:
            g = COPY.call((douts[slot],), NO_ATTRS)
            (<TensorBase>t).grad_ = g if (<TensorBase>t).grad_ is None else (<TensorBase>t).grad_ + g
    for f in list(n.hooks.get("before", {}).values()):
        new = f(tuple(douts))
        if new is not None:
            douts[:] = new if isinstance(new, (tuple, list)) else (new,)
    return 0


cdef list after_node(Node n, list grads, list douts):
    for f in list(n.hooks.get("after", {}).values()):
        new = f(tuple(grads), tuple(douts))
        if new is not None:
            grads = list(new) if isinstance(new, (tuple, list)) else [new]
    return grads


cdef checked(new, old):
    if not isinstance(new, TensorBase):
        raise GradientError("register_hook: the hook returned something else than a tensor", expected="a tensor or None",
                            got=type(new).__name__)
    if (<TensorBase>new).shape_() != (<TensorBase>old).shape_():
        raise GradientError("register_hook: the hook changed the shape of the gradient",
                            expected=str((<TensorBase>old).shape_()), got=str((<TensorBase>new).shape_()))
    return new


cdef dict hooked_leaves(list order, list roots):
    """{id of a leaf with hooks: [contributions still to come, their sum]}; None: there is no such leaf."""
    cdef Node n
    cdef TensorBase leaf
    cdef dict found = None
    for n in order:
        for e in n.edges:
            if e is None or type(e) is Node:
                continue
            leaf = <TensorBase>e
            if leaf.rare is not None and (leaf.rare.hooks or leaf.rare.after):
                if found is None:
                    found = {}
                found.setdefault(id(e), [0, None])[0] += 1
    for t in roots:
        leaf = <TensorBase>t
        if leaf.node is None and leaf.rare is not None and (leaf.rare.hooks or leaf.rare.after):
            if found is None:
                found = {}
            found.setdefault(id(t), [0, None])[0] += 1
    return found


cdef int deliver(TensorBase leaf, dx, dict capture, list results, bint create_graph, dict waiting) except -1:
    """A gradient arrives at a leaf."""
    cdef list state
    if results is not None:
        for k in capture.get(id(leaf), ()):
            results[k] = dx if results[k] is None else results[k] + dx
        return 0
    if waiting is not None and id(leaf) in waiting:
        state = <list>waiting[id(leaf)]
        state[0] -= 1
        if dx is not None:
            state[1] = dx if state[1] is None else state[1] + dx
        if state[0] > 0 or state[1] is None:
            return 0
        dx = state[1]
        for f in list((leaf.rare.hooks or {}).values()):
            new = f(dx)
            if new is not None:
                dx = checked(new, dx)
        accumulate(leaf, <TensorBase>dx, create_graph)
        for f in list((leaf.rare.after or {}).values()):
            f(leaf)
        return 0
    return accumulate(leaf, <TensorBase>dx, create_graph)


cdef int accumulate(TensorBase leaf, TensorBase g, bint create_graph) except -1:
    """leaf.grad += g. A .grad has memory of its own: nobody else sees later in-place changes of it."""
    cdef TensorBase old
    if leaf.lay_ is not g.lay_:                      # a gradient lies as its leaf does
        g = brought(g, leaf.lay_)
    if leaf.grad_ is not None:
        old = <TensorBase>leaf.grad_
        if create_graph or old.flags & TRACKED or not try_into(ADD, (old, g), NO_ATTRS, old):
            leaf.grad_ = old + g
            (<TensorBase>leaf.grad_).flags |= ADOPTED
        return 0
    if g.block == NULL and g.flags & GLOBAL:      # its in-place ops exchange the parts: nobody else sees them
        g = alias_of(g)
    elif g.flags & ADOPTED or g.block == NULL or g.block.refs > 1 or not view_contiguous(&g.v):
        g = <TensorBase>COPY.call((g,), NO_ATTRS)
    leaf.grad_ = g
    g.flags |= ADOPTED
    return 0


def accumulate_into(TensorBase leaf, TensorBase g):
    """leaf.grad += g, for backward(inputs=...)."""
    accumulate(leaf, g, g.flags & TRACKED)
