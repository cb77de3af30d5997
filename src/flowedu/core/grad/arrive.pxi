# Where gradients arrive, and the hooks of users there (part of tape.pyx): leaves add them to their .grad, wanted tensors collect
# them, hooks see them, anomaly mode looks on. A backward without any of these pays for none.

@cython.freelist(4)
cdef class Ends:
    """Where the paths of one backward end."""
    cdef dict wanted             # None: leaves get their .grad; {id of a leaf, or (id of a node, output): places in results}
    cdef list results            # of the wanted
    cdef dict waiting            # None, or what has arrived at leaves with hooks: see hooked_leaves
    cdef bint create_graph


cdef Ends ends_of(list order, list roots, targets, bint create_graph):
    cdef TensorBase t
    cdef Ends ends = Ends.__new__(Ends)
    ends.create_graph = create_graph
    if targets is None:
        ends.waiting = hooked_leaves(order, roots)
        return ends
    ends.wanted, ends.results = {}, [None] * len(targets)
    for k, t in enumerate(targets):
        ends.wanted.setdefault(id(t) if t.node is None else (id(t.node), t.out_index), []).append(k)
    mark_needed(order, ends.wanted)
    return ends


cdef int mark_needed(list order, dict wanted) except -1:
    """Only nodes above a wanted value have to run."""
    cdef TapeNode n
    cdef int i
    wanted_nodes = {key[0] for key in wanted if type(key) is tuple}
    for n in reversed(order):
        n.needed = False
        for e in n.edges:
            if type(e) is TapeNode:
                n.needed = (<TapeNode>e).wanted
            elif e is not None:
                n.needed = id(e) in wanted
            if n.needed:
                break
        n.wanted = n.needed or id(n) in wanted_nodes
    return 0


cdef int deliver(Ends ends, TensorBase leaf, dx) except -1:
    """A gradient, or None, arrives at a leaf."""
    cdef list state
    if ends.wanted is not None:
        if dx is not None:
            for k in ends.wanted.get(id(leaf), ()):
                ends.results[k] = dx if ends.results[k] is None else ends.results[k] + dx
        return 0
    if ends.waiting is not None and id(leaf) in ends.waiting:
        state = <list>ends.waiting[id(leaf)]
        state[0] -= 1
        if dx is not None:
            state[1] = dx if state[1] is None else state[1] + dx
        if state[0] > 0 or state[1] is None:
            return 0
        dx = state[1]
        if leaf.rare.hooks:
            dx = filled.leaf_hooks(leaf, dx)
        accumulate(leaf, <TensorBase>dx, ends.create_graph)
        for f in list((leaf.rare.after or {}).values()):
            f(leaf)
        return 0
    return 0 if dx is None else accumulate(leaf, <TensorBase>dx, ends.create_graph)


cdef int accumulate(TensorBase leaf, TensorBase g, bint create_graph) except -1:
    """leaf.grad += g. A .grad has memory of its own: no other tensor sees later in-place changes of it."""
    cdef TensorBase old
    if leaf._layout is not g._layout:                      # a gradient lies as its leaf does
        g = <TensorBase>filled.bring(g, leaf._layout)
    if leaf._grad is not None:
        old = <TensorBase>leaf._grad
        if create_graph or old.flags & TRACKED or filled.into is None or not filled.into(ADD, (old, g), NO_ATTRS, old):
            leaf._grad = old + g
            (<TensorBase>leaf._grad).flags |= ADOPTED
        return 0
    if g.block == NULL and g.flags & GLOBAL:      # its in-place ops exchange the parts: no other tensor sees them
        g = alias_of(g)
    elif g.flags & ADOPTED or g.block == NULL or g.block.refs > 1 or not view_contiguous(&g.v):
        g = <TensorBase>COPY.call((g,), NO_ATTRS)
    leaf._grad = g
    g.flags |= ADOPTED
    return 0


def accumulate_into(TensorBase leaf, TensorBase g):
    """leaf.grad += g, for backward(inputs=...)."""
    accumulate(leaf, g, g.flags & TRACKED)


# ---- hooks
cdef dict hooked_leaves(list order, list roots):
    """{id of a leaf with hooks: [contributions still to come, their sum]}; None: there is no such leaf."""
    cdef TapeNode n
    cdef TensorBase leaf
    cdef dict found = None
    for n in order:
        for e in n.edges:
            if e is None or type(e) is TapeNode:
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


cdef int pass_outputs(Ends ends, TapeNode n) except -1:
    """The gradients of n's outputs are complete: hooks may change them, and wanted ones are results."""
    cdef int i
    if n.hooks is not None:
        filled.before_node(n, n.grads)
    if ends.wanted is not None:
        for i in range(len(n.grads)):
            for k in ends.wanted.get((id(n), i), ()):
                ends.results[k] = n.grads[i]
    return 0


cdef int step_over(Ends ends, TapeNode n) except -1:
    """No gradient goes through n: leaves with hooks below it need not wait for one."""
    for e in n.edges:
        if e is not None and type(e) is not TapeNode:
            deliver(ends, <TensorBase>e, None)
    return 0


cdef list hooked_gradients(TapeNode n, list douts, Ends ends):
    """`gradients`, seen by anomaly mode and the node's hooks."""
    cdef list grads
    try:
        grads = gradients(n, douts, ends)
    except Exception as error:
        if filled.watch is not None:
            filled.watch(n, douts, None, error)
        raise
    if filled.watch is not None:
        filled.watch(n, douts, grads, None)
    return grads if n.hooks is None else filled.after_node(n, grads, douts)
