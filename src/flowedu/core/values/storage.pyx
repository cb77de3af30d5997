"""Array, a block of memory with a shape and strides, and the allocation of blocks.

The functions here use malloc; fast/memory.pyx replaces them with an allocator that reuses blocks.
"""
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from posix.stdlib cimport posix_memalign
from cpython.buffer cimport (PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDED, PyBUF_STRIDES, PyBUF_WRITABLE,
                             PyBuffer_Release, PyObject_GetBuffer)
from cpython.ref cimport Py_DECREF, Py_INCREF
cimport cython

from flowedu._kernels.core.abi cimport *

from flowedu.core.values.dtype import BY_CODE
from flowedu.core.values.spec import LARGEST as _LARGEST, Spec, check_spec
from flowedu.errors import DTypeError, OutOfMemoryError, ShapeError
from flowedu.errors import values as errors

cdef int64_t LARGEST = _LARGEST
live_bytes = 0
separate = False       # True in the debug build: one malloc per array
cdef const char **FORMATS = [b"f", b"d", b"i", b"q", b"b", b"B", b"?", b"e", NULL, b"h"]


cdef Block *plain_take(int64_t nbytes) noexcept:
    """Allocate a block of nbytes with malloc, 64-byte aligned; NULL: no memory."""
    global live_bytes
    cdef void *data = NULL
    cdef Block *b = <Block *>malloc(sizeof(Block)) if 0 <= nbytes <= LARGEST else NULL
    if b == NULL or posix_memalign(&data, 64, max(nbytes, 1)) != 0:
        free(b)
        return NULL
    b.data, b.nbytes, b.bucket, b.device, b.owner = <char *>data, max(nbytes, 1), -1, 0, NULL
    live_bytes += b.nbytes
    return b


cdef void plain_give(Block *b) noexcept:
    global live_bytes
    live_bytes -= b.nbytes
    free(b.data)
    free(b)


take, give = plain_take, plain_give


cdef Block *block_new(int64_t nbytes) except NULL:
    """Allocate a block, such as scratch memory. Raises OutOfMemoryError."""
    cdef Block *b = block_try(nbytes)
    if b == NULL:
        raise out_of_memory("memory", "scratch or a copy", nbytes)
    return b


cdef Block *block_over(char *data, int64_t nbytes, object owner) except NULL:
    """Make a block, with one reference, over memory that `owner` keeps alive."""
    cdef Block *b = <Block *>malloc(sizeof(Block))
    if b == NULL:
        raise MemoryError
    b.data, b.nbytes, b.refs, b.device, b.owner = data, nbytes, 1, 0, <void *>owner
    b.version, b.lent, b.returned, b.readonly = 0, 0, 0, False
    Py_INCREF(owner)
    return b


def out_of_memory(what: str, got: str, nbytes: int, **more) -> OutOfMemoryError:
    """Return the error of `what`, which could not allocate `nbytes` bytes for `got`."""
    return errors.out_of_memory(what, got, nbytes, live_bytes, more)


cdef void block_drop(Block *b) noexcept:
    """Drop one reference. Dropping the last one frees the memory."""
    b.refs -= 1
    if b.refs > 0:
        return
    if b.owner == NULL:
        give(b)
    else:
        Py_DECREF(<object>b.owner)
        free(b)


def bytes_in_use() -> int:
    """Return the number of bytes in live blocks."""
    return live_bytes


cdef bint view_contiguous(const fe_view *v) noexcept nogil:
    cdef int64_t step = 1
    cdef int i = v.ndim - 1
    while i >= 0:
        if v.shape[i] == 0:
            return True
        i -= 1
    i = v.ndim - 1
    while i >= 0:
        if v.shape[i] != 1 and v.stride[i] != step:
            return False
        step *= v.shape[i]
        i -= 1
    return True


