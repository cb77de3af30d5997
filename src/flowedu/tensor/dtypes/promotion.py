"""Public functions of type promotion: the dtype of a result, and the allowed casts.

The rules are in core/ops/promote.py. The module also contains helpers for functions that are composed of
several ops on 16-bit floats and integers, and checks that a value is a tensor.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from flowedu.core.eager.dispatch import TensorBase
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.define import Op
from flowedu.core.ops.promote import cast, category, default_float, promote, run
from flowedu.core.values import dtype as dt
from flowedu.errors import NotATensorError, ShapeError

F = TypeVar("F", bound=Callable)


def promote_types(type1: dt.dtype, type2: dt.dtype) -> dt.dtype:
    """Return the dtype to which two dtypes are promoted, such as float16 for int32 and float16.

    Args:
        type1: dtype.
        type2: dtype.
    """
    return promote(type1, type2)


def can_cast(from_: dt.dtype, to: dt.dtype) -> bool:
    """Return True if an in-place op may write a result of dtype `from_` into `to`.

    A higher category (bool, integer, float) cannot be written into a lower one.

    Args:
        from_: dtype.
        to: dtype.
    """
    return category(from_) <= category(to)


def check_rank(what: str, x: Any, least: int, name: str = "input") -> None:
    """Raise ShapeError if tensor `x` has fewer than `least` axes."""
    check_tensor(what, x, name)
    if x.ndim < least:
        raise ShapeError(f"{what}: {name} has too few axes", expected=f"{least} or more",
                         got=str(tuple(x.shape)), fix="reshape it")


def check_tensor(what: str, x: object, name: str = "input") -> None:
    """Raise NotATensorError (a TypeError) if x is not a tensor."""
    if not isinstance(x, TensorBase):
        raise NotATensorError(what, x, name)


def wide(f: F) -> F:
    """Decorate a reduction of several ops, so that it computes 16-bit floats in float32 and rounds once.

    In 16 bits, an intermediate sum or square may overflow.
    """
    @functools.wraps(f)
    def g(input: Tensor, *args: Any, dtype: dt.dtype | None = None, **options: Any) -> Any:
        kind = dtype or getattr(input, "dtype", None)
        more = {} if dtype is None else {"dtype": dtype}
        if kind not in dt.HALVES:
            return f(input, *args, **options, **more)
        y = f(cast(cast(input, kind), dt.float32), *args, **options)
        return tuple([cast(t, kind) for t in y]) if isinstance(y, tuple) else cast(y, kind)

    wrapped: Any = g            # functools.wraps returns another type
    return wrapped


def in_float(op: Op, x: Tensor, attrs: tuple = ()) -> Tensor:
    """Return op(x) for an op that requires floats; integers are converted to floats first."""
    if not x.dtype.is_floating_point:
        x = cast(x, default_float())
    return run(op, (x,), attrs)
