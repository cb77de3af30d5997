"""Helpers shared by the functions of flow.nn.functional: reductions, per-axis values, and checks."""
from __future__ import annotations

import operator
from collections.abc import Sequence

from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import scalar
from flowedu.errors import ArgumentError, DTypeError
from flowedu.tensor.promotion import check_tensor

_SUM, _MUL, _RESHAPE = REGISTRY["sum"], REGISTRY["mul"], REGISTRY["reshape"]
ALL_AXES = [tuple(range(n)) for n in range(9)]


def check_floats(what: str, x, name: str = "input") -> None:
    """Raise DTypeError unless x is a tensor of a floating dtype."""
    check_tensor(what, x, name)
    if not x.dtype.is_floating_point:
        raise DTypeError(f'{what}: "{what}" is not implemented for {x.dtype!r}', expected="a floating dtype",
                         got=f"{name} of {x.dtype!r}", fix=f"{name}.float()")


def total(x):
    """The sum of all elements, 0-dim."""
    return _SUM.call((x,), (ALL_AXES[x.ndim], False))


def times(x, number: float):
    """x * number."""
    return _MUL.call((x, scalar(number, x.dtype)), ())


def reduced(what: str, loss, reduction: str):
    """The losses as `reduction` says: "mean", "sum" or "none". The mean of nothing is nan."""
    if reduction == "mean":
        n = loss.numel()
        return times(total(loss), 1.0 / n if n else float("nan"))
    if reduction == "sum":
        return total(loss)
    if reduction == "none":
        return loss
    raise ArgumentError(f"{what}: {reduction} is not a valid value for reduction", expected='"mean", "sum" or "none"',
                        got=repr(reduction), fix='leave it out: "mean" is the default')


def ints(value: int | Sequence[int], n: int, what: str, name: str, least: int = 0) -> tuple[int, ...]:
    """An int for all of n axes, or a sequence of one int or n. Raises ArgumentError (a ValueError and RuntimeError)."""
    try:
        if isinstance(value, (tuple, list)):
            found = tuple([operator.index(v) for v in value])
            found = found * n if len(found) == 1 else found
        else:
            found = (operator.index(value),) * n
    except TypeError:
        found = ()
    if len(found) != n or min(found, default=least) < least:
        raise ArgumentError(f"{what}: {name} is not right", expected=f"an int of {least} or more"
                            + (f", or {n} of them" if n > 1 else ""), got=repr(value), fix=f"{name}={max(least, 1)}, say")
    return found


def reshaped(x, shape: tuple[int, ...]):
    """x in another shape with as many elements."""
    return x if tuple(x.shape) == shape else _RESHAPE.call((x,), (shape,))
