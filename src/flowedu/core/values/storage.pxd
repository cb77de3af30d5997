from libc.stdint cimport int32_t, int64_t, uint16_t
from flowedu._kernels.core.abi cimport fe_item, fe_numel, fe_view

cdef struct Block:           # a block of memory, shared by the arrays that view it
    char *data
    int64_t nbytes
    int64_t refs
    int32_t device           # 0: main memory; 1 + k: the k-th GPU, not accessible here
    int32_t bucket           # index of its free list in fast/memory.pyx; -1: none
    void *owner              # a Python object that keeps borrowed memory alive
    Block *next              # next block of that free list
    int64_t version          # number of in-place writes; backward checks that it is unchanged
    int32_t lent, returned   # number of buffer exports to other libraries, and of releases
    bint readonly            # writes raise; for example, the memory of a mapped file

ctypedef Block *(*Take)(int64_t nbytes) noexcept
ctypedef void (*Give)(Block *b) noexcept

cdef int64_t live_bytes      # bytes of all blocks that `take` allocated and `give` did not free
cdef Take take               # allocate and free a block; fast/memory.pyx installs its own functions
cdef Give give
cdef Block *plain_take(int64_t nbytes) noexcept
cdef void plain_give(Block *b) noexcept

cdef inline Block *block_try(int64_t nbytes) noexcept:
    """Allocate an uninitialized 64-byte-aligned block with one reference; NULL: no memory."""
    cdef Block *b = take(nbytes)
    if b != NULL:
        b.refs, b.version, b.lent, b.returned, b.readonly = 1, 0, 0, 0, False
    return b

cdef Block *block_new(int64_t nbytes) except NULL
cdef Block *block_over(char *data, int64_t nbytes, object owner) except NULL
cdef void block_drop(Block *b) noexcept
cdef bint view_contiguous(const fe_view *v) noexcept nogil

cdef inline int itemsize(int32_t dtype) noexcept nogil:
    return fe_item[dtype]

cdef inline void set_row_major(fe_view *v) noexcept nogil:
    """Set the strides of `v`, whose shape is set, to those of a contiguous array."""
    cdef int64_t step = 1
    cdef int d
    for d in range(v.ndim - 1, -1, -1):
        v.stride[d] = step
        step *= max(v.shape[d], 1)

cdef enum:
    ON_DEVICE = 256          # a flag of Array.flags: block.device is not 0

cdef class Array:
    cdef uint16_t flags      # ON_DEVICE, and flags of TensorBase (core/eager/dispatch.pxd)
    cdef Block *block
    cdef fe_view v           # for a lazy tensor, data and block are NULL
    cdef object __weakref__

cdef inline bint allocate(Array a) noexcept:
    """Allocate the memory of `a`, whose shape and dtype are set. Return False without memory."""
    a.block = block_try(fe_numel(&a.v) * itemsize(a.v.dtype))
    a.v.data = NULL if a.block == NULL else a.block.data
    return a.block != NULL
