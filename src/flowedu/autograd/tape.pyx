"""Backward over the tape: the same walk as reverse.py, in C speed, over the links the eager interpreter leaves behind.

Nodes are visited once, latest first (their sequence numbers are a topological order).
"""
from libc.stdint cimport int64_t

from flowedu.ops.core cimport Node, OpBase, Rule, TensorBase, alias_of, sum_op, swap_grad
from flowedu.blob.storage cimport view_contiguous

from flowedu.errors import GradientError, ShapeError
from flowedu.autograd.reverse import unbroadcast


def _seq(Node n):
    return -n.seq


cdef list reachable(list roots):
    """All nodes below `roots`, latest first, each with room for its outputs' gradients."""
    cdef Node n
    cdef list todo = list(roots), found = []
    cdef int64_t last = 0x7FFFFFFFFFFFFFFF
    cdef bint ordered = True
    while todo:
        n = <Node>todo.pop()
        if n.grads is not None:                    # seen
            continue
        n.grads = [None] * len(n.specs)
        found.append(n)
        ordered = ordered and n.seq < last
        last = n.seq
        for e in n.edges:
            if type(e) is Node:
                todo.append(e)
    if not ordered:                                # a chain comes out in order by itself
        found.sort(key=_seq)
    return found


cdef int push(list grads, int slot, dx) except -1:
    old = grads[slot]
    grads[slot] = dx if old is None else old + dx
    return 0


cdef tuple saved_values(Node n, bint create_graph):
    """What the rules asked for; outputs get their history back when gradients of gradients are wanted."""
    cdef TensorBase y
    cdef int i
    if n.saved is None:
        raise GradientError(f"backward: the values {n.op.name} saved were freed by an earlier backward",
                            fix="pass retain_graph=True to the earlier backward, or run the forward again")
    if not create_graph or n.op.variadic:
        return n.saved
    out = list(n.saved)
    for i, slot in enumerate(n.op.saved):
        if slot < 0:
            y = alias_of(<TensorBase>out[i])
            y.node, y.out_index, y.requires_grad_ = n, ~slot, True
            out[i] = y
    return tuple(out)


cdef inline object call_rule(Node n, Rule rule, list douts, tuple saved):
    cdef list args = []
    cdef int k, i
    for k in range(rule.n):
        i = rule.index[k]
        if rule.kind[k] == 0:
            args.append(douts[i])
        elif rule.kind[k] == 1:
            args.append(saved[i])
        elif rule.kind[k] == 2:
            args.append(n.attrs[i])
        else:
            args.append(n.shapes[i])
    return rule.f(*args)


cdef list variadic_gradients(Node n, list douts):
    f, need = n.op.rules[n.op.inputs[0]]
    where = {"grad": douts, "attr": n.attrs, "saved": (n.saved,), "shape": (n.shapes,)}
    return f(*[where[kind][i] for kind, i in need])


def run_backward(list roots, list seeds, targets=None, bint retain=False, bint create_graph=False):
    """Walk back from `roots` with gradients `seeds`.

    Leaves get their `.grad`, unless `targets` is given: then the list of their gradients (None: no path) is returned.
    """
    cdef Node n, m
    cdef TensorBase t, leaf
    cdef int i, k, slot
    cdef list starts = [], douts, order, grads
    cdef Rule rule
    cdef OpBase op
    cdef dict capture = {}
    cdef tuple saved
    cdef bint old
    results = None
    if targets is not None:
        results = [None] * len(targets)
        for k, t in enumerate(targets):
            key = (id(t.node), t.out_index) if t.node is not None else id(t)
            capture.setdefault(key, []).append(k)
    for t, g in zip(roots, seeds):
        if t.node is not None:
            starts.append(t.node)
    order = reachable(starts)
    old = swap_grad(create_graph)
    try:
        for t, g in zip(roots, seeds):
            if t.node is not None:
                push(t.node.grads, t.out_index, g)
            else:
                deliver(t, g, capture, results, create_graph)
        for n in order:
            douts = n.grads
            n.grads = None
            if targets is not None:
                for i in range(len(douts)):
                    for k in capture.get((id(n), i), ()):
                        results[k] = douts[i]
            if all_none(douts):
                continue
            op = n.op
            saved = saved_values(n, create_graph) if len(op.saved) else ()
            grads = None
            if op.variadic:
                grads = variadic_gradients(n, douts)
            elif op.star is not None:
                table = call_rule(n, op.star, douts, saved)
                grads = [table.get(name) for name in op.inputs]
            for i in range(len(n.edges)):
                e = n.edges[i]
                if e is None:
                    continue
                if grads is not None:
                    dx = grads[i]
                else:
                    rule = op.compiled[i]
                    dx = call_rule(n, rule, douts, saved) if rule is not None else None
                if dx is None:
                    continue
                dx = fitted(<TensorBase>dx, <tuple>n.shapes[i])
                if type(e) is Node:
                    slot = n.slots[i] if n.more is None else n.more[i]
                    push((<Node>e).grads, slot, dx)
                else:
                    deliver(<TensorBase>e, dx, capture, results, create_graph)
            if not retain and len(op.saved):
                n.saved = None
    finally:
        swap_grad(old)
        for n in order:
            n.grads = None
    return results


cdef bint all_none(list xs):
    for x in xs:
        if x is not None:
            return False
    return True


cdef list LEADING = [tuple(range(k)) for k in range(9)]


cdef object fitted(TensorBase x, tuple shape):
    """The gradient x summed to `shape`, that of the value it belongs to. Leading axes, the usual case, without Python."""
    cdef int i, extra = x.v.ndim - len(shape)
    if extra < 0:
        return unbroadcast(x, shape)
    for i in range(len(shape)):
        if x.v.shape[extra + i] != <int64_t>shape[i]:
            return unbroadcast(x, shape)
    return x if extra == 0 else sum_op().call((x,), (LEADING[extra], False))


cdef int deliver(TensorBase leaf, dx, dict capture, list results, bint create_graph) except -1:
    cdef TensorBase g = <TensorBase>dx
    if results is not None:
        for k in capture.get(id(leaf), ()):
            results[k] = dx if results[k] is None else results[k] + dx
        return 0
    if leaf.grad_ is not None:
        leaf.grad_ = leaf.grad_ + dx
    elif not create_graph and (g.block.refs > 1 or not view_contiguous(&g.v)):
        from flowedu.ops.define import REGISTRY
        leaf.grad_ = REGISTRY["contiguous"](dx)      # memory of its own: nobody else sees later in-place changes
    else:
        leaf.grad_ = dx
    return 0
