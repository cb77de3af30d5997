"""Checks and view updates for in-place writes of tensors, and the writes that need C.

The module checks if a tensor may be written and if the backward pass still needs its old values, rebuilds a
view from its base, and makes views of written tensors. history.py changes the histories after a write.
"""
from libc.stdint cimport int64_t

from flowedu._kernels.core.abi cimport fe_numel, fe_view
from flowedu.core.eager.dispatch cimport (
    GLOBAL,
    LOCAL_ONLY,
    MAX_DEPTH,
    NO_HISTORY,
    TRACKED,
    UNIFORM,
    VIEW,
    Entry,
    Link,
    TapeNode,
    TensorBase,
    alias_of,
    compute_any,
    copy_contiguous,
    copy_history,
    find,
    flags_of,
    has_differentiable_input,
    raise_readonly,
    refresh_view,
    same_view,
    select_saved,
    set_flag,
    set_grad_enabled,
    start,
    take_symbol,
    tape,
)
from flowedu.core.ops.call cimport OpBase, active, current_interpreter
from flowedu.core.values.storage cimport ON_DEVICE, Block, view_contiguous

from flowedu.core.eager.dispatch import connect, is_grad_enabled
from flowedu.errors import GradientError, ShapeError

cdef enum:
    MAX_ARGS = 14                    # inputs and output of a call that runs in the memory of one of them

cdef bint overlaps_itself(const fe_view *v) noexcept:
    """Return True if an element appears at several positions, as in an expanded tensor."""
    cdef int d
    for d in range(v.ndim):
        if v.stride[d] == 0 and v.shape[d] > 1:
            return True
    return False


def check_writable(TensorBase x, str what="in-place"):
    """Raise an error if x must not be written in place, because of its memory or a recorded computation."""
    cdef TensorBase base
    if x.block != NULL:
        if overlaps_itself(&x.v) and fe_numel(&x.v):
            raise GradientError(
                f"{what}: unsupported operation: more than one element of the written-to tensor refers to a "
                "single memory location", got=f"an expanded tensor of shape {x._sizes()}",
                fix="clone() the tensor before the write")
        if x.block.readonly:
            raise_readonly(what)
    if not is_grad_enabled():
        return
    if x.link is not None:
        refresh_view(x)
        base = x.link.base
        if x.link.plain and x.flags & GLOBAL:              # detached: its base is written without history
            return
        if base.flags & TRACKED and base.node is None and not base.is_lazy:
            raise GradientError(
                f"{what}: a view of a leaf Tensor that requires grad is being used in an in-place operation",
                expected="a tensor that some op made, or a leaf without requires_grad",
                got="a view of a leaf", fix="write under flow.no_grad(), or into a clone()")
        if x.link.epoch == NO_HISTORY and base.tracked:
            raise GradientError(
                f"{what}: a view was created in no_grad mode and is being modified inplace with grad mode "
                "enabled", expected="both with gradients, or both without", got="a view without history",
                fix="make the view outside no_grad(), or write inside it")
    if x.flags & TRACKED and x.node is None and not x.is_lazy:      # what a graph computes is no leaf
        raise GradientError(
            f"{what}: a leaf Tensor that requires grad is being used in an in-place operation",
            expected="a tensor that some op made, or a leaf without requires_grad",
            got=f"a leaf of shape {x._sizes()} with requires_grad=True",
            fix="write under flow.no_grad(), or into a clone()")


