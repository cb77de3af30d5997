"""Helpers shared by the functions of flow.nn.functional: reductions, per-axis values, and checks."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeVar

from flowedu.core.ops import elementwise, reduce, view
from flowedu.core.ops.promote import scalar
from flowedu.core.ops.value import Value
from flowedu.errors import ArgumentError, DTypeError
from flowedu.tensor import Tensor
from flowedu.tensor.dtypes.promotion import check_tensor

# ---- types of the signatures in this folder
# One int per axis, or two for (before, after).
Ints = tuple[int, ...]
# A tensor, or a value of a graph; jobs call some of the functions with these.
ValueT = TypeVar("ValueT", bound="Tensor | Value")
# The state (h,) or (h, c) of a recurrent layer, and its parameters (w_ih, w_hh, b_ih, b_hh, w_hr).
States = tuple[Tensor, ...]
Weights = tuple[Tensor, Tensor, "Tensor | None", "Tensor | None", "Tensor | None"]

# ---- helpers
# The fastest call is `op.call` on a global variable. An attribute of a module costs one lookup more, and an
# imported name a bound method, because CPython takes every imported name for a module.
_SUM, _MUL, _RESHAPE = reduce.sum, elementwise.mul, view.reshape
ALL_AXES = [tuple(range(n)) for n in range(9)]


def check_floats(what: str, x: Any, name: str = "input") -> None:
    """Raise DTypeError unless x is a tensor of a floating dtype."""
    check_tensor(what, x, name)
    if not x.dtype.is_floating_point:
        raise DTypeError(f'{what}: "{what}" is not implemented for {x.dtype!r}', expected="a floating dtype",
                         got=f"{name} of {x.dtype!r}", fix=f"{name}.float()")


def total(x: ValueT) -> ValueT:
    """Return the sum of all elements as a 0-dim tensor."""
    return _SUM.call((x,), (ALL_AXES[x.ndim], False))


def times(x: ValueT, number: float) -> ValueT:
    """Return x * number."""
    return _MUL.call((x, scalar(number, x.dtype)), ())


def reduced(what: str, loss: Tensor, reduction: str) -> Tensor:
    """Apply the reduction "mean", "sum", or "none" to the losses. The mean of an empty tensor is NaN."""
    if reduction == "mean":
        n = loss.numel()
        return times(total(loss), 1.0 / n if n else float("nan"))
    if reduction == "sum":
        return total(loss)
    if reduction == "none":
        return loss
    raise ArgumentError(f"{what}: {reduction} is not a valid value for reduction",
                        expected='"mean", "sum" or "none"',
                        got=repr(reduction), fix='leave it out: "mean" is the default')


def ints(value: int | Sequence[int], n: int, what: str, name: str, least: int = 0) -> Ints:
    """Return n ints from an int, or from a sequence of one or n ints.

    Raise ArgumentError for any other value.
    """
    try:
        if isinstance(value, (tuple, list)):
            found = tuple([operator.index(v) for v in value])
            found = found * n if len(found) == 1 else found
        else:
            found = (operator.index(value),) * n  # type: ignore[arg-type]  # another value raises TypeError
    except TypeError:
        found = ()
    if len(found) != n or min(found, default=least) < least:
        raise ArgumentError(f"{what}: {name} is not right", expected=f"an int of {least} or more"
                            + (f", or {n} of them" if n > 1 else ""), got=repr(value),
                            fix=f"{name}={max(least, 1)}, say")
    return found


def reshaped(x: ValueT, shape: Ints) -> ValueT:
    """Return x in another shape with the same number of elements."""
    return x if tuple(x.shape) == shape else _RESHAPE.call((x,), (shape,))
