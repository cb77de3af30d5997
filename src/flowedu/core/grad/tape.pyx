"""Backward over the tape: the same walk as reverse.py, in C speed, over the links the eager interpreter leaves behind.

Nodes are visited once, latest first (their sequence numbers are a topological order).
"""
from libc.stdint cimport int64_t

from flowedu.core.ops.dispatch cimport (
    ADOPTED, GLOBAL, TRACKED, VIEW, Entry, Node, OpBase, Rare, Rule, TensorBase, alias_of, brought, set_flag, set_output,
    settle, sum_op, swap_grad, try_into, version_of)
from flowedu.core.values.storage cimport view_contiguous

from flowedu.errors import GradientError, ShapeError
from flowedu.core.ops.reverse import unbroadcast
from flowedu.core.ops.dispatch import current_interpreter
from flowedu.core.ops.define import REGISTRY

cdef OpBase ADD = REGISTRY["add"], COPY = REGISTRY["contiguous"]
cdef tuple NO_ATTRS = ()
cdef object watch = None             # anomaly mode: called with every node and its gradients


def set_watch(f):
    """`f(node, douts, grads or None, error or None)` is called at every node (autograd/anomaly.py). Returns the old one."""
    global watch
    old, watch = watch, f
    return old


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
        n.grads = [None] * (n.entry.nout if n.entry is not None else n.custom.outputs)
        n.needed = n.wanted = True
        found.append(n)
        ordered = ordered and n.seq < last
        last = n.seq
        for e in n.edges:
            if type(e) is Node:
                todo.append(e)
    if not ordered:                                # a chain comes out in order by itself
        found.sort(key=_seq)
    return found


cdef int mark_needed(list order, dict capture) except -1:
    """Only nodes above a wanted value have to run."""
    cdef Node n
    cdef int i
    wanted_nodes = {key[0] for key in capture if type(key) is tuple}
    for n in reversed(order):
        n.needed = False
        for e in n.edges:
            if type(e) is Node:
                n.needed = (<Node>e).wanted
            elif e is not None:
                n.needed = id(e) in capture
            if n.needed:
                break
        n.wanted = n.needed or id(n) in wanted_nodes
    return 0


cdef int push(list grads, int slot, dx) except -1:
    old = grads[slot]
    grads[slot] = dx if old is None else old + dx
    return 0


cdef int check_versions(Node n) except -1:
    """What was saved must still be what it was."""
    cdef int i
    cdef int64_t then
    cdef TensorBase t
    for i in range(len(n.saved)):
        if n.saved[i] is None:
            continue
        t = <TensorBase>n.saved[i]
        then = n.versions[i] if i < 4 else n.more_versions[i]
        if version_of(t) != then:
            kind = f"{t.dtype.name}{list(t.shape_())}"
            what = n.entry.op.name if n.entry is not None else n.custom.name
            raise GradientError("backward: one of the variables needed for gradient computation has been modified by an "
                                f"inplace operation: {what} saved a tensor {kind}, which is at version {version_of(t)} "
                                f"now", expected=f"version {then}, as it was when {what} ran" +
                                (f" at {n.line}" if n.line else ""), got=f"version {version_of(t)}",
                                fix="write x = x + 1 for x += 1 where x is used before and after, or clone() it first")
    return 0


cdef tuple saved_values(Node n, bint create_graph):
    """What the rules asked for; with create_graph, each value with the history it had when it was saved."""
    cdef TensorBase y, x
    cdef int i, slot
    if n.saved is None:
        raise GradientError(f"backward: this node with name `{n.name()}` has been released: an earlier backward freed what it "
                            "saved. Maybe you try to backward through the node a second time",
                            expected="one backward through each recorded op", got="a second one",
                            fix="Specify retain_graph=True in the earlier backward, or run the forward again")
    cdef tuple saved = n.saved
    for i in range(len(saved)):
        if saved[i] is not None and not isinstance(saved[i], TensorBase):   # packed by saved_tensors_hooks
            saved = tuple([s if s is None or isinstance(s, TensorBase) else s.unpack() for s in saved])
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
        elif type(e) is Node:
            if x.node is not e or x.out_index != (n.slots[slot] if n.more is None else n.more[slot]) or x.flags & VIEW:
                y = alias_of(x)
                set_output(y, e, n.slots[slot] if n.more is None else n.more[slot], True)
                out[i] = y
        else:
            out[i] = e
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
            args.append(n.entry.attrs[i])
        elif rule.kind[k] == 3:
            args.append(n.entry.in_shapes[i])
        else:
            args.append(n.entry.in_dtypes[i])
    return rule.f(*args)


cdef list variadic_gradients(Node n, list douts, tuple saved):
    f, need = n.entry.op.rules[n.entry.op.inputs[0]]
    where = {"grad": douts, "attr": n.entry.attrs, "saved": (saved,), "shape": (n.entry.in_shapes,),
             "dtype": (n.entry.in_dtypes,)}
    return list(f(*[where[kind][i] for kind, i in need]))


