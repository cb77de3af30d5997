"""Parameter: a trainable tensor. A module that has it as an attribute returns it from parameters()."""
from __future__ import annotations

from flowedu.core.eager.arrays import copy_of, tensor_alias
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.promote import default_float
from flowedu.core.values.storage import empty
from flowedu.errors import DTypeError, LazyTensorError


class _ParameterType(type(Tensor)):
    """Metaclass whose call returns an alias of a tensor. The memory layer creates instances without this call."""

    def __call__(cls, data=None, requires_grad: bool = True):
        if data is None:
            data = empty((0,), default_float(), Tensor)
        if not isinstance(data, Tensor):
            raise DTypeError("Parameter: data is not a tensor", expected="a flow.Tensor", got=type(data).__name__,
                             fix="nn.Parameter(flow.tensor(data))")
        if data.is_lazy:
            raise LazyTensorError("Parameter: data is a value of a graph that is being built", expected="an eager tensor",
                                  got="a lazy tensor", fix="make parameters in the __init__ of a module")
        p = tensor_alias(data, cls)
        if requires_grad:
            p.requires_grad = True
        return p


class Parameter(Tensor, metaclass=_ParameterType):
    """A trainable tensor that shares the memory of `data` and has no history.

    Args:
        requires_grad: if True, backward computes its gradient. Only floating dtypes have gradients.

    Raises:
        DTypeError: data is not a tensor. GradientError: requires_grad is True for a dtype without gradients.
    """

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = new = type(self)(copy_of(self.detach()), self.requires_grad)
            new.__dict__.update(self.__dict__)
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        return _rebuild, (type(self), self.detach(), self.requires_grad, dict(self.__dict__))

    def __repr__(self) -> str:
        return "Parameter containing:\n" + Tensor.__repr__(self)


def _rebuild(cls, data, requires_grad, attributes):
    p = cls(data, requires_grad)
    p.__dict__.update(attributes)
    return p
