"""Written by `make stubs`: do not edit."""
from flowedu.core.eager.tensor import Tensor
from typing import Any, Self

BY_CODE: tuple
class PyCall:
    """One call of a record's `ref`: the function, and where each of its arguments comes from."""
    @property
    def address(self) -> Any: """What `extra` of the call is: this object."""
    def kept_error(self, detail: int, where: str) -> Tensor:
        """The exception a failed call kept, for its caller to raise."""
    @property
    def role(self) -> str | Any: ...
    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
def python_call(op, attrs) -> Tensor: """The kernel of a call of a record without a compiled one, and its `extra`."""
def rounded(y) -> Tensor:
    """The bits of the bfloat16 numbers nearest to those of a float32 array; of two that are as near, the even one."""
