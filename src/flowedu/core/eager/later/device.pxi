# Chapter 8: calls with tensors of other devices among their inputs (part of dispatch.pyx).
#
# Block.device is the device of a block. Specs, Entries, views, versions and the tape do not depend
# on it. Functions in slots (hooks.pxi) allocate (`device_memory`), start kernels (`launch`), and
# copy values (`carry`). C code never accesses memory of other devices.

cdef call_on_device(OpBase op, tuple inputs, tuple attrs, Entry e, int flags, const int64_t *drawn,
                    GlobalLayout at):
    """Run a call that has an input on another device, or no inputs."""
    cdef int device = choose_device(op, inputs)
    return run_resolved(op, move_scalars(inputs, device), attrs, e, flags, drawn, at, device)

SPECIALS[2].flag, SPECIALS[2].handle = ON_DEVICE, call_on_device


cdef int choose_device(OpBase op, tuple inputs) except -1:
    """Return the device of the inputs, or fe_device without inputs. 0-dim ones may be on CPU."""
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
    raise errors.mixed_devices(op.name, names, where)


cdef tuple move_scalars(tuple inputs, int device):
    """Return the inputs; tracked 0-dim ones are copied to the device by a recorded op."""
    cdef TensorBase x
    for x in inputs:
        if x.block.device != device and x.flags & TRACKED and not fe_grad_off:
            return tuple([x if x._device == device else filled.move(x, device) for x in inputs])
    return inputs


cdef int allocate_on(TensorBase y, int device) except -1:
    """Allocate memory of a GPU for y, whose shape and dtype are set."""
    cdef int64_t nbytes = fe_numel(&y.v) * itemsize(y.v.dtype)
    owner = filled.device_memory(nbytes, device - 1)
    y.block = block_over(<char *><size_t>owner.address, nbytes, owner)
    y.block.device, y.v.data = device, y.block.data
    set_flag(y, ON_DEVICE, True)
    return 0


cdef run_on_device(Entry e, tuple inputs, int device, int local_only, const int64_t *drawn):
    """Allocate the outputs on a GPU and start the kernel."""
    cdef TensorBase y
    cdef list outputs = []
    cdef int i
    for i in range(e.nout):
        y = new_tensor()
        set_flag(y, UNIFORM, not local_only)
        y.v = e.outs[i]
        allocate_on(y, device)
        outputs.append(y)
    start(e, inputs, outputs, device, drawn)
    return outputs[0] if e.nout == 1 else tuple(outputs)


cdef int start(Entry e, tuple inputs, list outputs, int device, const int64_t *drawn) except -1:
    """Start the kernel on a GPU. 0-dim inputs in main memory are passed to it as numbers."""
    cdef TensorBase x
    cdef list args = []
    cdef int i
    for i in range(len(inputs)):
        x = <TensorBase>inputs[i]
        if (i >= 63 or (e.contiguous >> i) & 1) and not view_contiguous(&x.v):
            x = copy_contiguous(x)
        args.append(x)
    filled.launch(e, args, outputs, None if drawn == NULL else (drawn[0], drawn[1]))
    return 0


def copy_to_device(TensorBase x, int device):
    """Return a contiguous copy of x on a device (1 + k: the k-th GPU), without history."""
    cdef TensorBase y = copy_contiguous(x, device)
    set_flag(y, UNIFORM, x.flags & UNIFORM)
    return y


def new_on_device(shape, dtype, int device):
    """Allocate an uninitialized contiguous tensor on a GPU."""
    cdef TensorBase y = lazy_tensor(None, shape, dtype)
    y.rare = None
    allocate_on(y, device)
    return y
