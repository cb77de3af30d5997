# Chapter 2: Entry, an op prepared for one set of input specs, and its cache (part of dispatch.pyx).

cdef class Entry:
    """Output specs, kernel and attributes of a call, for eager calls and plans."""

    def __cinit__(self, op, tuple attrs, list in_specs, tuple specs, kernel, ints, reals,
                  contiguous, int64_t cost, extra=None, view=None):
        cdef int i, d
        self.op, self.attrs, self.specs = op, attrs, specs
        self.nin, self.nout = len(in_specs), len(specs)
        self.in_shapes = tuple([s.shape for s in in_specs])
        self.in_dtypes = tuple([s.dtype for s in in_specs])
        self.flags = MANY if self.nout != 1 or self.nin >= MAX_ARGS else 0
        if op.mutates is not None:
            self.written, self.flags = tuple(op.mutates(len(in_specs))), self.flags | WRITES
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
            self.outs[i].ndim, self.outs[i].dtype = len(spec.shape), spec.dtype.code
            for d in range(self.outs[i].ndim):
                self.outs[i].shape[d] = spec.shape[d]
            set_row_major(&self.outs[i])
        if view is not None:
            self.flags |= VIEW
            strides, self.offset = view
            for d in range(self.outs[0].ndim):           # unused strides may be huge
                huge = specs[0].shape[d] <= 1 and abs(strides[d]) >= 1 << 58
                self.outs[0].stride[d] = 1 if huge else strides[d]
        self.differentiable = bool(op.rules) or op.any_rule and any(
            [has_gradient(self.outs[i].dtype) for i in range(self.nout)])
        self.python = kernel is not None and op.cpu is None
        self.quick = self.fn != NULL and self.work == NULL and cost < SMALL and self.nin < 63
        self.quick = self.quick and not self.python
        if not in_specs:
            self.flags |= ON_DEVICE | LOCAL_ONLY if op.random else ON_DEVICE  # see choose_device

    def __dealloc__(self):
        free(self.ints)
        free(self.reals)
        free(self.outs)

    @property
    def strides(self):
        """Strides of the output of a view, in elements."""
        return tuple([self.outs[0].stride[d] for d in range(self.outs[0].ndim)])

    @property
    def view_offset(self):
        return self.offset if self.flags & VIEW else None


def prepare(op, specs, attrs, strides=None, outs=None):
    """Make the Entry of a call. Return None if the strides do not allow the view."""
    outs = op.infer(specs, attrs) if outs is None else outs
    names = op.bind(specs, attrs, outs=outs)
    view = kernel = extra = None
    ints, reals = (), ()
    if op.view is not None:
        view = op.ask(op.view, {**names, "strides": strides[0], "out": outs[0]})
        if view is None:
            return None
    elif op.cpu is None and op.ref is not None:
        kernel, extra = extensions.python_kernel(op, attrs)
    else:
        kernel, extra = op.kernel_for(specs, outs, names)
        if op.pack is not None:
            ints, reals = check_limits(op, *op.ask(op.pack, names))
    contiguous = [i for i in range(len(specs)) if op.contiguous
                  and (op.inputs[0] if op.variadic else op.inputs[i]) in op.contiguous]
    cost = 0 if view else equations.cost(op, specs, outs, op.ask(op.axes, names))
    return Entry(op, attrs, list(specs), outs, kernel, ints, reals, contiguous, cost, extra, view)


def check_limits(op, ints, reals):
    """Check that kernels can multiply the packed attributes (strides, pads, sizes) in int64."""
    most = 63 if op.numbers or op.random else 31
    for n in ints:
        if not -2 ** most <= n < 2 ** most:
            raise errors.large_attribute(op.name, n, most)
    try:
        return ints, [float(x) for x in reals]
    except OverflowError:
        raise errors.large_number(op.name, reals) from None


