# Chapter 2: allocation of tensors (part of dispatch.pyx).

cdef TensorBase new_tensor():
    cdef PyObject *kind = <PyObject *>filled.Tensor
    cdef TensorBase y = <TensorBase>(<_Type *>kind).tp_new(<PyTypeObject *>kind,
                                                           <PyObject *>NOTHING, NULL)
    if fe_inference:
        y.flags |= INFERENCE
    return y


cdef TensorBase allocate_output(Entry e, int i, int local_only):
    """Allocate output i."""
    cdef TensorBase y = new_tensor()
    y.flags |= 0 if local_only else UNIFORM
    y.v = e.outs[i]
    if not allocate(y):
        raise out_of_memory(e.op.name, f"{e.specs[i]}", e.specs[i].nbytes)
    return y


cdef TensorBase alias_of(TensorBase t):
    """Return another tensor object over the same memory, without history."""
    cdef TensorBase y = new_tensor()
    y.v, y.block = t.v, t.block
    set_layout(y, t._layout)
    y.flags |= t.flags & (UNIFORM | ON_DEVICE)
    if y.block != NULL:
        y.block.refs += 1
    elif t.rare is not None:                       # lazy: the same symbol; global: the same parts
        y.rare = Rare()
        y.rare.symbol, y.rare.parts = t.rare.symbol, t.rare.parts
    return y


cdef TensorBase copy_contiguous(TensorBase x, int device=-1):
    """Return a contiguous copy of x, without history, on `device` (-1: the device of x)."""
    cdef TensorBase y = new_tensor()
    if x.block == NULL:
        raise errors.lazy_tensor("its values are needed")
    y.v = x.v
    set_layout(y, x._layout)
    set_row_major(&y.v)
    if device > 0 or device < 0 and x.flags & ON_DEVICE:
        allocate_on(y, device if device > 0 else x.block.device)
    elif not allocate(y):
        raise out_of_memory("contiguous", f"a copy of {x.spec}", x.spec.nbytes)
    if (x.flags | y.flags) & ON_DEVICE:
        filled.carry(x, y)
    else:
        copy_values(&x.v, &y.v)
    return y


def record_copy(TensorBase x):
    """Return a contiguous copy of x, recorded for backward."""
    return REGISTRY["contiguous"](x)


def scalar_tensor(value, dtype):
    """Return the number `value` as a 0-dim tensor."""
    cdef TensorBase y = new_tensor()
    y.v.ndim, y.v.dtype = 0, dtype.code
    y.flags |= UNIFORM
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
    elif y.v.dtype == FE_I8 or y.v.dtype == FE_U8:
        (<uint8_t *>y.v.data)[0] = <uint8_t><int64_t>int(value)         # wraps, as C does
    elif y.v.dtype == FE_I16:
        (<int16_t *>y.v.data)[0] = <int16_t><int64_t>int(value)
    elif y.v.dtype == FE_BOOL:
        (<uint8_t *>y.v.data)[0] = bool(value)
    else:
        return eager(REGISTRY["constant"], NOTHING, ((), value, dtype))
    return y
