"""Parameter: a trainable tensor, which `parameters()` of its module returns."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex

from flowedu.core.eager.arrays import copy_of, tensor_alias
from flowedu.core.eager.tensor import Tensor, TensorType
from flowedu.core.ops.promote import default_float
from flowedu.core.values.storage import empty
from flowedu.errors import layers as errors


class _ParameterType(TensorType):
    """Metaclass that defines the call `Parameter(data)`, which returns an alias of `data`."""

    def __call__(cls, data: Tensor | None = None,  # type: ignore[override]
                 requires_grad: bool = True) -> Any:
        if data is None:
            data = empty((0,), default_float(), Tensor)
        if not isinstance(data, Tensor):
            raise errors.data_not_a_tensor(data)
        if data.is_lazy:
            raise errors.lazy_data()
        p = tensor_alias(data, cls)
        if requires_grad:
            p.requires_grad = True
        return p


class Parameter(Tensor, metaclass=_ParameterType):
    """A trainable tensor that shares the memory of `data` and has no history.

    Args:
        requires_grad: True if backward computes the gradient. Only floating dtypes have gradients.

    Raises:
        DTypeError: data is not a tensor. GradientError: the dtype has no gradients.
    """

    if TYPE_CHECKING:                # the call of the metaclass
        def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None: ...

    def __deepcopy__(self, memo: dict) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = _rebuild(type(self), copy_of(self.detach()), self.requires_grad,
                                      self.__dict__)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple:
        return _rebuild, (type(self), self.detach(), self.requires_grad, dict(self.__dict__))

    def __repr__(self) -> str:
        return "Parameter containing:\n" + Tensor.__repr__(self)


def _rebuild(cls: _ParameterType, data: Tensor, requires_grad: bool, extra: dict) -> Parameter:
    p = cls(data, requires_grad)
    p.__dict__.update(extra)
    return p