@cython.binding(False)               # methods check the class of self
cdef class Array:
    """N-dimensional array: address, dtype, shape, strides. Shares memory with NumPy both ways."""

    def __dealloc__(self):
        if self.block != NULL:
            block_drop(self.block)

    @property
    def shape(self):
        return tuple([self.v.shape[i] for i in range(self.v.ndim)])

    @property
    def strides(self):
        """Strides in elements."""
        return tuple([self.v.stride[i] for i in range(self.v.ndim)])

    @property
    def ndim(self):
        return self.v.ndim

    @property
    def dtype(self):
        return BY_CODE[self.v.dtype]

    @property
    def _numel(self):
        return fe_numel(&self.v)

    @property
    def _version_count(self):
        """Number of in-place writes to the memory."""
        return self.block.version if self.block != NULL else 0

    @property
    def _storage_offset(self):
        """Elements between the start of the block and the first element."""
        if self.block == NULL:
            return 0
        return (self.v.data - self.block.data) // itemsize(self.v.dtype)

    def shares_block(self, Array other):
        """Return True if both arrays use the same block of memory."""
        return self.block == other.block and self.block != NULL

    @property
    def _block_address(self):
        """(address, bytes) of the block; for borrowed memory, those of the original array."""
        if self.block == NULL:
            return 0, 0
        return <size_t>self.block.data, self.block.nbytes

    @property
    def _read_only(self):
        return self.block != NULL and self.block.readonly

    @property
    def _device(self):
        """The device of the memory: 0 for main memory, 1 + k for the k-th GPU."""
        return self.block.device if self.block != NULL else 0

    @property
    def address(self):
        """Address of the first element; shows how views share memory."""
        return <size_t>self.v.data

    def _is_row_major(self):
        """Return True if the array is contiguous in row-major order."""
        return view_contiguous(&self.v)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        cdef int i
        cdef int item = itemsize(self.v.dtype)
        cdef Py_ssize_t *dims
        if self.block == NULL:
            raise BufferError("a lazy tensor has no memory: in nn.Graph.build it has no values yet")
        if self.block.device != 0:
            raise BufferError(f"this tensor's memory is that of cuda:{self.block.device - 1}: "
                              "x.cpu() is a copy that can be read")
        if FORMATS[self.v.dtype] == NULL:
            raise BufferError(f"{self.dtype!r} has no buffer format: convert it to float32 first")
        if self.block.readonly and flags & PyBUF_WRITABLE:
            raise BufferError("the array this tensor was made from is read-only")
        dims = <Py_ssize_t *>malloc(16 * sizeof(Py_ssize_t))
        if dims == NULL:
            raise MemoryError
        for i in range(self.v.ndim):
            dims[i] = self.v.shape[i]
            dims[8 + i] = self.v.stride[i] * item
        if (flags & PyBUF_STRIDES) != PyBUF_STRIDES and not view_contiguous(&self.v):
            free(dims)
            raise BufferError("this array is a strided view; ask for a strided buffer")
        buffer.buf, buffer.obj, buffer.len = self.v.data, self, fe_numel(&self.v) * item
        buffer.itemsize, buffer.readonly, buffer.ndim = item, self.block.readonly, self.v.ndim
        buffer.format = <char *>FORMATS[self.v.dtype] if flags & PyBUF_FORMAT else NULL
        buffer.shape = dims if flags & PyBUF_ND else NULL
        buffer.strides = dims + 8 if (flags & PyBUF_STRIDES) == PyBUF_STRIDES else NULL
        buffer.suboffsets, buffer.internal, self.block.lent = NULL, dims, self.block.lent + 1

    def __releasebuffer__(self, Py_buffer *buffer):
        free(buffer.internal)
        self.block.returned += 1


cdef bint is_small_shape(tuple shape):
    """Return True if the shape is small enough that check_spec can be skipped."""
    cdef double extent = 1
    for n in shape:
        if type(n) is not int or not 0 <= n < 1 << 31:
            return False
        extent *= max(<int64_t>n, 1)
    return len(shape) <= FE_MAX_DIM and extent < 1 << 31


def empty(shape, dtype, cls=Array):
    """Allocate an uninitialized contiguous array of class `cls`. `dtype` is a flowedu dtype."""
    cdef Array a = cls.__new__(cls)
    cdef int i
    if dtype.code < 0:
        raise DTypeError(f"empty: {dtype!r} has no array form", expected="a numeric dtype",
                         got=repr(dtype))
    shape = tuple(shape)
    if not is_small_shape(shape):
        check_spec("empty", Spec(shape, dtype))
    a.v.ndim, a.v.dtype = <int32_t>len(shape), dtype.code
    for i in range(a.v.ndim):
        a.v.shape[i] = shape[i]
    set_row_major(&a.v)
    if not allocate(a):
        raise out_of_memory("empty", f"{Spec(shape, dtype)}", Spec(shape, dtype).nbytes)
    return a


def from_numpy(x, dtype, cls=Array):
    """Return an array that shares the memory of ndarray `x`, whose flowedu dtype is `dtype`."""
    cdef Array a = cls.__new__(cls)
    cdef int item = x.itemsize, i
    cdef Py_buffer at
    cdef tuple shape = x.shape, strides = x.strides
    check_rank(shape)
    a.v.ndim, a.v.dtype = len(shape), dtype.code
    for i in range(a.v.ndim):
        if strides[i] % item:
            raise errors.partial_strides(strides)
        a.v.shape[i] = shape[i]
        a.v.stride[i] = strides[i] // item
    PyObject_GetBuffer(x, &at, PyBUF_STRIDES)              # faster than x.ctypes.data
    try:
        a.block = block_over(<char *>at.buf, x.nbytes, x)
        a.block.readonly = at.readonly
    finally:
        PyBuffer_Release(&at)
    a.v.data = a.block.data
    return a


def view(Array base, shape, strides, int64_t offset, cls=Array):
    """Return a view of `base` with these strides and this offset from its start, in elements."""
    cdef Array a = cls.__new__(cls)
    cdef int i
    check_rank(shape)
    a.v.ndim, a.v.dtype = <int32_t>len(shape), base.v.dtype
    for i in range(a.v.ndim):
        a.v.shape[i] = shape[i]
        a.v.stride[i] = strides[i]
    if base.block == NULL:
        raise ShapeError("view: a lazy tensor has no memory to look at",
                         fix="use reshape, permute or indexing")
    a.v.data = base.v.data + offset * itemsize(base.v.dtype)
    a.block, a.flags = base.block, base.flags & ON_DEVICE
    a.block.refs += 1
    return a


cdef check_rank(shape):
    if len(shape) > FE_MAX_DIM:
        raise ShapeError("too many axes", expected=f"at most {FE_MAX_DIM}", got=str(tuple(shape)))
