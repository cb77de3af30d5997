"""Conversion of parameters to one vector and back."""
from __future__ import annotations

from collections.abc import Iterable

from flowedu.core.ops.concat import concat
from flowedu.errors import ShapeError
from flowedu.tensor import Tensor, no_grad


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return one vector with the values of all parameters; it is differentiable.

    Args:
        parameters: tensors of any shapes.
    """
    return concat(*[p.reshape(-1) for p in parameters], axis=0)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write the values of a vector into the parameters, in order.

    Args:
        vec: vector with the total number of elements.
        parameters: tensors to write to.

    Raises:
        ShapeError: the vector has a wrong number of elements.
    """
    parameters = list(parameters)
    count = sum(p.numel() for p in parameters)
    if vec.ndim != 1 or vec.numel() != count:
        raise ShapeError("vector_to_parameters: the vector does not fit", expected=f"({count},)",
                         got=str(tuple(vec.shape)),
                         fix="a vector from parameters_to_vector of the same model")
    at = 0
    with no_grad():
        for p in parameters:
            p.copy_(vec[at:at + p.numel()].reshape(*p.shape))
            at += p.numel()
