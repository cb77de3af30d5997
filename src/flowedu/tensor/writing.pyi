"""Written by `make stubs`: do not edit."""
from flowedu.core.eager.tensor import Tensor
from typing import Any

class Update:
    """`x op= other`: in x's memory where that is safe and nobody asks for gradients, else by `write(x, op, other)`."""
    def __call__(self, *args, **kwargs) -> Any: ...
    def __init__(self, *args, **kwargs) -> None: ...
def bump(x: Any) -> Tensor: """Count a write into x's memory that happened elsewhere."""
def check_writable(x: Any, what: str = 'in-place') -> Tensor:
    """Raise where x must not be written in place: by memory, or by its part in a recorded computation."""
def keep_old_values(z: Any, since: int, x: Any) -> Tensor:
    """Before x's memory is overwritten by z: where calls recorded after `since`, below z, saved x or a view of it, let them keep a copy of what is there now."""
def last_writes(tensors: list) -> Tensor:
    """(how often ops wrote in the memory of these local tensors, how often it was lent to others): where both are as they were, nobody wrote."""
def lend(x: Any) -> Tensor: """Somebody is told where the memory of x is, and may write there from now on."""
def renew(x: Any) -> Tensor: """Make the history of a stale view anew."""
def set_layout(x: Any, y: Any) -> Tensor: """x takes the shape and strides of y, a view of its twin."""
def try_into(op: Any, inputs: tuple, attrs: tuple, x: Any) -> bool:
    """Run an elementwise op with x's memory as its output, if that is safe; False: nothing was done."""
def twin(x: Any) -> Tensor: """x as it is now in another object: the same memory, history and base."""
def view_steps(x: Any) -> Tensor:
    """[(op, attrs, shape of what it was applied to), ...] from the base of the view x to x."""
