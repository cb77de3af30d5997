"""Backward over the tape: the same walk as reverse.py, in C speed, over the nodes that eager calls leave behind.

Nodes are visited once, latest first (their sequence numbers are a topological order). `run_backward` is the walk; a
node's gradients are computed in rules.pxi; they arrive, and meet the hooks of users, in arrive.pxi.
"""
from libc.stdint cimport int64_t
cimport cython

from flowedu.core.eager.dispatch cimport (
    ADOPTED, GLOBAL, TRACKED, VIEW, Entry, Rare, TapeNode, TensorBase, alias_of, constants_on, filled, refresh_view, set_amp,
    set_grad_enabled, set_output, version_of)
from flowedu.core.ops.call cimport OpBase, Rule
from flowedu.core.values.storage cimport ON_DEVICE, view_contiguous

from operator import attrgetter
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.reverse import unbroadcast
from flowedu.errors import GradientError, no_gradient

cdef OpBase ADD = REGISTRY["add"], COPY = REGISTRY["contiguous"], SUM = REGISTRY["sum"]
cdef tuple NO_ATTRS = ()

include "rules.pxi"
include "arrive.pxi"


def run_backward(list roots, list seeds, targets=None, bint retain=False, bint create_graph=False, bint into_grad=False):
    """Walk back from `roots` with gradients `seeds` and add them to the `.grad` of leaves.

    With `targets`, return the list of their gradients instead (None: no path), or with `into_grad` add to their `.grad`.
    """
    cdef TapeNode n
    cdef TensorBase t, g
    cdef Ends ends
    cdef int k
    cdef list order = None
    cdef bint old = set_grad_enabled(True), amp = set_amp(False)
    cdef int device = constants_on(0)
    try:
        if targets is not None:
            bring_up_to_date(targets)
        order = reachable(bring_up_to_date(roots))
        ends = ends_of(order, roots, targets, into_grad, create_graph)
        set_grad_enabled(create_graph)
        for k in range(len(roots)):
            t, g = roots[k], seeds[k]
            if (t.flags | g.flags) & ON_DEVICE and t._device != g._device:
                g = filled.move(g, t._device)
            arrive(ends, edge(t), t.out_index, g)
        for n in order:
            if n.hooks is not None or ends.wanted is not None:
                pass_outputs(ends, n)
            if n.needed and not all_none(n.grads):
                step(ends, n)
                if not retain:
                    release(n)
            elif ends.waiting is not None:
                step_over(ends, n)
            n.grads = None
    finally:
        set_grad_enabled(old)
        set_amp(amp)
        constants_on(device)
        for n in order or ():                      # none is left, unless there was an error
            n.grads = None
    return ends.results


cdef int step(Ends ends, TapeNode n) except -1:
    """The gradients of n's outputs are known: hand each input its own."""
    cdef int i, leaves
    cdef tuple shapes = n.entry.in_shapes if n.entry is not None else n.custom.shapes
    cdef list douts = n.grads, grads
    for g in douts:                                # constants of a rule are made where the gradients are
        if g is not None:
            constants_on((<TensorBase>g).block.device if (<TensorBase>g).block != NULL else 0)
    grads = gradients(n, douts, ends) if n.hooks is None and filled.watch is None else \
        hooked_gradients(n, douts, ends)
    n.grads = None
    for leaves in range(2):                        # nodes first: a leaf adopts no gradient that waits at a node, too
        for i in range(len(n.edges)):
            e = n.edges[i]
            if e is not None and (type(e) is not TapeNode) == leaves:
                dx = grads[i]
                arrive(ends, e, n.slot(i), None if dx is None else fitted(<TensorBase>dx, <tuple>shapes[i]))
    return 0


cdef inline int arrive(Ends ends, e, int slot, dx) except -1:
    """dx, or no gradient, arrives at output `slot` of a node, or at a leaf."""
    cdef list grads
    if type(e) is not TapeNode:
        return deliver(ends, <TensorBase>e, dx)
    if dx is not None:
        grads = (<TapeNode>e).grads
        grads[slot] = dx if grads[slot] is None else grads[slot] + dx
        (<TensorBase>grads[slot]).flags |= ADOPTED
    return 0


cdef inline object edge(TensorBase t):
    return t if t.node is None else t.node


cdef list bring_up_to_date(tensors):
    """Refresh views whose base was written; returns the nodes of the tensors that have one."""
    cdef list nodes = []
    cdef TensorBase t
    for t in tensors:
        if t.flags & VIEW:
            refresh_view(t)
        if t.node is not None:
            nodes.append(t.node)
    return nodes


cdef list reachable(list todo):
    """All nodes in and below `todo`, latest first, each with room for its outputs' gradients."""
    cdef TapeNode n
    cdef list found = []
    cdef int64_t last = 0x7FFFFFFFFFFFFFFF
    cdef bint ordered = True
    while todo:
        n = <TapeNode>todo.pop()
        if n.grads is not None:                    # seen
            continue
        n.grads = [None] * (n.entry.nout if n.entry is not None else n.custom.outputs)
        n.needed = n.wanted = True
        found.append(n)
        ordered = ordered and n.seq < last
        last = n.seq
        for e in n.edges:
            if type(e) is TapeNode:
                todo.append(e)
    if not ordered:                                # a chain comes out in order by itself
        found.sort(key=attrgetter("seq"), reverse=True)
    return found


cdef bint all_none(list xs):
    for x in xs:
        if x is not None:
            return False
    return True


cdef int release(TapeNode n) except -1:
    """Free what the node saved. One that saved no more than numbers (x * 2) keeps it, and may go backward twice."""
    cdef TensorBase t
    if n.entry is None:
        if n.custom.release():
            n.saved = None
        return 0
    for o in n.saved or ():
        if o is not None and (not isinstance(o, TensorBase) or (<TensorBase>o).v.ndim or (<TensorBase>o).flags & TRACKED):
            n.saved = None
            return 0
    return 0
