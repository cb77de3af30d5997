"""Written by `make stubs`: do not edit."""
from flowedu.core.eager.tensor import Tensor
from typing import Any

class Update:
    """Compute `x op= other` in place if it is safe without a gradient, else by `write(x, op, other)`."""
    def __call__(self, *args, **kwargs) -> Any: ...
    def __init__(self, *args, **kwargs) -> None: ...
def bump(x: Any) -> Tensor: """Count a write into x's memory by other code."""
def check_writable(x: Any, what: str = 'in-place') -> Tensor:
    """Raise an error if x must not be written in place, because of its memory or a recorded computation."""
def keep_old_values(z: Any, since: int, x: Any) -> Tensor: """Copy saved values before x's memory is overwritten by z."""
def last_writes(tensors: list) -> Tensor:
    """Return (number of writes by ops, number of times the memory was lent) for these local tensors."""
def lend(x: Any) -> Tensor: """Record that other code knows the address of x's memory and may write to it."""
def renew(x: Any) -> Tensor: """Rebuild the history of a stale view."""
def set_layout(x: Any, y: Any) -> Tensor:
    """Give x the shape and strides of y, a view of twin(x); if x is a view, it keeps its base."""
def try_into(op: Any, inputs: tuple, attrs: tuple, x: Any) -> bool:
    """Run an elementwise op with x's memory as its output, if that is safe; else do nothing and return False."""
def twin(x: Any) -> Tensor: """Return another object with the memory, history, and base of x."""
def view_steps(x: Any) -> Tensor:
    """Return the ops that make the view x from its base, as [(op, attrs, shape of its input), ...]."""
