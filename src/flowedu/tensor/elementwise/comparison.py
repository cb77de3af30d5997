"""Comparisons of tensors (`a == b`, `a < b` ...), exact for mixed dtypes and for Python ints of any size."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from flowedu.core.eager.tensor import Tensor, attach
from flowedu.core.ops.call import OpBase
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.elementwise import eq, ne
from flowedu.core.ops.promote import as_tensors, foreign, is_number, is_value, promote, scalar
from flowedu.core.values.dtype import FLOATS
from flowedu.tensor.arguments.types import Number

_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}        # a < b is b > a


def compare(op: OpBase, a: Any, b: Any) -> Any:
    """Compare values exactly, even if a number does not fit the dtype of the tensor.

    Return bools, or NotImplemented if an operand is neither a tensor nor a number.
    """
    if isinstance(a, Tensor):
        if isinstance(b, Tensor):
            if a.dtype is b.dtype:
                return op.call((a, b), ())
        elif (type(b) is float or type(b) is int) and a.dtype in FLOATS:
            return op.call((a, scalar(b, a.dtype)), ())
    a, b = (x.item() if isinstance(x, np.generic) or isinstance(x, np.ndarray) and not x.ndim else x
            for x in (a, b))
    if is_value(b) and is_number(a):
        return compare(REGISTRY[_MIRRORED.get(op.name, op.name)], b, a)
    whole = is_value(a) and not a.dtype.is_floating_point
    if whole and is_number(b):
        return _against(op, a, b)
    # Including 0-dim tensors.
    whole = whole and is_value(b) and not b.dtype.is_floating_point
    pair = as_tensors(op.name, a, b, promote(a.dtype, b.dtype) if whole else None)
    return NotImplemented if pair is None else op.call(pair, ())


def _against(op: OpBase, a: Tensor, number: Number) -> Tensor:
    """Compare integers with a number that may be a fraction, or out of range of their dtype."""
    name, (low, high) = op.name, a.dtype.limits
    number = number if name in _MIRRORED else bool(number)                 # otherwise an op of bools
    if low <= number <= high:
        n = math.ceil(number) if name in ("lt", "ge") else math.floor(number)
        if n == number or name not in ("eq", "ne"):
            return op.call((a, scalar(n, a.dtype)), ())
    holds = name == "ne" or number > high and name in ("lt", "le") or number < low and name in ("gt", "ge")
    return (eq if holds else ne).call((a, a), ())


def order(op: OpBase, a: Any, b: Any) -> Any:
    """Compare by <, <=, > or >=; raise an error for types without an order (== returns False for these)."""
    y = compare(op, a, b)
    return foreign(op.name, a, b) if y is NotImplemented else y


def _operator(name: str, run: Callable) -> Callable:
    op = REGISTRY[name]
    return lambda self, other: run(op, self, other)


attach(Tensor, {f"__{name}__": _operator(name, compare) for name in ("eq", "ne")})
attach(Tensor, {f"__{name}__": _operator(name, order) for name in ("lt", "le", "gt", "ge")})
