"""Predicates and queries on arbitrary arguments: is_tensor(x), is_floating_point(x), numel(x)."""
from __future__ import annotations

from flowedu.tensor import Tensor


def is_tensor(obj: object) -> bool:
    """Return True for a Tensor.

    Args:
        obj: any object.
    """
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Return True if the dtype is floating.

    Args:
        input: tensor.
    """
    return input.dtype.is_floating_point


def is_nonzero(input: Tensor) -> bool:
    """Return True if the only element is not 0.

    Args:
        input: tensor with one element.
    """
    return bool(input)


def numel(input: Tensor) -> int:
    """Return the number of elements.

    Args:
        input: tensor.
    """
    return input.numel()
