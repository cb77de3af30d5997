"""autograd.Variable: PyTorch 0.3's name for a trained tensor."""
from __future__ import annotations

from flowedu.errors import ArgumentError
from flowedu.tensor import Tensor


class _Kind(type):
    def __instancecheck__(cls, obj: object) -> bool:
        return isinstance(obj, Tensor)


class Variable(metaclass=_Kind):
    """Constructor of a leaf with the memory of a tensor. Every tensor is an instance of this class.

    Args:
        data: tensor.
        requires_grad: compute a gradient.
        volatile: ignored.
    """

    def __new__(cls, data: Tensor, requires_grad: bool = False,  # type: ignore[misc]  # no object of cls
                volatile: bool = False) -> Tensor:
        if not isinstance(data, Tensor):
            raise ArgumentError("Variable: not a tensor", expected="a Tensor", got=type(data).__name__,
                                fix="flow.tensor(x, requires_grad=True)")
        return data.detach().requires_grad_(requires_grad)
