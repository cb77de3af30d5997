"""Public functions of type promotion: the dtype of a result, and the allowed casts.

The rules are in core/ops/promote.py. Also helpers for functions composed of several ops on 16-bit floats and
integers, and the check that a value is a tensor.
"""
from __future__ import annotations

import functools

from flowedu.core.eager.dispatch import TensorBase
from flowedu.core.ops.promote import cast, category, default_float, promote, run
from flowedu.core.values import dtype as dt
from flowedu.errors import NotATensorError, ShapeError


def promote_types(type1: dt.dtype, type2: dt.dtype) -> dt.dtype:
    """The smallest dtype that holds both: promote_types(int32, float16) is float16."""
    return promote(type1, type2)


def can_cast(from_: dt.dtype, to: dt.dtype) -> bool:
    """Whether an in-place op may write a result of dtype `from_` into `to`: not from a higher category to a lower."""
    return category(from_) <= category(to)


def check_rank(what: str, x, least: int, name: str = "input") -> None:
    """Raise ShapeError unless tensor `x` has at least `least` axes."""
    check_tensor(what, x, name)
    if x.ndim < least:
        raise ShapeError(f"{what}: {name} has too few axes", expected=f"{least} or more", got=str(tuple(x.shape)),
                         fix="reshape it")


def check_tensor(what: str, x, name: str = "input") -> None:
    """Raise NotATensorError (a TypeError) unless x is a tensor."""
    if not isinstance(x, TensorBase):
        raise NotATensorError(what, x, name)


def wide(f):
    """f, a reduction made of several ops, on halves: computed in float32 and rounded once. (A sum or a square on the way
    may be more than a half holds.)"""
    @functools.wraps(f)
    def g(input, *args, dtype=None, **options):
        kind = dtype or getattr(input, "dtype", None)
        more = {} if dtype is None else {"dtype": dtype}
        if kind not in dt.HALVES:
            return f(input, *args, **options, **more)
        y = f(cast(cast(input, kind), dt.float32), *args, **options)
        return tuple([cast(t, kind) for t in y]) if isinstance(y, tuple) else cast(y, kind)

    return g


def in_float(op, x, attrs: tuple = ()):
    """Return op(x) of an op for floats; integers are converted to floats first."""
    if not x.dtype.is_floating_point:
        x = cast(x, default_float())
    return run(op, (x,), attrs)
