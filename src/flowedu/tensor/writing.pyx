"""Before a tensor is written in place: whether it may be, what of its old values backward still needs, how a view comes from
its base; and the writes that need C. (What a write means for histories: inplace.py.)"""
from libc.stdint cimport int64_t

from flowedu._kernels.core.abi cimport fe_numel, fe_view
from flowedu.core.eager.dispatch cimport (
    GLOBAL,
    MAX_DEPTH,
    NO_HISTORY,
    TRACKED,
    VIEW,
    Node,
    TensorBase,
    packed,
    raise_readonly,
    settle,
    try_into,
)
from flowedu.core.ops.call cimport OpBase

from flowedu.core.eager.dispatch import is_grad_enabled
from flowedu.errors import GradientError


cdef bint overlaps_itself(const fe_view *v) noexcept:
    """Whether one element shows at several places (an expanded tensor)."""
    cdef int d
    for d in range(v.ndim):
        if v.stride[d] == 0 and v.shape[d] > 1:
            return True
    return False


def check_writable(TensorBase x, str what="in-place"):
    """Raise where x must not be written in place: by memory, or by its part in a recorded computation."""
    cdef TensorBase base
    if x.block != NULL:
        if overlaps_itself(&x.v) and fe_numel(&x.v):
            raise GradientError(f"{what}: unsupported operation: more than one element of the written-to tensor refers to a "
                                "single memory location", got=f"an expanded tensor of shape {x._sizes()}",
                                fix="clone() the tensor before the write")
        if x.block.readonly:
            raise_readonly(what)
    if not is_grad_enabled():
        return
    if x.link is not None:
        settle(x)
        base = x.link.base
        if x.link.plain and x.flags & GLOBAL:              # detached: its base is written without history
            return
        if base.flags & TRACKED and base.node is None and not base.is_lazy:
            raise GradientError(f"{what}: a view of a leaf Tensor that requires grad is being used in an in-place operation",
                                expected="a tensor that some op made, or a leaf without requires_grad", got="a view of a leaf",
                                fix="write under flow.no_grad(), or into a clone()")
        if x.link.epoch == NO_HISTORY and base.tracked:
            raise GradientError(f"{what}: a view was created in no_grad mode and is being modified inplace with grad mode "
                                "enabled", expected="both with gradients, or both without", got="a view without history",
                                fix="make the view outside no_grad(), or write inside it")
    if x.flags & TRACKED and x.node is None and not x.is_lazy:      # what a graph computes is no leaf
        raise GradientError(f"{what}: a leaf Tensor that requires grad is being used in an in-place operation",
                            expected="a tensor that some op made, or a leaf without requires_grad",
                            got=f"a leaf of shape {x._sizes()} with requires_grad=True",
                            fix="write under flow.no_grad(), or into a clone()")


def keep_old_values(TensorBase z, int64_t since, TensorBase x):
    """Before x's memory is overwritten by z: where calls recorded after `since`, below z, saved x or a view of it, let them
    keep a copy of what is there now."""
    cdef list todo
    cdef Node n
    cdef TensorBase t
    cdef dict copies = {}
    if z.node is None or z.node.seq <= since:
        return
    todo = [z.node]
    seen = {z.node}
    while todo:
        n = <Node>todo.pop()
        if n.saved is not None:
            for i, o in enumerate(n.saved):
                if not isinstance(o, TensorBase) or (<TensorBase>o).block != x.block:
                    continue
                t = <TensorBase>o
                if id(o) not in copies:
                    copies[id(o)] = packed(t)
                n.saved = n.saved[:i] + (copies[id(o)],) + n.saved[i + 1:]
                if i < 4:
                    n.versions[i] = 0
                if n.more_versions is not None:
                    n.more_versions[i] = 0
        for e in n.edges:
            if type(e) is Node and (<Node>e).seq > since and e not in seen:
                seen.add(e)
                todo.append(e)


def view_steps(TensorBase x):
    """[(op, attrs, shape of what it was applied to), ...] from the base of the view x to x."""
    cdef list steps = []
    cdef TensorBase t = x
    while t.link is not None:
        if t.link.parent is None:
            raise GradientError("in-place: this view was made by too many view ops to follow the gradient",
                                expected=f"fewer than {MAX_DEPTH} views of views, made outside no_grad()",
                                fix="clone() the view when it is made")
        steps.append((t.link.op, t.link.attrs, t.link.parent._sizes()))
        t = t.link.parent
    steps.reverse()
    return steps


def run_into(OpBase op, tuple inputs, tuple attrs, TensorBase x):
    """try_into for Python: True if x now holds op(*inputs), history included."""
    return try_into(op, inputs, attrs, x)


def set_layout(TensorBase x, TensorBase y):
    """x takes the shape and strides of y, a view of its twin. A view stays a view of its base, by more steps."""
    x.v = y.v
    if x.flags & VIEW:
        x.link = y.link                            # and stays flagged as one
    x.epoch += 1
    if x.block != NULL:
        x.block.version += 1


def bump(TensorBase x):
    """Count a write into x's memory that happened elsewhere."""
    if x.block != NULL:
        x.block.version += 1
