# Delivery of gradients at the end of each path of a backward pass (part of tape.pyx). Hooks run
# once, on the complete gradient, which is then added to `.grad` or returned.

@cython.freelist(4)
cdef class Sinks:
    """Destinations of the gradients of one backward pass."""
    # {id of a leaf, or (id of a node, output number): indices in `targets` and `results`}
    cdef dict wanted             # None if all leaves get their gradients
    cdef list targets, results
    cdef dict waiting            # None, or sums for leaves with hooks; see count_hooked_leaves
    cdef bint into_grad, create_graph


cdef Sinks make_sinks(list order, list roots, targets, bint into_grad, bint create_graph):
    cdef TensorBase t
    cdef Sinks sinks = Sinks.__new__(Sinks)
    sinks.waiting, sinks.create_graph = count_hooked_leaves(order, roots), create_graph
    sinks.into_grad = into_grad or targets is None
    if targets is None:
        return sinks
    sinks.wanted, sinks.targets, sinks.results = {}, targets, [None] * len(targets)
    for k, t in enumerate(targets):
        sinks.wanted.setdefault(id(t) if t.node is None else (id(t.node), t.out_index),
                                []).append(k)
    mark_needed(order, sinks.wanted)
    return sinks


cdef int mark_needed(list order, dict wanted) except -1:
    """Set `needed` on the nodes from which a wanted value is reachable; only these run."""
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


cdef int deliver(Sinks sinks, TensorBase leaf, dx) except -1:
    """Deliver a gradient, or None, to a leaf."""
    cdef list state
    if sinks.wanted is not None and id(leaf) not in sinks.wanted:
        return 0
    if sinks.waiting is None or id(leaf) not in sinks.waiting:
        return 0 if dx is None else store(sinks, leaf, id(leaf), <TensorBase>dx)
    state = <list>sinks.waiting[id(leaf)]
    state[0] -= 1
    if dx is not None:
        state[1] = dx if state[1] is None else state[1] + dx
    if state[0] > 0 or state[1] is None:
        return 0
    store(sinks, leaf, id(leaf), filled.leaf_hooks(leaf, state[1]) if leaf.rare.hooks else state[1])
    if sinks.into_grad:
        for f in list((leaf.rare.after or {}).values()):
            f(leaf)
    return 0


cdef int store(Sinks sinks, TensorBase t, key, TensorBase g) except -1:
    """Add g to t.grad, or to the results for the target `key`."""
    if sinks.into_grad:
        return accumulate(t, g, sinks.create_graph)
    for k in sinks.wanted[key]:
        sinks.results[k] = g if sinks.results[k] is None else sinks.results[k] + g
    return 0


cdef int accumulate(TensorBase leaf, TensorBase g, bint create_graph) except -1:
    """Add g to leaf.grad, which shares no memory with other tensors, so users may write into it."""
    cdef TensorBase old
    if leaf._layout is not g._layout:                      # .grad has the layout of its leaf
        g = <TensorBase>filled.bring(g, leaf._layout)
    if leaf._grad is not None:
        old = <TensorBase>leaf._grad
        if create_graph or old.flags & TRACKED or filled.into is None \
                or not filled.into(ADD, (old, g), NO_ATTRS, old):
            leaf._grad = old + g
            (<TensorBase>leaf._grad).flags |= ADOPTED
        return 0
    if g.block == NULL and g.flags & GLOBAL:      # in-place ops replace its parts, so alias it
        g = alias_of(g)
    elif g.flags & ADOPTED or g.block == NULL or g.block.refs > 1 or not view_contiguous(&g.v):
        g = <TensorBase>COPY.call((g,), NO_ATTRS)
    leaf._grad = g
    g.flags |= ADOPTED
    return 0


# ---- hooks
cdef dict count_hooked_leaves(list order, list roots):
    """Return {id of a leaf with hooks: [number of pending gradients, their sum]}, or None."""
    cdef TapeNode n
    cdef dict sums = {}
    for n in order:
        for e in n.edges:
            expect(sums, e)
    for t in roots:
        expect(sums, get_edge(t))
    return sums or None


cdef inline int expect(dict sums, e) except -1:
    """Count one more pending gradient if e is a leaf with hooks."""
    if e is not None and type(e) is not TapeNode:
        rare = (<TensorBase>e).rare
        if rare is not None and ((<Rare>rare).hooks or (<Rare>rare).after):
            sums.setdefault(id(e), [0, None])[0] += 1
    return 0


cdef int finish_outputs(Sinks sinks, TapeNode n) except -1:
    """Run the hooks on the complete gradients of the outputs of n, then store those of targets."""
    cdef int i
    cdef TensorBase t
    if n.hooks is not None:
        filled.before_node(n, n.grads)
    if sinks.wanted is None:
        return 0
    for i in range(len(n.grads)):
        if n.grads[i] is not None and (id(n), i) in sinks.wanted:
            t = sinks.targets[sinks.wanted[id(n), i][0]]
            if not sinks.into_grad or n.hooks is None or ("keep", i) not in n.hooks:
                store(sinks, t, (id(n), i), <TensorBase>n.grads[i])
    return 0


cdef int skip_node(Sinks sinks, TapeNode n) except -1:
    """Deliver None to the leaves among the inputs of n, so that they do not wait for n."""
    for e in n.edges:
        if e is not None and type(e) is not TapeNode:
            deliver(sinks, <TensorBase>e, None)
    return 0


cdef list compute_hooked_gradients(TapeNode n, list douts, Sinks sinks):
    """Run compute_gradients, the checks of anomaly mode, and the hooks after the node."""
    cdef list grads
    try:
        grads = compute_gradients(n, douts, sinks)
    except Exception as error:
        if filled.watch is not None:
            filled.watch(n, douts, None, error)
        raise
    if filled.watch is not None:
        filled.watch(n, douts, grads, None)
    return grads if n.hooks is None else filled.after_node(n, grads, douts)
