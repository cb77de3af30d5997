# Chapters 4 and 5, lazy tensors: values of a graph that is being built, shape and dtype without numbers (part of dispatch.pyx).
# An interpreter on the stack answers calls on them: see core/ops/call.pyx.

cdef dispatch_to(interpreter, OpBase op, tuple inputs, tuple attrs):
    """A call answered by the interpreter in charge. Lazy views remember what they are views of, as eager ones do."""
    cdef Entry e
    cdef int d
    for x in inputs:
        if isinstance(x, TensorBase) and (<TensorBase>x).flags & VIEW:
            refresh_view(<TensorBase>x)
    y = interpreter.run(op, inputs, attrs)
    if op.view is not None and isinstance(y, TensorBase) and (<TensorBase>y).block == NULL \
            and isinstance(inputs[0], TensorBase):
        e = prepare(op, [inputs[0].spec], attrs, [inputs[0].strides])
        if e is not None:                          # None: outside a graph this would be a copy, and so it is here
            for d in range((<TensorBase>y).v.ndim):
                (<TensorBase>y).v.stride[d] = e.outs[0].stride[d]
            make_link(<TensorBase>inputs[0], <TensorBase>y, op, attrs)
    return y


def lazy_tensor(symbol, shape, dtype, bint requires_grad=False, grad_name=None):
    """A tensor without numbers: the value `symbol` of the graph being built. `grad_name`: what grad_fn prints."""
    cdef TensorBase y = new_tensor()
    cdef int d
    if len(shape) > FE_MAX_DIM:
        raise ShapeError("a tensor has too many axes", expected=f"at most {FE_MAX_DIM}", got=str(tuple(shape)))
    y.v.ndim, y.v.dtype = <int32_t>len(shape), dtype.code
    for d in range(y.v.ndim):
        y.v.shape[d] = shape[d]
    row_by_row(&y.v)
    set_flag(y, TRACKED, requires_grad)
    y.rare = Rare()
    y.rare.symbol, y.rare.grad_name = symbol, grad_name or None
    return y


cdef raise_lazy(why):
    raise LazyTensorError("this tensor is lazy: it stands for a value of an nn.Graph that is being built, or was built",
                          got=why, expected="an eager tensor", fix="return it from build() and look at what the graph's call returns")


def take_value(TensorBase x, TensorBase z):
    """The lazy tensor x stands for what z stands for, from here on."""
    if z.flags & VIEW:
        refresh_view(z)
    take_symbol(x, z)
    x.epoch += 1


cdef int take_symbol(TensorBase x, TensorBase y) except -1:
    """The lazy tensor x stands for what y stands for; the global tensor x has the parts of y."""
    if x.rare is None:
        x.rare = Rare()
    x.rare.symbol, x.rare.grad_name, x.rare.parts = y.rare.symbol, y.rare.grad_name, y.rare.parts
    set_layout(x, y._layout)
    set_flag(x, TRACKED, y.flags & TRACKED)
    return 0
