"""Written by `make stubs`: do not edit."""
from flowedu.core.eager.tensor import Tensor
from typing import Any

BY_CODE: tuple
BY_TYPE: dict
class Borrowed:
    """Memory of another library: calls its deleter when nobody looks at it any more."""
TYPES: tuple
def export(a: Any, versioned: bool) -> Tensor: """A capsule over the memory of `a`, which it keeps alive."""
def on_gpu(address: int, shape, strides, dtype, gpu: int, readonly: bool, owner, cls=...) -> Tensor:
    """An array of class `cls` over memory of a GPU, which `owner` keeps. strides: in elements, not negative."""
def take(capsule, cls=..., gpus=0) -> Tensor:
    """An array of class `cls` over the memory in a capsule. gpus: how many there are whose memory we can look at."""
