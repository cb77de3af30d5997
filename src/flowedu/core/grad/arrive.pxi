# The end of every path of a backward pass (part of tape.pyx). Each gradient is delivered once: user hooks run on the complete
# gradient, then it is added to `.grad` or returned. A backward pass without hooks or targets pays for neither.

@cython.freelist(4)
cdef class Ends:
    """Destinations of the gradients of one backward pass."""
    # None: every leaf. Else {id of a leaf, or (id of a node, output): places in targets and results}
    cdef dict wanted
    cdef list targets, results
    cdef dict waiting            # None, or the sums of leaves with hooks: see hooked_leaves
    cdef bint into_grad, create_graph


cdef Ends ends_of(list order, list roots, targets, bint into_grad, bint create_graph):
    cdef TensorBase t
    cdef Ends ends = Ends.__new__(Ends)
    ends.waiting, ends.create_graph = hooked_leaves(order, roots), create_graph
    ends.into_grad = into_grad or targets is None
    if targets is None:
        return ends
    ends.wanted, ends.targets, ends.results = {}, targets, [None] * len(targets)
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
    if ends.wanted is not None and id(leaf) not in ends.wanted:
        return 0
    if ends.waiting is None or id(leaf) not in ends.waiting:
        return 0 if dx is None else store(ends, leaf, id(leaf), <TensorBase>dx)
    state = <list>ends.waiting[id(leaf)]
    state[0] -= 1
    if dx is not None:
        state[1] = dx if state[1] is None else state[1] + dx
    if state[0] > 0 or state[1] is None:
        return 0
    store(ends, leaf, id(leaf), filled.leaf_hooks(leaf, state[1]) if leaf.rare.hooks else state[1])
    if ends.into_grad:
        for f in list((leaf.rare.after or {}).values()):
            f(leaf)
    return 0


cdef int store(Ends ends, TensorBase t, key, TensorBase g) except -1:
    """Add g to t.grad, or to the results for the target `key`."""
    if ends.into_grad:
        return accumulate(t, g, ends.create_graph)
    for k in ends.wanted[key]:
        ends.results[k] = g if ends.results[k] is None else ends.results[k] + g
    return 0


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


# ---- hooks
cdef dict hooked_leaves(list order, list roots):
    """{id of a leaf with hooks: [contributions still to come, their sum]}; None: there is no such leaf."""
    cdef TapeNode n
    cdef dict sums = {}
    for n in order:
        for e in n.edges:
            expect(sums, e)
    for t in roots:
        expect(sums, edge(t))
    return sums or None


cdef inline int expect(dict sums, e) except -1:
    """One more gradient will arrive at e, which may be a leaf with hooks."""
    if e is not None and type(e) is not TapeNode:
        rare = (<TensorBase>e).rare
        if rare is not None and ((<Rare>rare).hooks or (<Rare>rare).after):
            sums.setdefault(id(e), [0, None])[0] += 1
    return 0


cdef int pass_outputs(Ends ends, TapeNode n) except -1:
    """The gradients of n's outputs are complete: run their hooks, then store those of targets."""
    cdef int i
    cdef TensorBase t
    if n.hooks is not None:
        filled.before_node(n, n.grads)
    if ends.wanted is None:
        return 0
    for i in range(len(n.grads)):
        if n.grads[i] is not None and (id(n), i) in ends.wanted:
            t = ends.targets[ends.wanted[id(n), i][0]]
            if not ends.into_grad or n.hooks is None or ("keep", i) not in n.hooks:
                store(ends, t, (id(n), i), <TensorBase>n.grads[i])
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
