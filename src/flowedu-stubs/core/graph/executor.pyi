"""Written by `make stubs`: do not edit."""
from flowedu.core.eager.dispatch import TensorBase
from typing import Any, Self

class ArrayInterface(BoundPlan):
    """A bound plan with arguments and outputs, which are tensors or ndarrays."""
    def accepts(self, arguments: tuple):
        """Return True for C-contiguous, aligned ndarrays with the right shapes and dtypes."""
    as_tensors: bool
    def takes(self, arguments: tuple):
        """Return True for contiguous, eager, local CPU tensors with the right shapes and dtypes."""
    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
class BoundPlan:
    """A Plan as one C array of kernel calls, whose arguments have addresses."""
    @property
    def call_table(self) -> Any: """The address and the length of the array of calls, for show/stamps.pyx."""
    @property
    def nt(self) -> int: ...
    @property
    def plan(self) -> Any: ...
    @property
    def pythons(self) -> list | Any: ...
    def set_kept(self, valid: bool):
        """Set `kept` (abi.h) of each call. valid: True if an earlier run filled kept scratch."""
    def stale(self, share: int = 1):
        """Return True if the number of threads, or a variable's memory or layout, has changed."""
    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
class Executor(ArrayInterface):
    """Executor of a Plan."""
    counter: TensorBase | Any
    def run(self, arguments: tuple): """Run one step."""
    runs: int
    written: list | Any
    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
LARGEST: int
def scratch_bytes(entry: Any, places, threads: int = 0) -> int:
    """Return the scratch bytes of the kernel of `entry`. threads: 0 for the current setting."""