def keep_old_values(TensorBase z, int64_t since, TensorBase x):
    """Copy saved values before x's memory is overwritten by z.

    In the calls that were recorded after `since` to compute z, the copies replace x and its views.
    """
    cdef list todo
    cdef TapeNode n
    cdef TensorBase t
    cdef dict copies = {}
    if z.node is None or z.node.seq <= since:
        return
    todo = [z.node]
    seen = {z.node}
    while todo:
        n = <TapeNode>todo.pop()
        if n.saved is not None:
            for i, o in enumerate(n.saved):
                if not isinstance(o, TensorBase) or (<TensorBase>o).block != x.block:
                    continue
                t = <TensorBase>o
                if id(o) not in copies:
                    copies[id(o)] = copy_contiguous(t)
                n.saved = n.saved[:i] + (copies[id(o)],) + n.saved[i + 1:]
                if i < 4:
                    n.versions[i] = 0
                if n.more_versions is not None:
                    n.more_versions[i] = 0
        for e in n.edges:
            if type(e) is TapeNode and (<TapeNode>e).seq > since and e not in seen:
                seen.add(e)
                todo.append(e)


def view_steps(TensorBase x):
    """Return the ops that make the view x from its base, as [(op, attrs, shape of its input), ...]."""
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


def set_layout(TensorBase x, TensorBase y):
    """Give x the shape and strides of y, a view of twin(x); if x is a view, it keeps its base."""
    x.v = y.v
    if x.flags & VIEW:
        x.link = y.link                            # and stays flagged as one
    x.epoch += 1
    if x.block != NULL:
        x.block.version += 1


def bump(TensorBase x):
    """Count a write into x's memory by other code."""
    if x.block != NULL:
        x.block.version += 1


# ---- views of what was written
def renew(TensorBase x):
    """Rebuild the history of a stale view."""
    cdef Link link = x.link
    cdef TensorBase base = link.base, y
    cdef int d
    cdef bint same
    if x.flags & TRACKED and x.node is None and x.block != NULL:        # a leaf by its user's own word
        link.epoch = base.epoch
        return
    if link.parent is None:
        if (base.flags | x.flags) & TRACKED:
            raise GradientError(
                "this view was made by too many view ops to follow what was written into its base",
                expected=f"fewer than {MAX_DEPTH} views of views", got="a view whose base was written "
                "in place by an op with a gradient", fix="clone() the view when it is made")
        link.epoch = base.epoch
        return
    if x.block != NULL and not (base.flags | x.flags) & TRACKED:
        link.epoch = base.epoch
        return
    old = set_grad_enabled(not link.plain and is_grad_enabled()) if x.flags & GLOBAL else is_grad_enabled()
    try:
        y = link.op.call((link.parent,), link.attrs)
    except ShapeError:
        y = None
    finally:
        set_grad_enabled(old)
    same = y is not None and y.v.ndim == x.v.ndim and y.v.data == x.v.data
    for d in range(x.v.ndim):
        same = same and y.v.shape[d] == x.v.shape[d] and (y.v.stride[d] == x.v.stride[d] or x.v.shape[d] == 1)
    if not same and (x.block != NULL or y is None):
        raise GradientError(
            "the shape or strides of a view's base were changed in place (t_, squeeze_, set data), and then "
            "its values by an op with a gradient", got=f"a view of shape {x._sizes()}",
            fix="make the view again from its base")
    copy_history(x, y)
    if x.block == NULL:
        take_symbol(x, y)
    link.epoch = base.epoch


def twin(TensorBase x):
    """Return another object with the memory, history, and base of x."""
    cdef TensorBase y = alias_of(x)
    copy_history(y, x)
    y.link = x.link
    set_flag(y, VIEW, x.link is not None)
    return y


# ---- computing in the memory of an input
cdef bint lazy_mode():
    return active != 0 and current_interpreter() is not None


