"""Predicates and queries on arbitrary arguments: is_tensor(x), is_floating_point(x), numel(x)."""
from __future__ import annotations

from flowedu.tensor import Tensor


def is_tensor(obj: object) -> bool:
    """Whether it is a Tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Whether its dtype is a float type."""
    return input.dtype.is_floating_point


def is_nonzero(input: Tensor) -> bool:
    """bool(input), of one element."""
    return bool(input)


def numel(input: Tensor) -> int:
    """How many elements it has."""
    return input.numel()
