# Entry: one op on one set of input specs, ready to run; OpBase finds or makes it (part of core.pyx).

cdef class Entry:
    """Everything known about a call before its data: output specs, kernel, attribute block. Shared by eager and plans."""

    def __cinit__(self, op, tuple attrs, list in_specs, tuple specs, kernel, ints, reals, contiguous, int64_t cost,
                  extra=None, view=None):
        cdef int i, d
        self.op, self.attrs, self.specs, self.nin, self.nout = op, attrs, specs, len(in_specs), len(specs)
        self.in_shapes = tuple([s.shape for s in in_specs])
        self.in_dtypes = tuple([s.dtype for s in in_specs])
        if op.mutates is not None:
            self.written = tuple(op.mutates(len(in_specs)))
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
            for d in range(self.outs[0].ndim):                 # a single element needs no step, however large it is
                self.outs[0].stride[d] = strides[d] if specs[0].shape[d] > 1 or abs(strides[d]) < 1 << 58 else 1
        self.differentiable, self.python = bool(op.rules), isinstance(extra, PyCall)
        self.source = not in_specs and not op.random

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
            self.kind[i], self.index[i] = ("grad", "saved", "attr", "shape", "dtype").index(kind), index
            if kind == "saved":
                self.saves |= (<int64_t>1) << index


cdef class OpBase:
    """The part of an op record that the eager path touches. ops/define.py adds the rest."""

    def __cinit__(self):
        self.entries = {}
        self.recent = []

    def __call__(self, *inputs, **attrs):
        cdef tuple values = self.defaults if not attrs and not self.required else self.complete(attrs)
        for x in inputs:
            if not isinstance(x, TensorBase):
                return self.call_mixed(inputs, values)
        return answer(self, inputs, values)

    def call_mixed(self, tuple inputs, tuple values):
        """A call whose inputs are not all tensors: numbers become constants, blobs answer for themselves."""
        for x in inputs:
            if isinstance(x, BlobDef):
                return x.call_op(self, inputs, values)
        if self.elementwise and any([isinstance(x, (int, float)) for x in inputs]):
            from flowedu.ops.value import with_scalars
            inputs = with_scalars(inputs)
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
        return answer(self, inputs, attrs)


cdef inline answer(OpBase op, tuple inputs, tuple attrs):
    """`op.call(inputs, attrs)`, from C without the detour a method takes."""
    if active != 0:
        interpreter = current_interpreter()
        if interpreter is not None:
            return ask(interpreter, op, inputs, attrs)
    return eager(op, inputs, attrs)


cdef ask(interpreter, OpBase op, tuple inputs, tuple attrs):
    """A call answered by the interpreter in charge. Lazy views remember what they are views of, as eager ones do."""
    cdef Entry e
    cdef int d
    for x in inputs:
        if isinstance(x, TensorBase) and (<TensorBase>x).link is not None:
            settle(<TensorBase>x)
    y = interpreter.run(op, inputs, attrs)
    if op.view is not None and isinstance(y, TensorBase) and (<TensorBase>y).block == NULL \
            and isinstance(inputs[0], TensorBase):
        e = op.prepare([inputs[0].spec], attrs, [inputs[0].strides])
        if e is not None:                          # None: outside a graph this would be a copy, and so it is here
            for d in range((<TensorBase>y).v.ndim):
                (<TensorBase>y).v.stride[d] = e.outs[0].stride[d]
            make_link(<TensorBase>inputs[0], <TensorBase>y, op, attrs)
    return y


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
    cdef int64_t key[2 * MAX_KEY]
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
        if k <= MAX_KEY:
            memcpy(e.key, key, k * 8)
            e.key_len = k
        if len(op.entries) >= 1024:                # attributes that change every call must not pile up
            op.entries.clear()
        op.entries[name] = e
    op.recent.insert(0, e)
    if len(op.recent) > 4:
        op.recent.pop()
    return e


cdef Entry find_many(OpBase op, tuple inputs, tuple attrs):
    """The same for any number of inputs."""
    cdef TensorBase x
    cdef fe_view *view
    cdef Entry e
    cdef int64_t k = len(inputs)
    for o in inputs:
        k += (<TensorBase>o).v.ndim
    key = PyBytes_FromStringAndSize(NULL, k * 8)
    cdef int64_t *words = <int64_t *>PyBytes_AS_STRING(key)
    k = 0
    for o in inputs:
        x = <TensorBase>o
        view = &x.v
        k += fill_key(words + k, &view, 1, False)
    e = op.entries.get((attrs, key))
    if e is None:
        e = op.prepare([x.spec for x in inputs], attrs, None)
        if len(op.entries) >= 1024:
            op.entries.clear()
        op.entries[attrs, key] = e
    return e