cdef list gradients(Node n, list douts, bint create_graph, dict capture):
    """The gradient of every input of the call, None where there is none or it is not wanted."""
    cdef OpBase op
    cdef Rule rule
    cdef tuple saved
    cdef int i
    cdef list grads
    if n.entry is None:
        saved_values(n, create_graph)
        return list(n.custom.backward(n, douts))
    op = n.entry.op
    saved = saved_values(n, create_graph) if n.saved is None or len(n.saved) else NO_ATTRS
    if op.variadic:
        return variadic_gradients(n, douts, saved)
    if op.star is not None:
        table = call_rule(n, op.star, douts, saved)
        return [table.get(name) for name in op.inputs]
    grads = [None] * len(n.edges)
    for i in range(len(n.edges)):
        e = n.edges[i]
        if e is not None and ((<Node>e).wanted if type(e) is Node else capture is None or id(e) in capture):
            rule = op.compiled[i]
            if rule is not None:
                grads[i] = call_rule(n, rule, douts, saved)
    return grads


def run_backward(list roots, list seeds, targets=None, bint retain=False, bint create_graph=False):
    """Walk back from `roots` with gradients `seeds`.

    Leaves get their `.grad`, unless `targets` is given: then the list of their gradients (None: no path) is returned.
    """
    cdef Node n
    cdef TensorBase t
    cdef int i, k, slot
    cdef list starts = [], douts, order, grads
    cdef dict capture = {}
    cdef tuple shapes
    cdef bint old
    cdef dict waiting = None, wanted = None
    results = None
    order = []
    old = swap_grad(True)
    try:
        if targets is not None:
            results = [None] * len(targets)
            for k, t in enumerate(targets):
                if t.flags & VIEW:
                    settle(t)
                key = (id(t.node), t.out_index) if t.node is not None else id(t)
                capture.setdefault(key, []).append(k)
        for t in roots:
            if t.flags & VIEW:
                settle(t)
            if t.node is not None:
                starts.append(t.node)
        order = reachable(starts)
        if targets is not None:
            wanted = capture
            mark_needed(order, capture)
        else:
            waiting = hooked_leaves(order, roots)
        swap_grad(create_graph)
        for t, g in zip(roots, seeds):
            if t.node is not None:
                push(t.node.grads, t.out_index, g)
            else:
                deliver(t, g, capture, results, create_graph, waiting)
        for n in order:
            douts = n.grads
            if n.hooks is not None:
                before_node(n, douts)
            if targets is not None:
                for i in range(len(douts)):
                    for k in capture.get((id(n), i), ()):
                        results[k] = douts[i]
            if not n.needed or all_none(douts):
                if waiting is not None:
                    for e in n.edges:
                        if e is not None and type(e) is not Node and id(e) in waiting:
                            deliver(<TensorBase>e, None, capture, results, create_graph, waiting)
                n.grads = None
                continue
            grads = gradients(n, douts, create_graph, wanted) if watch is None else watched(n, douts, create_graph, wanted)
            if n.hooks is not None:
                grads = after_node(n, grads, douts)
            n.grads = None
            shapes = n.entry.in_shapes if n.entry is not None else n.custom.shapes
            for i in range(len(n.edges)):
                e = n.edges[i]
                if e is None:
                    continue
                dx = grads[i]
                if type(e) is Node:
                    if dx is not None:
                        slot = n.slots[i] if n.more is None else n.more[i]
                        push((<Node>e).grads, slot, fitted(<TensorBase>dx, <tuple>shapes[i]))
                elif dx is not None:
                    deliver(<TensorBase>e, fitted(<TensorBase>dx, <tuple>shapes[i]), capture, results, create_graph, waiting)
                elif waiting is not None and id(e) in waiting:
                    deliver(<TensorBase>e, None, capture, results, create_graph, waiting)
            if not retain and (frees(n) if n.entry is not None else n.custom.release()):
                n.saved = None
    finally:
        swap_grad(old)
        for n in order:
            n.grads = None
    return results


cdef bint frees(Node n):
    """Whether the node saved more than numbers (x * 2 may go backward twice)."""
    cdef TensorBase t
    for o in n.saved or ():
        if o is not None and (not isinstance(o, TensorBase) or (<TensorBase>o).v.ndim or (<TensorBase>o).flags & TRACKED):
            return True
    return False


cdef list watched(Node n, list douts, bint create_graph, dict wanted):
    """`gradients` in anomaly mode."""
    try:
        grads = gradients(n, douts, create_graph, wanted)
    except Exception as error:
        watch(n, douts, None, error)
        raise
    watch(n, douts, grads, None)
    return grads


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


include "arrive.pxi"
