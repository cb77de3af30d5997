"""Exchange of memory with other libraries without a copy, with DLPack or with the address of GPU memory.

A capsule contains a C struct with the address, dtype, shape, strides, and a `deleter`. The consumer renames
the capsule to "used_..." and calls the deleter when it no longer needs the memory. The destructor of an
unused capsule calls the deleter.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from cpython.pycapsule cimport (PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New, PyCapsule_SetName)
from cpython.ref cimport Py_DECREF, Py_INCREF

from flowedu._kernels.core.abi cimport *
from flowedu.core.values.storage cimport ON_DEVICE, Array, Block, block_over

from flowedu.core.values.dtype import BY_CODE
from flowedu.errors import DeviceError, DTypeError, ShapeError

cdef extern from *:
    """
    #include <stdint.h>
    typedef struct { int32_t device_type; int32_t device_id; } fe_dl_device;
    typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } fe_dl_type;
    typedef struct {
        void *data; fe_dl_device device; int32_t ndim; fe_dl_type dtype;
        int64_t *shape; int64_t *strides; uint64_t byte_offset;
    } fe_dl_tensor;
    typedef struct fe_dl_managed {
        fe_dl_tensor dl_tensor; void *manager_ctx; void (*deleter)(struct fe_dl_managed *);
    } fe_dl_managed;
    typedef struct fe_dl_versioned {
        uint32_t major; uint32_t minor; void *manager_ctx; void (*deleter)(struct fe_dl_versioned *);
        uint64_t flags; fe_dl_tensor dl_tensor;
    } fe_dl_versioned;
    """
    ctypedef struct fe_dl_device:
        int32_t device_type
        int32_t device_id
    ctypedef struct fe_dl_type:
        uint8_t code
        uint8_t bits
        uint16_t lanes
    ctypedef struct fe_dl_tensor:
        void *data
        fe_dl_device device
        int32_t ndim
        fe_dl_type dtype
        int64_t *shape
        int64_t *strides
        uint64_t byte_offset
    ctypedef struct fe_dl_managed:
        fe_dl_tensor dl_tensor
        void *manager_ctx
        void (*deleter)(fe_dl_managed *) noexcept
    ctypedef struct fe_dl_versioned:
        uint32_t major
        uint32_t minor
        void *manager_ctx
        void (*deleter)(fe_dl_versioned *) noexcept
        uint64_t flags
        fe_dl_tensor dl_tensor

cdef enum:
    READ_ONLY = 1
    CPU = 1                      # types of devices
    CUDA = 2
    MANAGED = 13                 # memory of CUDA's that the CPU reads, too
cdef const char *NAMES[4]
NAMES[0], NAMES[1] = b"dltensor", b"used_dltensor"
NAMES[2], NAMES[3] = b"dltensor_versioned", b"used_dltensor_versioned"
# (code, bits) of each dtype: 0 signed, 1 unsigned, 2 float, 4 bfloat, 6 bool
TYPES = ((2, 32), (2, 64), (0, 32), (0, 64), (0, 8), (1, 8), (6, 8), (2, 16), (4, 16), (0, 16))
BY_TYPE = {t: BY_CODE[i] for i, t in enumerate(TYPES)}


cdef void drop_old(fe_dl_managed *m) noexcept with gil:
    (<Array>m.manager_ctx).block.returned += 1
    Py_DECREF(<object>m.manager_ctx)
    free(m)


cdef void drop_versioned(fe_dl_versioned *m) noexcept with gil:
    (<Array>m.manager_ctx).block.returned += 1
    Py_DECREF(<object>m.manager_ctx)
    free(m)


cdef void drop_capsule(object capsule) noexcept:
    cdef fe_dl_managed *old
    cdef fe_dl_versioned *new
    if PyCapsule_IsValid(capsule, NAMES[0]):
        old = <fe_dl_managed *>PyCapsule_GetPointer(capsule, NAMES[0])
        old.deleter(old)
    elif PyCapsule_IsValid(capsule, NAMES[2]):
        new = <fe_dl_versioned *>PyCapsule_GetPointer(capsule, NAMES[2])
        new.deleter(new)


cdef void describe(Array a, fe_dl_tensor *t, int64_t *dims) noexcept:
    cdef int i
    a.block.lent += 1                          # until the deleter is called
    t.data, t.device.device_type, t.device.device_id = a.v.data, CPU, 0
    if a.block.device:
        t.device.device_type, t.device.device_id = CUDA, a.block.device - 1
    t.ndim, t.byte_offset, t.dtype.lanes = a.v.ndim, 0, 1
    t.dtype.code, t.dtype.bits = TYPES[a.v.dtype]
    t.shape, t.strides = dims, dims + 8
    for i in range(a.v.ndim):
        dims[i], dims[8 + i] = a.v.shape[i], a.v.stride[i]


def export(Array a, bint versioned):
    """Return a capsule over the memory of `a`; the capsule keeps `a` alive."""
    cdef fe_dl_managed *old
    cdef fe_dl_versioned *new
    if not versioned:
        if a.block.readonly:
            raise BufferError(
                "dlpack: this memory is read-only, which only DLPack 1.0 can say; export a copy")
        old = <fe_dl_managed *>malloc(sizeof(fe_dl_managed) + 16 * sizeof(int64_t))
        if old == NULL:
            raise MemoryError
        describe(a, &old.dl_tensor, <int64_t *>(<char *>old + sizeof(fe_dl_managed)))
        Py_INCREF(a)
        old.manager_ctx, old.deleter = <void *>a, drop_old
        return PyCapsule_New(old, NAMES[0], drop_capsule)
    new = <fe_dl_versioned *>malloc(sizeof(fe_dl_versioned) + 16 * sizeof(int64_t))
    if new == NULL:
        raise MemoryError
    describe(a, &new.dl_tensor, <int64_t *>(<char *>new + sizeof(fe_dl_versioned)))
    Py_INCREF(a)
    new.major, new.minor, new.flags = 1, 0, READ_ONLY if a.block.readonly else 0
    new.manager_ctx, new.deleter = <void *>a, drop_versioned
    return PyCapsule_New(new, NAMES[2], drop_capsule)


cdef class Borrowed:
    """Memory of another library, whose deleter is called after the last array over it was deleted."""
    cdef fe_dl_managed *old
    cdef fe_dl_versioned *new

    def __dealloc__(self):
        if self.old != NULL and self.old.deleter != NULL:
            self.old.deleter(self.old)
        if self.new != NULL and self.new.deleter != NULL:
            self.new.deleter(self.new)


def take(capsule, cls=Array, gpus=0):
    """Return an array of class `cls` over the memory in a capsule. `gpus` is the number of usable GPUs."""
    cdef Array a
    cdef Borrowed owner
    cdef Block *b
    cdef fe_dl_tensor *t
    cdef fe_dl_versioned *new
    cdef int64_t step = 1
    cdef int i, which
    cdef bint readonly = False
    if PyCapsule_IsValid(capsule, NAMES[2]):
        which = 2
    elif PyCapsule_IsValid(capsule, NAMES[0]):
        which = 0
    else:
        raise DTypeError("from_dlpack: this is not a fresh DLPack capsule", expected="one nobody took yet",
                         got=repr(capsule), fix="a capsule can be used once: ask the producer for another")
    owner = Borrowed.__new__(Borrowed)
    if which == 2:
        new = <fe_dl_versioned *>PyCapsule_GetPointer(capsule, NAMES[2])
        if new.major > 1:
            raise DTypeError("from_dlpack: the producer's version of DLPack is too new", expected="1.x",
                             got=str(new.major))
        t, readonly = &new.dl_tensor, new.flags & READ_ONLY
    else:
        t = &(<fe_dl_managed *>PyCapsule_GetPointer(capsule, NAMES[0])).dl_tensor
    gpu = t.device.device_type in (CUDA, MANAGED)
    if t.device.device_type != CPU and not (gpu and 0 <= t.device.device_id < gpus):
        cuda = f", or 2 (cuda) and a number from 0 to {gpus - 1}" if gpus else ""
        raise DeviceError("from_dlpack: the memory is of a device that is not in use here",
                          got=f"device type {t.device.device_type}, number {t.device.device_id}",
                          expected=f"device type 1 (cpu){cuda}", fix="bring it to the CPU first")
    dtype = BY_TYPE.get((t.dtype.code, t.dtype.bits))
    if dtype is None or t.dtype.lanes != 1:
        raise DTypeError("from_dlpack: flowedu has no such dtype",
                         expected=", ".join(d.name for d in BY_CODE),
                         got=f"DLPack type code {t.dtype.code} of {t.dtype.bits} bits",
                         fix="convert it first")
    if t.ndim > FE_MAX_DIM:
        raise ShapeError("from_dlpack: too many axes", expected=f"at most {FE_MAX_DIM}", got=str(t.ndim))
    a = cls.__new__(cls)
    a.v.ndim, a.v.dtype = t.ndim, dtype.code
    for i in range(t.ndim - 1, -1, -1):
        a.v.shape[i] = t.shape[i]
        a.v.stride[i] = t.strides[i] if t.strides != NULL else step
        if a.v.stride[i] < 0:
            raise ShapeError("from_dlpack: a stride is negative", got=str(a.v.stride[i]),
                             fix="take a copy first")
        step *= max(t.shape[i], 1)
    b = block_over(<char *>t.data + t.byte_offset, step * dtype.bytes, owner)
    b.readonly = readonly
    if which == 2:                                 # from here on the memory is ours to give back
        owner.new = <fe_dl_versioned *>PyCapsule_GetPointer(capsule, NAMES[2])
    else:
        owner.old = <fe_dl_managed *>PyCapsule_GetPointer(capsule, NAMES[0])
    PyCapsule_SetName(capsule, NAMES[which + 1])
    a.block = b
    a.v.data = b.data
    if gpu:
        b.device = t.device.device_id + 1
        a.flags |= ON_DEVICE
    return a


def on_gpu(size_t address, shape, strides, dtype, int gpu, bint readonly, owner, cls=Array):
    """Return an array of class `cls` over GPU memory of `owner`; `strides` are in elements and at least 0."""
    cdef Array a
    cdef int i
    cdef int64_t last = 0
    a = cls.__new__(cls)
    a.v.ndim, a.v.dtype = len(shape), dtype.code
    for i in range(a.v.ndim):
        a.v.shape[i], a.v.stride[i] = shape[i], strides[i]
        last += max(a.v.shape[i] - 1, 0) * a.v.stride[i]
    a.block = block_over(<char *>address, 0 if 0 in shape else (last + 1) * dtype.bytes, owner)
    a.block.device, a.block.readonly, a.v.data = gpu + 1, readonly, a.block.data
    a.flags |= ON_DEVICE
    return a
