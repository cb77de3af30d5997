"""Written by `make stubs`: do not edit."""
from flowedu.core.values.dtype import dtype as _dtype
from flowedu.core.values.size import Size
from flowedu.errors import OutOfMemoryError

class Array:
    """Memory seen as an n-dimensional array: address, dtype, shape, strides."""
    @property
    def address(self) -> int: """Address of the first element; for looking at how views share memory."""
    @property
    def dtype(self) -> _dtype: ...
    @property
    def ndim(self) -> int: ...
    @property
    def shape(self) -> Size: ...
    def shares_block(self, other: Array): """Whether both look at the same block of memory."""
    @property
    def strides(self) -> tuple: """In elements."""
BY_CODE: tuple
def bytes_in_use() -> int: """Bytes of all blocks that arrays have."""
def empty(shape, dtype, cls=...): """A new contiguous array of class `cls`, contents undefined."""
def from_numpy(x, dtype, cls=...): """An array over the memory of the ndarray `x` (shared, kept alive)."""
def no_memory(what: str, got: str, nbytes: int, **more) -> OutOfMemoryError:
    """The error for `got`, of so many bytes, that `what` found no memory for."""
separate: bool
def view(base: Array, shape, strides, offset: int, cls=...):
    """Another look at the memory of `base`: shape, strides and offset in elements from base's first element."""
