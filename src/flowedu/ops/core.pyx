"""The chokepoint: every op call goes through `OpBase.call` to the interpreter on top of the stack.

With an empty stack that is eager: infer the output spec (cached per op, input specs and attributes: an Entry),
allocate, run the kernel, and, when an input requires a gradient, put the call on the tape.
"""
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy
from cpython.object cimport PyObject, PyTypeObject
from cpython.bytes cimport PyBytes_FromStringAndSize
cimport cython

from flowedu._kernels.abi cimport *
from flowedu.blob.storage cimport Array, Block, block_drop, block_new, view_contiguous

import os

from flowedu._kernels import TABLE
from flowedu.errors import DTypeError, FlowError, KernelError, ShapeError, user_line

cdef extern from "Python.h":
    ctypedef object (*newfunc)(PyTypeObject *, PyObject *, PyObject *)
    ctypedef struct _Type "PyTypeObject":
        newfunc tp_new

cdef enum:
    MAX_ARGS = 14                    # inputs and outputs of one call on the fast path
    SMALL = 32768                    # below this cost one thread is faster

cdef list stack = []                 # interpreters; empty: eager
cdef object top = None
cdef bint grad_on = True
cdef int threads = 1
cdef int64_t sequence = 0
cdef object Tensor = None            # the class eager results get (tensor.py registers it)
cdef tuple NOTHING = ()
cdef int64_t copy_kernel[8]
cdef int _code
for _code in range(8):
    copy_kernel[_code] = TABLE["copy", _code][0]


# ---- the stack of interpreters --------------------------------------------------------------------------------------
class interpreter:
    """Context manager: inside it, `run(op, inputs, attrs)` of the given interpreter answers every op call."""

    def __init__(self, handler):
        self.handler = handler

    def __enter__(self):
        global top
        stack.append(self.handler)
        top = self.handler
        return self.handler

    def __exit__(self, *exc):
        global top
        stack.pop()
        top = stack[len(stack) - 1] if stack else None


def current_interpreter():
    """The interpreter in charge; None: eager."""
    return top


def call_below(op, inputs, attrs):
    """Answer a call with the interpreter under the one in charge (for interpreters that watch and pass on)."""
    global top
    handler = stack.pop()
    top = stack[len(stack) - 1] if stack else None
    try:
        return op.call(inputs, attrs)
    finally:
        stack.append(handler)
        top = handler


cdef bint swap_grad(bint on) noexcept:
    global grad_on
    cdef bint old = grad_on
    grad_on = on
    return old


def set_grad_enabled(bint on):
    """Whether eager calls are recorded; returns the old value."""
    return swap_grad(on)


def is_grad_enabled():
    return grad_on


def set_num_threads(int n):
    """How many threads kernels may use, from now on."""
    global threads
    if n < 1:
        raise FlowError("set_num_threads: n is not positive", expected="1 or more", got=str(n), fix="pass the number of "
                        "cores, or 1")
    threads = n if fe_has_threads() else 1


def get_num_threads():
    """How many threads kernels may use."""
    return threads