cdef inline dispatch(OpBase op, tuple inputs, tuple attrs):
    """Run `op.call(inputs, attrs)` from C, without the cost of a method call."""
    if fe_hooks:
        if fe_hooks & CAST:
            inputs = thread_state.amp(op, inputs)
        if fe_hooks & OBSERVE:
            return thread_state.observer(op, inputs, attrs)
    return dispatch_below(op, inputs, attrs)


def run_unobserved(OpBase op, tuple inputs, tuple attrs):
    """Run a call that thread_state.observer got instead of an interpreter or the engine."""
    return dispatch_below(op, inputs, attrs)


cdef inline dispatch_below(OpBase op, tuple inputs, tuple attrs):
    if active != 0:
        interpreter = current_interpreter()
        if interpreter is not None:
            return dispatch_to(interpreter, op, inputs, attrs)
    return eager(op, inputs, attrs)


cdef inline int64_t fill_key(int64_t *key, tuple inputs, bint strides) noexcept:
    """Write dtypes, shapes and, for views, strides of the inputs to `key`; return its length."""
    cdef fe_view *v
    cdef int64_t k = 0
    cdef int i, d
    for i in range(len(inputs)):
        v = &(<TensorBase>inputs[i]).v
        key[k] = v.ndim * 16 + v.dtype
        k += 1
        for d in range(v.ndim):
            key[k] = v.shape[d]
            k += 1
        if strides:
            for d in range(v.ndim):
                key[k] = v.stride[d]
                k += 1
    return k


cdef inline bint same_key(const int64_t *a, const int64_t *b, int64_t n) noexcept:
    cdef int64_t i
    for i in range(n):                             # faster than memcmp for short keys
        if a[i] != b[i]:
            return False
    return True


cdef inline bint same_attrs(tuple a, tuple b):
    return a == b and (make_key(a) is a or make_key(a) == make_key(b))


cpdef make_key(attrs):
    """Return attributes as a key in which 0.0 and -0.0 differ."""
    for a in attrs or ():
        if type(a) is float and a == 0:
            return tuple([repr(a) if type(a) is float and a == 0 else a for a in attrs])
    return attrs


cdef Entry find(OpBase op, tuple inputs, tuple attrs):
    """Return the Entry for these inputs, cached or new; None if the strides do not allow a view."""
    cdef int64_t key[MAX_INPUTS * (1 + 2 * FE_MAX_DIM)]
    cdef Py_ssize_t k = 0
    if len(inputs) <= MAX_INPUTS:
        return find_with_key(op, inputs, attrs, key)
    for x in inputs:                               # no view op has so many inputs, so no strides
        k += 1 + (<TensorBase>x).v.ndim
    large = PyBytes_FromStringAndSize(NULL, k * 8)
    return find_with_key(op, inputs, attrs, <int64_t *>PyBytes_AS_STRING(large))


cdef inline Entry find_with_key(OpBase op, tuple inputs, tuple attrs, int64_t *key):
    """Return the Entry for these inputs. key: a buffer for fill_key."""
    cdef bint wants_strides = op.view is not None
    cdef Entry e
    cdef int i
    cdef int64_t k = fill_key(key, inputs, wants_strides)
    for i in range(len(op.recent)):
        e = <Entry>op.recent[i]
        if e.key_len == k and same_key(key, e.key, k) \
                and (attrs is e.attrs or same_attrs(attrs, e.attrs)):
            return e
    name = (make_key(attrs), PyBytes_FromStringAndSize(<char *>key, k * 8))
    e = op.entries.get(name)
    if e is None:
        e = prepare(op, [x.spec for x in inputs], attrs,
                    [x.strides for x in inputs] if wants_strides else None)
        if e is None:
            return None
        e.key_len = k if k <= MAX_KEY else -1
        memcpy(e.key, key, max(e.key_len, 0) * 8)
        if len(op.entries) >= 1024:                # bounds the cache if attributes always differ
            op.entries.clear()
        op.entries[name] = e
    op.recent.insert(0, e)
    if len(op.recent) > 4:
        op.recent.pop()
    return e