cpdef bint try_into(OpBase op, tuple inputs, tuple attrs, TensorBase x) except -1:
    """Run an elementwise op with x's memory as its output, if that is safe; else do nothing and return False.

    It is safe if x is contiguous, the result has the shape and dtype of x, every input in x's memory is x
    itself, and the backward pass does not need a value that is overwritten. If gradients are recorded, x must
    not be a view, and x gets the history of the result.
    """
    cdef fe_view args[MAX_ARGS]
    cdef int flags = 0
    cdef bint wants
    cdef TensorBase y
    cdef Entry e
    cdef bint records
    if lazy_mode() or x.block == NULL or not op.elementwise or len(inputs) >= MAX_ARGS \
            or not view_contiguous(&x.v) or not can_read(inputs, x, &flags):
        return False
    records = is_grad_enabled()
    wants = flags & TRACKED and records
    if wants:
        if x.flags & VIEW or overwrites_saved(op, inputs, x):
            return False
    elif records and x.flags & TRACKED:
        return False
    e = find(op, inputs, attrs)
    if (e is None or not fits(e, x) or wants and e.differentiable
        and not (op.any_rule or has_differentiable_input(op, inputs))):
        return False
    args[e.nin] = x.v
    if flags & ON_DEVICE:
        start(e, inputs, [x], x.block.device, NULL)
    else:
        compute_any(e, inputs, args, NULL)
    x.block.version += 1
    if flags & LOCAL_ONLY:
        x.flags &= ~UNIFORM
    if wants:
        y = alias_of(x)
        tape(op, inputs, e, y)
        copy_history(x, y)
        x.epoch += 1
    return True


cdef bint can_read(tuple inputs, TensorBase x, int *flags) except -1:
    """Return True if a kernel may read all inputs while it writes x's memory, and their flags."""
    cdef TensorBase t
    cdef int i
    for i in range(len(inputs)):
        if not isinstance(inputs[i], TensorBase):
            return False
        t = <TensorBase>inputs[i]
        if t.block == NULL or t._layout is not x._layout and not t.flags & UNIFORM:
            return False
        if t.block.device != x.block.device and (t.block.device != 0 or t.v.ndim or t.flags & TRACKED):
            return False
        if t.flags & VIEW:
            refresh_view(t)
        if t.block == x.block and not same_view(&t.v, &x.v):
            return False
        flags[0] |= flags_of(t)
    return True


cdef bint overwrites_saved(OpBase op, tuple inputs, TensorBase x) except -1:
    """Return True if the backward pass of the call needs an input that is stored in x's memory."""
    cdef int64_t mask = select_saved(op, inputs)
    for i in op.saved:
        if mask & 1 and i >= 0 and (<TensorBase>inputs[i]).block == x.block:
            return True
        mask >>= 1
    return False


cdef bint fits(Entry e, TensorBase x) noexcept:
    """Return True if a kernel has one output, of x's shape and dtype."""
    cdef int d
    if e.flags & VIEW or e.nout != 1 or e.fn == NULL or e.python or e.outs[0].dtype != x.v.dtype \
            or e.outs[0].ndim != x.v.ndim:
        return False
    for d in range(x.v.ndim):
        if e.outs[0].shape[d] != x.v.shape[d]:
            return False
    return True


cdef class Update:
    """Compute `x op= other` in place if it is safe without a gradient, else by `write(x, op, other)`."""
    cdef object write

    def __init__(self, write):
        self.write = write

    def __call__(self, TensorBase x, OpBase op, other):
        if not lazy_mode() and isinstance(other, TensorBase) \
                and (<TensorBase>other).v.dtype == x.v.dtype and x._can_track \
                and not x.flags & (TRACKED | VIEW) and x.block != NULL and not x.block.readonly \
                and try_into(op, (x, other), (), x):
            return x
        return self.write(x, op, other)


connect(into=try_into, renew=renew)


def last_writes(list tensors):
    """Return (number of writes by ops, number of times the memory was lent) for these local tensors.

    Equal results mean that the memory was not written in between. None means that another library
    may be writing, because the memory is lent or foreign.
    """
    cdef Block *b
    cdef int64_t writes = 0, loans = 0
    for t in tensors:
        b = (<TensorBase>t).block
        if b == NULL or b.lent != b.returned or (b.owner != NULL and not b.readonly):
            return None
        writes += b.version
        loans += b.lent
    return writes, loans


def lend(TensorBase x):
    """Record that other code knows the address of x's memory and may write to it."""
    if x.block != NULL:
        x.block.lent += 1
