# Chapter 8, tensors on other devices: calls with one among their inputs (part of dispatch.pyx).
#
# A block knows its device. Specs, Entries, views, versions and the tape are the same wherever it is; memory comes from one slot
# of hooks.pxi, `device_memory`, kernels are started by another, `launch`, and values travel through `carry`. Nothing in C reads
# or writes that memory.

cdef call_on_device(OpBase op, tuple inputs, tuple attrs, Entry e, int flags, const int64_t *drawn, GlobalLayout at):
    """A call with a tensor on another device among its inputs, or without inputs."""
    cdef int device = place_of(op, inputs)
    return answered(op, together(inputs, device), attrs, e, flags, drawn, at, device)

SPECIALS[2].flag, SPECIALS[2].answer = ON_DEVICE, call_on_device


cdef int place_of(OpBase op, tuple inputs) except -1:
    """The device of a call (Block.device): that of its inputs; 0-d tensors in main memory may join those on a GPU. Without
    inputs the one that constants are made on now."""
    cdef TensorBase x
    cdef int device = 0
    if not inputs:
        return fe_device
    for x in inputs:
        if x.block.device != 0:
            device = x.block.device
            break
    for x in inputs:
        if x.block.device != device and (x.block.device != 0 or x.v.ndim):
            raise_apart(op, inputs)
    for i in op.mutates(len(inputs)) if op.mutates is not None else ():
        if (<TensorBase>inputs[i]).block.device != device:
            raise_apart(op, inputs)
    return device


cdef raise_apart(OpBase op, tuple inputs):
    names = [f"{op.inputs[0]}[{i}]" for i in range(len(inputs))] if op.variadic else op.inputs
    where = ["cpu" if x._device == 0 else f"cuda:{x._device - 1}" for x in inputs]
    raise DeviceError(f"{op.name}: Expected all tensors to be on the same device", expected="one device (a 0-d tensor on the "
                      "CPU may join)", got=", ".join([f"{n} is on {w}" for n, w in zip(names, where)]),
                      fix=f'x.to("{max(where)}") brings a tensor there')


cdef tuple together(tuple inputs, int device):
    """The inputs; 0-d ones that need a gradient are copied to the device, recorded, so that the gradient goes back."""
    cdef TensorBase x
    for x in inputs:
        if x.block.device != device and x.flags & TRACKED and not fe_grad_off:
            return tuple([x if x._device == device else filled.move(x, device) for x in inputs])
    return inputs


cdef int allocate_on(TensorBase y, int device) except -1:
    """Memory of a GPU for y, whose shape and dtype are known."""
    cdef int64_t nbytes = fe_numel(&y.v) * itemsize(y.v.dtype)
    owner = filled.device_memory(nbytes, device - 1)
    y.block = block_over(<char *><size_t>owner.address, nbytes, owner)
    y.block.device, y.v.data = device, y.block.data
    set_flag(y, ON_DEVICE, True)
    return 0


cdef run_on_device(Entry e, tuple inputs, int device, int local_only, const int64_t *drawn):
    """`run` on a GPU."""
    cdef TensorBase y
    cdef list made = []
    cdef int i
    for i in range(e.nout):
        y = new_tensor()
        set_flag(y, UNIFORM, not local_only)
        y.v = e.outs[i]
        allocate_on(y, device)
        made.append(y)
    start(e, inputs, made, device, drawn)
    return made[0] if e.nout == 1 else tuple(made)


cdef int start(Entry e, tuple inputs, list made, int device, const int64_t *drawn) except -1:
    """Start the kernel on a GPU, with inputs made contiguous where it wants that. (0-d ones of main memory are numbers to it.)
    """
    cdef TensorBase x
    cdef list args = []
    cdef int i
    for i in range(len(inputs)):
        x = <TensorBase>inputs[i]
        if (i >= 63 or (e.contiguous >> i) & 1) and not view_contiguous(&x.v):
            x = packed(x)
        args.append(x)
    filled.launch(e, args, made, None if drawn == NULL else (drawn[0], drawn[1]))
    return 0


def carried(TensorBase x, int device):
    """A copy of x on a device (0: main memory, 1 + k: the k-th GPU), row by row, without history."""
    cdef TensorBase y = packed(x, device)
    set_flag(y, UNIFORM, x.flags & UNIFORM)
    return y


def new_on_device(shape, dtype, int device):
    """A new contiguous tensor on a GPU, contents undefined."""
    cdef TensorBase y = lazy_tensor(None, shape, dtype)
    y.rare = None
    allocate_on(y, device)
    return y
