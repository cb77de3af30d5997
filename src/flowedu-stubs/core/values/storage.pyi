"""Written by `make stubs`: do not edit."""
from flowedu.core.values.dtype import dtype as _dtype
from flowedu.core.values.size import Size
from flowedu.errors import OutOfMemoryError

class Array:
    """N-dimensional array: address, dtype, shape, strides."""
    @property
    def _block_address(self) -> tuple:
        """(address, bytes) of the block; for borrowed memory, those of the original array."""
    @property
    def _device(self) -> int: """The device of the memory: 0 for main memory, 1 + k for the k-th GPU."""
    def _is_row_major(self): ...
    @property
    def _numel(self) -> int: ...
    @property
    def _read_only(self) -> bool: ...
    @property
    def _storage_offset(self) -> int: """Elements between the start of the block and the first element."""
    @property
    def _version_count(self) -> int: """Number of in-place writes to the memory."""
    @property
    def address(self) -> int: """Address of the first element; shows how views share memory."""
    @property
    def dtype(self) -> _dtype: ...
    @property
    def ndim(self) -> int: ...
    @property
    def shape(self) -> Size: ...
    def shares_block(self, other: Array): """Return True if both arrays use the same block of memory."""
    @property
    def strides(self) -> tuple: """Strides in elements."""
BY_CODE: tuple
def bytes_in_use() -> int: """Return the number of bytes in live blocks."""
def empty(shape, dtype, cls=...): """Allocate an uninitialized contiguous array of class `cls`."""
def from_numpy(x, dtype, cls=...):
    """Return an array that shares the memory of ndarray `x`, whose flowedu dtype is `dtype`."""
def out_of_memory(what: str, got: str, nbytes: int, **more) -> OutOfMemoryError:
    """Return the error of `what`, which could not allocate `nbytes` bytes for `got`."""
separate: bool
def view(base: Array, shape, strides, offset: int, cls=...):
    """Return a view of `base` with these strides and this offset from its start, in elements."""
