"""Parameters as one vector, and back."""
from __future__ import annotations

from collections.abc import Iterable

from flowedu.core.ops.define import REGISTRY
from flowedu.errors import ShapeError
from flowedu.tensor import Tensor, no_grad


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All numbers of the parameters, one after the other; differentiable."""
    return REGISTRY["concat"](*[p.reshape(-1) for p in parameters], axis=0)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write the values of a vector into the parameters, in order.

    Raises ShapeError for a wrong number of values.
    """
    parameters = list(parameters)
    count = sum(p.numel() for p in parameters)
    if vec.ndim != 1 or vec.numel() != count:
        raise ShapeError("vector_to_parameters: the vector does not fit", expected=f"({count},)", got=str(tuple(vec.shape)),
                         fix="a vector from parameters_to_vector of the same model")
    at = 0
    with no_grad():
        for p in parameters:
            p.copy_(vec[at:at + p.numel()].reshape(*p.shape))
            at += p.numel()
