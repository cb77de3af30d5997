from libc.stdint cimport int32_t, int64_t, uint16_t
from flowedu._kernels.core.abi cimport fe_item, fe_view

cdef struct Block:           # a piece of memory, shared by the arrays that view it
    char *data
    int64_t nbytes
    int64_t refs
    int32_t device           # 0: main memory; 1 + k: the k-th GPU's, which nothing here may touch (chapter 8)
    int32_t bucket           # of fast/memory.pyx: the list of free blocks it goes back to; -1: none
    void *owner              # a Python object that keeps borrowed memory alive
    Block *next              # of fast/memory.pyx: the next one of that list
    int64_t version          # how often an in-place op wrote here: what backward saved must not have changed
    int32_t lent, returned   # how often other libraries were given this memory to look at or write, and gave it back
    bint readonly            # memory that must not be written, such as a mapped file's

ctypedef Block *(*Take)(int64_t nbytes) noexcept
ctypedef void (*Give)(Block *b) noexcept

cdef int64_t live_bytes      # of all blocks that come from `take`, which counts them, and `give`
cdef Take take               # where blocks come from, and where they go: fast/memory.pyx puts its functions here
cdef Give give
cdef Block *plain_take(int64_t nbytes) noexcept
cdef void plain_give(Block *b) noexcept

cdef inline Block *block_try(int64_t nbytes) noexcept:
    """A block of at least nbytes, 64-byte aligned, with one reference; contents undefined. NULL, without an exception: there
    is no memory."""
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

cdef inline void row_by_row(fe_view *v) noexcept nogil:
    """Give v, whose shape is known, the strides of a contiguous array."""
    cdef int64_t step = 1
    cdef int d
    for d in range(v.ndim - 1, -1, -1):
        v.stride[d] = step
        step *= max(v.shape[d], 1)

cdef enum:
    ON_DEVICE = 256          # a flag of Array.flags: block.device is not 0

cdef class Array:
    cdef uint16_t flags      # of a TensorBase (core/eager/dispatch.pxd), but for this one
    cdef Block *block
    cdef fe_view v           # data is NULL, and block too, for a lazy tensor: shape and dtype of a value to come
    cdef object __weakref__
