"""Written by `make stubs`: do not edit."""
from flowedu.core.eager.tensor import Tensor
from typing import Any, Self

BY_CODE: tuple
class PyCall:
    """One call of a record's `ref`: the function, and the source of each of its arguments."""
    @property
    def address(self) -> Any: """Address of this object, the `extra` of the call."""
    def kept_error(self, detail: int, where: str) -> Tensor:
        """Return the exception of a failed call, for its caller to raise, with `where` as a note."""
    @property
    def role(self) -> str | Any: ...
    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
def python_call(op, attrs) -> Tensor:
    """Return the kernel of a call, and its `extra`, for a record without a compiled kernel."""
def rounded(y) -> Tensor: """Round a float32 array to bfloat16 (to nearest, ties to even) and return the bits."""
