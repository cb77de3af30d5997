# Chapter 2: Entry, one op on one set of input specs, ready to run; OpBase finds or makes it (part of dispatch.pyx).

cdef class Entry:
    """Everything known about a call before its data: output specs, kernel, attribute block. Shared by eager and plans."""

    def __cinit__(self, op, tuple attrs, list in_specs, tuple specs, kernel, ints, reals, contiguous, int64_t cost,
                  extra=None, view=None):
        cdef int i, d
        self.op, self.attrs, self.specs, self.nin, self.nout = op, attrs, specs, len(in_specs), len(specs)
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
            self.flags |= VIEW
            strides, self.offset = view
            for d in range(self.outs[0].ndim):                 # a single element needs no step, however large it is
                self.outs[0].stride[d] = strides[d] if specs[0].shape[d] > 1 or abs(strides[d]) < 1 << 58 else 1
        self.differentiable, self.python = bool(op.rules), isinstance(extra, PyCall)
        self.quick = self.fn != NULL and self.work == NULL and cost < SMALL and self.nin < 63 and not self.python
        if not in_specs:
            self.flags |= ELSEWHERE | LOCAL_ONLY if op.random else ELSEWHERE      # maybe: see place_of

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
        return self.offset if self.flags & VIEW else None


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
    """The part of an op record that the eager path touches. core/ops/define.py adds the rest."""

    def __cinit__(self):
        self.entries, self.recent = {}, []

    def __init__(self, dict fields):
        """Takes out of `fields` those that C reads; Python keeps the others. (Made anew, a record forgets its Entries.)"""
        take = fields.pop
        self.entries, self.recent = {}, []
        self.inputs, self.outputs, self.variadic = take("inputs"), take("outputs"), take("variadic")
        self.defaults, self.required, self.attr_index = take("defaults"), take("required"), take("attr_index")
        self.view, self.elementwise = take("view"), take("elementwise")
        self.rules, self.compiled, self.star = take("rules"), take("compiled"), take("star")
        self.any_rule, self.saved, self.saved_inputs = take("any_rule"), take("saved"), take("saved_inputs")

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
            from flowedu.core.ops.promote import with_scalars
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
    if fe_amp:
        inputs = here.amp(op, inputs)
    if active != 0:
        interpreter = current_interpreter()
        if interpreter is not None:
            return ask(interpreter, op, inputs, attrs)
    return eager(op, inputs, attrs)


cdef inline int64_t fill_key(int64_t *key, tuple inputs, bint strides) noexcept:
    """What of the inputs decides on the Entry; returns how many numbers that is."""
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


cdef inline bint alike(tuple a, tuple b):
    return a == b and (exact(a) is a or exact(a) == exact(b))


cpdef exact(attrs):
    """Attributes as a key: 0.0 and -0.0, which are equal, are two."""
    for a in attrs or ():
        if type(a) is float and a == 0:
            return tuple([repr(a) if type(a) is float and a == 0 else a for a in attrs])
    return attrs


cdef Entry find(OpBase op, tuple inputs, tuple attrs):
    """The Entry for these inputs: one of the last few used, or from the cache, or made now (slow: Python). None: a view that
    the strides do not allow."""
    cdef int64_t key[MAX_INPUTS * (1 + 2 * FE_MAX_DIM)]
    cdef bint wants_strides = op.view is not None
    cdef Entry e
    cdef int i
    cdef int64_t k
    if len(inputs) > MAX_INPUTS:
        return find_many(op, inputs, attrs)
    k = fill_key(key, inputs, wants_strides)
    for i in range(len(op.recent)):
        e = <Entry>op.recent[i]
        if e.key_len == k and memcmp(key, e.key, k * 8) == 0 and (attrs is e.attrs or alike(attrs, e.attrs)):
            return e
    name = (exact(attrs), PyBytes_FromStringAndSize(<char *>key, k * 8))
    e = op.entries.get(name)
    if e is None:
        specs = [x.spec for x in inputs]
        e = op.prepare(specs, attrs, [x.strides for x in inputs] if wants_strides else None)
        if e is None:
            return None
        if k <= MAX_KEY:
            memcpy(e.key, key, k * 8)
            e.key_len = k
        keep(op, name, e)
    op.recent.insert(0, e)
    if len(op.recent) > 4:
        op.recent.pop()
    return e


cdef Entry find_many(OpBase op, tuple inputs, tuple attrs):
    """The same for any number of inputs."""
    cdef Entry e
    cdef int64_t k = len(inputs)
    for x in inputs:
        k += (<TensorBase>x).v.ndim
    key = PyBytes_FromStringAndSize(NULL, k * 8)
    fill_key(<int64_t *>PyBytes_AS_STRING(key), inputs, False)
    name = (exact(attrs), key)
    e = op.entries.get(name)
    if e is None:
        e = op.prepare([x.spec for x in inputs], attrs, None)
        keep(op, name, e)
    return e


cdef int keep(OpBase op, name, Entry e) except -1:
    if len(op.entries) >= 1024:                    # attributes that change every call must not pile up
        op.entries.clear()
    op.entries[name] = e
    return 0
