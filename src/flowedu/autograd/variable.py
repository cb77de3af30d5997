"""autograd.Variable: how PyTorch 0.3 spelled a tensor that is trained."""
from __future__ import annotations

from flowedu.errors import ArgumentError
from flowedu.tensor import Tensor


class _Kind(type):
    def __instancecheck__(cls, obj: object) -> bool:
        return isinstance(obj, Tensor)


class Variable(metaclass=_Kind):
    """Variable(x): the tensor's numbers as a leaf of their own, in the same memory. Every tensor is an instance of it."""

    def __new__(cls, data: Tensor, requires_grad: bool = False, volatile: bool = False) -> Tensor:
        if not isinstance(data, Tensor):
            raise ArgumentError("Variable: not a tensor", expected="a Tensor", got=type(data).__name__,
                                fix="flow.tensor(x, requires_grad=True)")
        return data.detach().requires_grad_(requires_grad)
