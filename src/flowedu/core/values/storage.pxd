from libc.stdint cimport int32_t, int64_t, uint16_t
from flowedu._kernels.core.abi cimport fe_view

cdef struct Block:           # a piece of memory, shared by the arrays that view it
    char *data
    int64_t nbytes
    int64_t refs
    int32_t bucket           # free list it goes back to; -1: borrowed from `owner`
    int32_t device           # 0: main memory; 1 + k: the k-th GPU's, which nothing here may touch (chapter 8)
    void *owner              # a Python object that keeps borrowed memory alive
    Block *next
    int64_t version          # how often an in-place op wrote here: what backward saved must not have changed
    bint readonly            # memory that must not be written, such as a mapped file's

cdef Block *block_try(int64_t nbytes) noexcept
cdef Block *block_new(int64_t nbytes) except NULL
cdef Block *block_over(char *data, int64_t nbytes, object owner) except NULL
cdef void block_drop(Block *b) noexcept
cdef int itemsize(int32_t dtype) noexcept nogil
cdef bint view_contiguous(const fe_view *v) noexcept nogil

cdef enum:
    ELSEWHERE = 256          # a flag of Array.flags: block.device is not 0

cdef class Array:
    cdef uint16_t flags      # of a TensorBase (core/eager/dispatch.pxd), but for this one
    cdef Block *block
    cdef fe_view v           # data is NULL, and block too, for a lazy tensor: shape and dtype of a value to come
    cdef object __weakref__