def default_threads() -> int:
    """FLOWEDU_NUM_THREADS or OMP_NUM_THREADS if set, else the processors this process may run on."""
    for name in ("FLOWEDU_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(name, "").split(",")[0]
        if text.isdigit() and int(text) > 0:
            return int(text)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def has_threads():
    """False when the compiler had no OpenMP."""
    return bool(fe_has_threads())


def register_tensor(cls):
    global Tensor
    Tensor = cls
    return cls


# ---- one op on one set of specs ---------------------------------------------------------------------------------------
cdef class Entry:
    """Everything known about a call before its data: output specs, kernel, attribute block. Shared by eager and plans."""

    def __cinit__(self, op, tuple attrs, list in_specs, tuple specs, kernel, ints, reals, contiguous, int64_t cost,
                  extra=None, view=None):
        cdef int i, d
        self.op, self.attrs, self.specs, self.nin, self.nout = op, attrs, specs, len(in_specs), len(specs)
        self.in_shapes = tuple([s.shape for s in in_specs])
        self.cost, self.keep = cost, extra
        self.extra = NULL if extra is None else <const void *><size_t>extra.address
        if kernel is not None:
            self.fn = <fe_kernel><void *><size_t>kernel[0]
            self.work = <fe_work><void *><size_t>kernel[1]
        for i in contiguous:
            if i < 63:
                self.contiguous |= (<int64_t>1) << i
        self.nints = len(ints)
        self.ints = <int64_t *>calloc(max(len(ints), 1), 8)
        self.reals = <double *>calloc(max(len(reals), 1), 8)
        self.outs = <fe_view *>calloc(max(self.nout, 1), sizeof(fe_view))
        if not self.ints or not self.reals or not self.outs:
            raise MemoryError
        for i, n in enumerate(ints):
            self.ints[i] = n
        for i, x in enumerate(reals):
            self.reals[i] = x
        for i, spec in enumerate(specs):
            if len(spec.shape) > FE_MAX_DIM:
                raise ShapeError(f"{op.name}: the result has too many axes", expected=f"at most {FE_MAX_DIM}",
                                 got=str(spec.shape))
            self.outs[i].ndim, self.outs[i].dtype = len(spec.shape), spec.dtype.code
            step = 1
            for d in range(len(spec.shape) - 1, -1, -1):
                self.outs[i].shape[d] = spec.shape[d]
                self.outs[i].stride[d] = step
                step *= max(spec.shape[d], 1)
        if view is not None:
            self.is_view = True
            strides, self.offset = view
            for d in range(self.outs[0].ndim):
                self.outs[0].stride[d] = strides[d]
        self.differentiable = bool(op.rules)

    def __dealloc__(self):
        free(self.ints)
        free(self.reals)
        free(self.outs)

    @property
    def strides(self):
        """Of a view's output, in elements."""
        return tuple([self.outs[0].stride[d] for d in range(self.outs[0].ndim)])

    @property
    def view_offset(self):
        return self.offset if self.is_view else None


cdef class Rule:
    """A gradient function with its argument list worked out: `need` is a list of (kind, index)."""

    def __cinit__(self, f, need):
        if len(need) > 16:
            raise FlowError("define: a gradient has too many parameters", expected="at most 16", got=str(len(need)))
        self.f, self.n = f, len(need)
        for i, (kind, index) in enumerate(need):
            self.kind[i], self.index[i] = ("grad", "saved", "attr", "shape").index(kind), index


cdef class OpBase:
    """The part of an op record that the eager path touches. ops/define.py adds the rest."""

    def __cinit__(self):
        self.entries = {}
        self.recent = []

    def __call__(self, *inputs, **attrs):
        cdef tuple values = self.defaults if not attrs and not self.required else self.complete(attrs)
        if self.elementwise:
            for x in inputs:
                if isinstance(x, (int, float)):
                    from flowedu.ops.value import with_scalars
                    inputs = with_scalars(inputs)
                    break
        return self.call(inputs, values)

    def complete(self, dict attrs):
        """The attribute values in declared order, defaults filled in; a key of the signature cache."""
        cdef list values = list(self.defaults)
        for name, value in attrs.items():
            i = self.attr_index.get(name)
            if i is None:
                self.bad_attrs(attrs)
            values[i] = tuple(value) if type(value) is list else value
        for name in self.required:
            if name not in attrs:
                self.bad_attrs(attrs)
        return tuple(values)

    cpdef call(self, tuple inputs, tuple attrs):
        if top is not None:
            return top.run(self, inputs, attrs)
        return eager(self, inputs, attrs)


cdef int fill_key(int64_t *key, fe_view **views, int n, bint strides) noexcept:
    cdef int i, d, k = 0
    for i in range(n):
        key[k] = views[i].ndim * 16 + views[i].dtype
        k += 1
        for d in range(views[i].ndim):
            key[k] = views[i].shape[d]
            k += 1
        if strides:
            for d in range(views[i].ndim):
                key[k] = views[i].stride[d]
                k += 1
    return k


cdef Entry find(OpBase op, tuple inputs, tuple attrs, fe_view **views):
    """The Entry for these inputs: one of the last few used, or from the cache, or made now (slow: Python)."""
    cdef int64_t key[2 * 160]
    cdef int n = len(inputs)
    cdef bint wants_strides = op.view is not None
    cdef Entry e
    cdef int i, k = fill_key(key, views, n, wants_strides)
    for i in range(len(op.recent)):
        e = <Entry>op.recent[i]
        if e.key_len == k and memcmp(key, e.key, k * 8) == 0 and (attrs is e.attrs or attrs == e.attrs):
            return e
    name = (attrs, PyBytes_FromStringAndSize(<char *>key, k * 8))
    e = op.entries.get(name)
    if e is None:
        specs = [x.spec for x in inputs]
        e = op.prepare(specs, attrs, [x.strides for x in inputs] if wants_strides else None)
        if e is None:                              # a view that these strides do not allow: copy first
            return None
        if k <= 160:
            memcpy(e.key, key, k * 8)
            e.key_len = k
        if len(op.entries) >= 1024:                # attributes that change every call must not pile up
            op.entries.clear()
        op.entries[name] = e
    op.recent.insert(0, e)
    if len(op.recent) > 4:
        op.recent.pop()
    return e


cdef TensorBase new_tensor():
    return <TensorBase>(<_Type *>Tensor).tp_new(<PyTypeObject *>Tensor, <PyObject *>NOTHING, NULL)


cdef TensorBase alias_of(TensorBase t):
    """The same memory as another tensor object, without history."""
    cdef TensorBase y = new_tensor()
    y.v = t.v
    y.block = t.block
    y.block.refs += 1
    return y


cdef TensorBase packed(TensorBase x):
    """A contiguous copy, without history."""
    cdef TensorBase y = new_tensor()
    cdef fe_view args[2]
    cdef int64_t n = fe_numel(&x.v), step = 1
    cdef int d
    y.v = x.v
    for d in range(x.v.ndim - 1, -1, -1):
        y.v.stride[d] = step
        step *= max(x.v.shape[d], 1)
    y.block = block_new(n * BYTES[x.v.dtype])
    y.v.data = y.block.data
    args[0], args[1] = x.v, y.v
    launch(<fe_kernel><void *>copy_kernel[x.v.dtype], args, 1, 2, NULL, NULL, NULL, NULL, n)
    return y

cdef int *BYTES = [4, 8, 4, 8, 1, 1, 1, 2]


cdef int launch(fe_kernel fn, fe_view *args, int nin, int nargs, const int64_t *ints, const double *reals,
                fe_work work, const void *extra, int64_t cost) except -1:
    """Run one kernel now, on as many threads as its cost deserves."""
    cdef fe_call call
    cdef Block *scratch = NULL
    cdef int64_t need
    cdef int status, failed, nt = threads if cost >= 4 * SMALL else 1
    call.fn, call.args, call.nin, call.nargs = fn, args, nin, nargs
    call.ints, call.reals, call.extra, call.work = ints, reals, extra, NULL
    call.parallel, call.node, call.detail = nt > 1, 0, 0
    if work != NULL:
        need = work(&call, nt)
        if need > 0:
            scratch = block_new(need)
            call.work = scratch.data
    if nt == 1 and cost < SMALL:
        status = fe_run(&call, 1, 1, &failed)
    else:
        with nogil:
            status = fe_run(&call, 1, nt, &failed)
    if scratch != NULL:
        block_drop(scratch)
    if status != FE_OK:
        raise KernelError(f"an index is out of range: {call.detail}")
    return 0


cdef eager(OpBase op, tuple inputs, tuple attrs):
    cdef int n = len(inputs), i
    cdef fe_view *views[MAX_ARGS]
    cdef fe_view args[MAX_ARGS]
    cdef TensorBase x, y
    cdef Entry e
    cdef bint wants = False
    cdef list held = None
    if n > MAX_ARGS - 4:
        return eager_many(op, inputs, attrs)
    for i in range(n):
        o = inputs[i]
        if not isinstance(o, TensorBase):
            raise_not_tensor(op, o, i)
        x = <TensorBase>o
        views[i] = &x.v
        wants |= x.requires_grad_
    e = find(op, inputs, attrs, views)
    if e is None:
        x = record_copy(<TensorBase>inputs[0])
        return eager(op, (x,) + inputs[1:], attrs)
    if e.is_view:
        x = <TensorBase>inputs[0]
        y = new_tensor()
        y.v = e.outs[0]
        y.v.data = x.v.data + e.offset * BYTES[x.v.dtype]
        y.block = x.block
        y.block.refs += 1
        if wants and grad_on:
            tape(op, inputs, attrs, e, y)
        return y
    for i in range(n):
        args[i] = views[i][0]
        if (e.contiguous >> i) & 1 and not view_contiguous(&args[i]):
            if held is None:
                held = []
            x = packed(<TensorBase>inputs[i])
            held.append(x)
            args[i] = x.v
    if e.nout == 1:
        y = new_tensor()
        y.v = e.outs[0]
        y.block = block_new(fe_numel(&y.v) * BYTES[y.v.dtype])
        y.v.data = y.block.data
        args[n] = y.v
        result = y
    else:
        result = []
        for i in range(e.nout):
            y = new_tensor()
            y.v = e.outs[i]
            y.block = block_new(fe_numel(&y.v) * BYTES[y.v.dtype])
            y.v.data = y.block.data
            args[n + i] = y.v
            result.append(y)
        result = tuple(result)
    if e.fn == NULL:
        raise_no_kernel(op, inputs)
    if e.cost < SMALL and e.work == NULL:
        quick(e, args, n, n + e.nout, op)
    else:
        try:
            launch(e.fn, args, n, n + e.nout, e.ints, e.reals, e.work, e.extra, e.cost)
        except KernelError as error:
            raise index_error(op, error.problem) from None
    if wants and grad_on:
        tape(op, inputs, attrs, e, result)
    return result


cdef inline int quick(Entry e, fe_view *args, int nin, int nargs, OpBase op) except -1:
    """A small call without scratch: straight into the kernel."""
    cdef fe_call call
    cdef fe_team solo
    solo.tid, solo.nt, solo.barrier = 0, 1, NULL
    call.args, call.nin, call.nargs = args, nin, nargs
    call.ints, call.reals, call.extra, call.work = e.ints, e.reals, e.extra, NULL
    if e.fn(&call, &solo, NULL) != FE_OK:
        raise index_error(op, f"an index is out of range: {call.detail}")
    return 0


def eager_many(op, inputs, attrs):
    """The same for calls with many inputs (concat, add_n): allocates its argument list."""
    cdef int n = len(inputs), i
    cdef TensorBase x, y
    cdef fe_view *args
    cdef Entry e
    held = []
    for i, o in enumerate(inputs):
        if not isinstance(o, TensorBase):
            raise_not_tensor(op, o, i)
    e = op.prepare([x.spec for x in inputs], attrs, None)
    args = <fe_view *>calloc(n + e.nout, sizeof(fe_view))
    if args == NULL:
        raise MemoryError
    try:
        for i in range(n):
            x = <TensorBase>inputs[i]
            if (i >= 63 or (e.contiguous >> i) & 1) and not view_contiguous(&x.v):
                x = packed(x)
                held.append(x)
            args[i] = x.v
        outs = []
        for i in range(e.nout):
            y = new_tensor()
            y.v = e.outs[i]
            y.block = block_new(fe_numel(&y.v) * BYTES[y.v.dtype])
            y.v.data = y.block.data
            args[n + i] = y.v
            outs.append(y)
        launch(e.fn, args, n, n + e.nout, e.ints, e.reals, e.work, e.extra, e.cost)
    finally:
        free(args)
    result = outs[0] if e.nout == 1 else tuple(outs)
    if grad_on and any(x.requires_grad for x in inputs):
        tape(op, inputs, attrs, e, result)
    return result


cdef index_error(OpBase op, str problem):
    return KernelError(f"{op.name}: {problem}", expected=op.range_help or "indices inside the range of their axis",
                       fix="check the labels or indices before the call")


cdef raise_not_tensor(OpBase op, o, int i):
    name = op.inputs[0 if op.variadic else i] if i < len(op.inputs) or op.variadic else f"input {i}"
    raise DTypeError(f"{op.name}: {name} is not a tensor", expected="a flow.Tensor", got=type(o).__name__,
                     fix=f"wrap it: flow.tensor({name})")


cdef raise_no_kernel(OpBase op, inputs):
    got = ", ".join(str(x.spec) for x in inputs)
    raise DTypeError(f"{op.name}: no kernel for this element type", expected="float32 or float64"
                     + ("" if op.float_only else ", int32 or int64"), got=got or "no inputs", fix="convert with flow.cast")


# ---- the tape --------------------------------------------------------------------------------------------------------
@cython.freelist(128)
cdef class Node:
    """One recorded call: what ran, where its inputs came from, and the values its gradient rules asked for."""


cdef inline object edge_of(TensorBase x):
    return None if not x.requires_grad_ else x if x.node is None else x.node


cdef tape(OpBase op, tuple inputs, tuple attrs, Entry e, result):
    cdef int n = len(inputs), i
    cdef Node node
    cdef TensorBase y
    cdef list saved
    global sequence
    if not e.differentiable:
        return
    if not op.any_rule and not differentiable_inputs(op, inputs):
        return
    node = Node.__new__(Node)
    node.op, node.attrs, node.specs, node.shapes = op, attrs, e.specs, e.in_shapes
    sequence += 1
    node.seq = sequence
    if n == 1:
        node.edges = (edge_of(<TensorBase>inputs[0]),)
        node.slots[0] = (<TensorBase>inputs[0]).out_index
    elif n == 2:
        node.edges = (edge_of(<TensorBase>inputs[0]), edge_of(<TensorBase>inputs[1]))
        node.slots[0], node.slots[1] = (<TensorBase>inputs[0]).out_index, (<TensorBase>inputs[1]).out_index
    else:
        node.edges = tuple([edge_of(<TensorBase>x) for x in inputs])
        if n > 4:
            node.more = [(<TensorBase>x).out_index for x in inputs]
        else:
            for i in range(n):
                node.slots[i] = (<TensorBase>inputs[i]).out_index
    if op.variadic:
        node.saved = inputs if op.saved_inputs else NOTHING
    elif len(op.saved) == 0:
        node.saved = NOTHING
    else:
        saved = []
        for i in op.saved:                             # i >= 0: input i; i < 0: output ~i
            if i >= 0:
                saved.append(inputs[i])
            else:                                      # an alias: the output must not keep itself alive
                saved.append(alias_of(<TensorBase>result if e.nout == 1 else <TensorBase>result[~i]))
        node.saved = tuple(saved)
    if e.nout == 1:
        y = <TensorBase>result
        if y.v.dtype <= 1 or y.v.dtype == FE_F16:
            y.node, y.requires_grad_ = node, True
    else:
        for i in range(e.nout):
            y = <TensorBase>result[i]
            if y.v.dtype <= 1 or y.v.dtype == FE_F16:
                y.node, y.out_index, y.requires_grad_ = node, i, True


cdef bint differentiable_inputs(OpBase op, tuple inputs):
    """Whether an input that requires a gradient has a rule."""
    cdef int i
    for i in range(len(inputs)):
        if (<TensorBase>inputs[i]).requires_grad_ and op.rules.get(op.inputs[0 if op.variadic else i]) is not None:
            return True
    return False


def record_copy(TensorBase x):
    """x made contiguous; differentiable (the identity)."""
    from flowedu.ops.define import REGISTRY
    return REGISTRY["contiguous"](x)


def scalar_tensor(value, dtype):
    """The number `value` as a 0-d tensor."""
    cdef TensorBase y = new_tensor()
    y.v.ndim, y.v.dtype = 0, dtype.code
    y.block = block_new(8)
    y.v.data = y.block.data
    if y.v.dtype == FE_F32:
        (<float *>y.v.data)[0] = value
    elif y.v.dtype == FE_F64:
        (<double *>y.v.data)[0] = value
    elif y.v.dtype == FE_I32:
        (<int32_t *>y.v.data)[0] = value
    elif y.v.dtype == FE_I64:
        (<int64_t *>y.v.data)[0] = value
    else:
        y.numpy()[()] = value
    return y


cdef class TensorBase(Array):
    """The C part of flow.Tensor: data, tape links, operators. tensor.py adds the methods users see."""

    @property
    def spec(self):
        from flowedu.blob.spec import Spec
        return Spec(self.shape, self.dtype)

    def __add__(self, other):
        return binary(ADD, self, other)

    def __radd__(self, other):
        return binary(ADD, other, self)

    def __sub__(self, other):
        return binary(SUB, self, other)

    def __rsub__(self, other):
        return binary(SUB, other, self)

    def __mul__(self, other):
        return binary(MUL, self, other)

    def __rmul__(self, other):
        return binary(MUL, other, self)

    def __truediv__(self, other):
        return binary(DIV, self, other)

    def __rtruediv__(self, other):
        return binary(DIV, other, self)

    def __matmul__(self, other):
        if isinstance(self, TensorBase) and isinstance(other, TensorBase) and \
                (<TensorBase>self).v.dtype == (<TensorBase>other).v.dtype:
            return MATMUL.call((self, other), MATMUL.defaults)
        return matmul_hook(self, other)

cdef OpBase ADD = None, SUB = None, MUL = None, DIV = None, MATMUL = None, SUM = None
cdef object matmul_hook = None, mixed = None


def register_operators(add, sub, mul, div, matmul, sum, mixed_matmul, mixed_operands):
    """Give the operators their ops; the `mixed` functions handle scalars, unequal dtypes and foreign operands."""
    global ADD, SUB, MUL, DIV, MATMUL, SUM, matmul_hook, mixed
    ADD, SUB, MUL, DIV, MATMUL, SUM, matmul_hook, mixed = add, sub, mul, div, matmul, sum, mixed_matmul, mixed_operands


cdef OpBase sum_op():
    return SUM


cdef binary(OpBase op, a, b):
    if isinstance(a, TensorBase) and isinstance(b, TensorBase) and (<TensorBase>a).v.dtype == (<TensorBase>b).v.dtype \
            and ((<TensorBase>a).v.dtype < 2 or op is not DIV):
        return op.call((a, b), NOTHING)
    return mixed(op, a, b)


set_num_threads(default_threads())
