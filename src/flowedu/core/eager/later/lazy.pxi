# Chapters 4 and 5: lazy tensors, values of a graph being built, with a shape and a dtype but no
# memory (part of dispatch.pyx). An interpreter (core/ops/call.pyx) runs calls on them.

cdef dispatch_to(interpreter, OpBase op, tuple inputs, tuple attrs):
    """Run a call with the active interpreter. Lazy views get a Link, as eager views do."""
    cdef Entry e
    cdef int d
    for x in inputs:
        if isinstance(x, TensorBase) and (<TensorBase>x).flags & VIEW:
            refresh_view(<TensorBase>x)
    y = interpreter.run(op, inputs, attrs)
    if op.view is not None and isinstance(y, TensorBase) and (<TensorBase>y).block == NULL \
            and isinstance(inputs[0], TensorBase):
        e = prepare(op, [inputs[0].spec], attrs, [inputs[0].strides])
        if e is not None:                          # None: the op copies, as in eager mode
            for d in range((<TensorBase>y).v.ndim):
                (<TensorBase>y).v.stride[d] = e.outs[0].stride[d]
            make_link(<TensorBase>inputs[0], <TensorBase>y, op, attrs)
    return y


def lazy_tensor(symbol, shape, dtype, bint requires_grad=False, grad_name=None):
    """Make a tensor for the value `symbol` of a graph. grad_name: the name of its grad_fn."""
    cdef TensorBase y = new_tensor()
    cdef int d
    if len(shape) > FE_MAX_DIM:
        raise ShapeError("a tensor has too many axes", expected=f"at most {FE_MAX_DIM}",
                         got=str(tuple(shape)))
    y.v.ndim, y.v.dtype = <int32_t>len(shape), dtype.code
    for d in range(y.v.ndim):
        y.v.shape[d] = shape[d]
    set_row_major(&y.v)
    set_flag(y, TRACKED, requires_grad)
    y.rare = Rare()
    y.rare.symbol, y.rare.grad_name = symbol, grad_name or None
    return y


def take_value(TensorBase x, TensorBase z):
    """Make the lazy tensor x refer to the graph value of z."""
    if z.flags & VIEW:
        refresh_view(z)
    take_symbol(x, z)
    x.epoch += 1


cdef int take_symbol(TensorBase x, TensorBase y) except -1:
    """Give x the symbol, the parts and the layout of y."""
    if x.rare is None:
        x.rare = Rare()
    x.rare.symbol, x.rare.grad_name, x.rare.parts = y.rare.symbol, y.rare.grad_name, y.rare.parts
    set_layout(x, y._layout)
    set_flag(x, TRACKED, y.flags & TRACKED)
    return 0
