"""Written by `make stubs`: do not edit."""
from flowedu.core.eager.tensor import Tensor
from typing import Any

BY_CODE: tuple
BY_TYPE: dict
class Borrowed:
    """Memory of another library, whose deleter is called after the last array over it was deleted."""
TYPES: tuple
def export(a: Any, versioned: bool) -> Tensor: """Return a capsule over the memory of `a`; the capsule keeps `a` alive."""
def on_gpu(address: int, shape, strides, dtype, gpu: int, readonly: bool, owner, cls=...) -> Tensor:
    """Return an array of class `cls` over GPU memory of `owner`; `strides` are in elements and at least 0."""
def take(capsule, cls=..., gpus=0) -> Tensor: """Return an array of class `cls` over the memory in a capsule."""
