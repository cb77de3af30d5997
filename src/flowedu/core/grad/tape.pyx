"""Backward pass over the tape: the traversal of reverse.py, in C, over recorded eager calls.

Nodes are visited once, latest first (their sequence numbers are a topological order).
`run_backward` is the traversal; rules.pxi computes gradients; arrive.pxi delivers them.
"""
from libc.stdint cimport int64_t
cimport cython

from flowedu.core.eager.dispatch cimport (ADOPTED, GLOBAL, TRACKED, VIEW, Entry, Rare, TapeNode,
                                          TensorBase, alias_of, constants_on, filled, refresh_view,
                                          set_amp, set_grad_enabled, set_output, version_of)
from flowedu.core.ops.call cimport OpBase, Rule
from flowedu.core.values.storage cimport ON_DEVICE, view_contiguous

from operator import attrgetter
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.reverse import unbroadcast
from flowedu.errors import GradientError, no_gradient
from flowedu.errors import tensors as errors

cdef OpBase ADD = REGISTRY["add"], COPY = REGISTRY["contiguous"], SUM = REGISTRY["sum"]
cdef tuple NO_ATTRS = ()

include "rules.pxi"
include "arrive.pxi"


def run_backward(list roots, list seeds, targets=None, bint retain=False, bint create_graph=False,
                 bint into_grad=False):
    """Run backward from `roots` with gradients `seeds`; add the results to the `.grad` of leaves.

    With `targets`, return their gradients (None: no path), or add them to `.grad` if `into_grad`.
    """
    cdef TapeNode n
    cdef TensorBase t, g
    cdef Sinks sinks
    cdef int k
    cdef list order = None
    cdef bint old = set_grad_enabled(True), amp = set_amp(False)
    cdef int device = constants_on(0)
    try:
        if targets is not None:
            bring_up_to_date(targets)
        order = collect_nodes(bring_up_to_date(roots))
        sinks = make_sinks(order, roots, targets, into_grad, create_graph)
        set_grad_enabled(create_graph)
        for k in range(len(roots)):
            t, g = roots[k], seeds[k]
            if (t.flags | g.flags) & ON_DEVICE and t._device != g._device:
                g = filled.move(g, t._device)
            arrive(sinks, get_edge(t), t.out_index, g)
        for n in order:
            if n.hooks is not None or sinks.wanted is not None:
                finish_outputs(sinks, n)
            if n.needed and not all_none(n.grads):
                process_node(sinks, n)
                if not retain:
                    release(n)
            elif sinks.waiting is not None:
                skip_node(sinks, n)
            n.grads = None
    finally:
        set_grad_enabled(old)
        set_amp(amp)
        constants_on(device)
        for n in order or ():                      # nodes left by an error
            n.grads = None
    return sinks.results


cdef int process_node(Sinks sinks, TapeNode n) except -1:
    """Compute the gradients of the inputs of n from those of its outputs, and deliver them."""
    cdef int i, leaves
    cdef tuple shapes = n.entry.in_shapes if n.entry is not None else n.custom.shapes
    cdef list douts = n.grads, grads
    for g in douts:                                # rules make constants on the same device
        if g is not None:
            constants_on((<TensorBase>g).block.device if (<TensorBase>g).block != NULL else 0)
    grads = compute_gradients(n, douts, sinks) if n.hooks is None and filled.watch is None else \
        compute_hooked_gradients(n, douts, sinks)
    n.grads = None
    for leaves in range(2):                     # leaves last: they copy gradients shared with nodes
        for i in range(len(n.edges)):
            e = n.edges[i]
            if e is not None and (type(e) is not TapeNode) == leaves:
                dx = grads[i]
                arrive(sinks, e, n.slot(i),
                       None if dx is None else sum_to_shape(<TensorBase>dx, <tuple>shapes[i]))
    return 0


cdef inline int arrive(Sinks sinks, e, int slot, dx) except -1:
    """Add the gradient dx, or None, to output `slot` of a node, or deliver it to a leaf."""
    cdef list grads
    if type(e) is not TapeNode:
        return deliver(sinks, <TensorBase>e, dx)
    if dx is not None:
        grads = (<TapeNode>e).grads
        grads[slot] = dx if grads[slot] is None else grads[slot] + dx
        (<TensorBase>grads[slot]).flags |= ADOPTED
    return 0


cdef inline object get_edge(TensorBase t):
    return t if t.node is None else t.node


cdef list bring_up_to_date(tensors):
    """Refresh views whose base was written. Return the nodes of the tensors."""
    cdef list nodes = []
    cdef TensorBase t
    for t in tensors:
        if t.flags & VIEW:
            refresh_view(t)
        if t.node is not None:
            nodes.append(t.node)
    return nodes


cdef list collect_nodes(list todo):
    """Return all nodes reachable from `todo`, latest first, with `grads` set to lists of None."""
    cdef TapeNode n
    cdef list nodes = []
    cdef int64_t last = 0x7FFFFFFFFFFFFFFF
    cdef bint ordered = True
    while todo:
        n = <TapeNode>todo.pop()
        if n.grads is not None:                    # visited
            continue
        n.grads = [None] * (n.entry.nout if n.entry is not None else n.custom.outputs)
        n.needed = n.wanted = True
        nodes.append(n)
        ordered = ordered and n.seq < last
        last = n.seq
        for e in n.edges:
            if type(e) is TapeNode:
                todo.append(e)
    if not ordered:                                # a chain is in order already
        nodes.sort(key=attrgetter("seq"), reverse=True)
    return nodes


cdef bint all_none(list xs):
    for x in xs:
        if x is not None:
            return False
    return True


cdef int release(TapeNode n) except -1:
    """Free the saved values. If all are 0-dim constants (x * 2), keep them for another backward."""
    cdef TensorBase t
    if n.entry is None:
        if n.custom.release():
            n.saved = None
        return 0
    for o in n.saved or ():
        if o is not None and (not isinstance(o, TensorBase) or (<TensorBase>o).v.ndim
                              or (<TensorBase>o).flags & TRACKED):
            n.saved = None
            return 0
    return 0
