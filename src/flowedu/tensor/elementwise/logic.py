"""Comparisons, logic, and bitwise functions, and functions of bool tensors (where, any, all)."""
from __future__ import annotations

import math
from collections.abc import Callable
from math import prod
from typing import Any

from flowedu.core.eager.dispatch import TensorBase
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import as_tensors, cast, default_float, is_number, operate, scalar
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, DTypeError, NotATensorError
from flowedu.tensor.arguments.dims import dims
from flowedu.tensor.arguments.types import Axes, Number
from flowedu.tensor.elementwise.comparison import compare
from flowedu.tensor.elementwise.unary import abs
from flowedu.tensor.indexing.nonzero_positions import nonzero

_op = REGISTRY.__getitem__
_SUM = _op("sum")
_ARGS = """Args:
    input: tensor or number.
    other: tensor or number. The shapes broadcast."""
_MEANINGS = {
    "eq": "input == other", "ne": "input != other", "lt": "input < other", "le": "input <= other",
    "gt": "input > other", "ge": "input >= other", "logical_and": "True if both are not 0",
    "logical_or": "True if input or other is not 0", "logical_xor": "True if exactly one operand is not 0"}


def needed(what: str, result: Any, *operands: object) -> Any:
    if result is NotImplemented:
        bad = next(x for x in operands if not (isinstance(x, TensorBase) or is_number(x)))
        raise NotATensorError(what, bad, "an operand")
    return result


def _comparing(name: str, op_name: str | None = None) -> Callable[..., Tensor]:
    """Return a comparison of two operands that calls one op."""
    op = _op(op_name or name)

    def f(input: Tensor | Number, other: Tensor | Number) -> Tensor:
        return needed(name, compare(op, input, other), input, other)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"Return {_MEANINGS[name]}, as a bool for each element.\n\n{_ARGS}"
    return f


eq, ne = _comparing("eq"), _comparing("ne")
lt, le = _comparing("lt"), _comparing("le")
gt, ge = _comparing("gt"), _comparing("ge")
not_equal, less, less_equal = ne, lt, le
greater, greater_equal = gt, ge


logical_and, logical_or, logical_xor = (_comparing(n, o) for n, o in (
    ("logical_and", "both"), ("logical_or", "either"), ("logical_xor", "differ")))


def logical_not(input: Tensor) -> Tensor:
    """Return True where an element is 0.

    Args:
        input: tensor of any shape.
    """
    return eq(input, False) if input.dtype is dt.bool_ else eq(input, 0)


def _bitwise(name: str, whole: str, truth: str | None) -> Callable[..., Tensor]:
    """Return a bitwise function with the op `whole` for integers and `truth` for bools."""
    op = _op(whole)
    truth_op: Any = None if truth is None else _op(truth)

    def f(input: Tensor | Number, other: Tensor | Number) -> Tensor:
        pair: Any = as_tensors(name, input, other)
        if pair is None:
            needed(name, NotImplemented, input, other)
        a, b = pair
        if a.dtype.is_floating_point or (a.dtype is dt.bool_ and truth is None):
            raise DTypeError(f"{name}: only integers{' and bools' if truth else ''} have bits",
                             got=a.dtype.name,
                             expected="an integer dtype", fix="compare first, or convert with .long()")
        return truth_op.call((a, b), ()) if a.dtype is dt.bool_ else op.call((a, b), ())

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"Compute {name} of integers{' or bools' * (truth is not None)}, for each element.\n\n{_ARGS}"
    return f


bitwise_and, bitwise_or = (_bitwise("bitwise_and", "bit_and", "both"),
                           _bitwise("bitwise_or", "bit_or", "either"))
bitwise_xor = _bitwise("bitwise_xor", "bit_xor", "differ")
bitwise_left_shift = _bitwise("bitwise_left_shift", "shift_left", None)
bitwise_right_shift = _bitwise("bitwise_right_shift", "shift_right", None)


def bitwise_not(input: Tensor) -> Tensor:
    """Return ~x, which is the opposite of a bool, and -1 - x for an integer.

    Args:
        input: integer or bool tensor of any shape.
    """
    if input.dtype.is_floating_point:
        raise DTypeError("bitwise_not: only integers and bools have bits", expected="an integer dtype",
                         got=input.dtype.name, fix="compare first, or convert with .long()")
    return logical_not(input) if input.dtype is dt.bool_ else operate(_op("sub"), -1, input)


def isnan(input: Tensor | Number) -> Tensor:
    """Return True where an element is NaN.

    Args:
        input: tensor of any shape.
    """
    return ne(input, input)


def isinf(input: Tensor) -> Tensor:
    """Return True where an element is infinity or -infinity.

    Args:
        input: tensor of any shape.
    """
    return eq(abs(input), math.inf) if input.dtype.is_floating_point else ne(input, input)


def isfinite(input: Tensor) -> Tensor:
    """Return True where an element is neither NaN nor infinite.

    Args:
        input: tensor of any shape.
    """
    return lt(abs(input), math.inf) if input.dtype.is_floating_point else eq(input, input)


def isposinf(input: Tensor) -> Tensor:
    """Return True where an element is infinity.

    Args:
        input: tensor of any shape.
    """
    return eq(input, math.inf)


def isneginf(input: Tensor) -> Tensor:
    """Return True where an element is -infinity.

    Args:
        input: tensor of any shape.
    """
    return eq(input, -math.inf)


def floated(x: Any) -> Any:
    """Convert integers to the default float dtype."""
    return cast(x, default_float()) if isinstance(x, TensorBase) and not x.dtype.is_floating_point else x


def isclose(input: Tensor, other: Tensor, *, rtol: float = 1e-05, atol: float = 1e-08,
            equal_nan: bool = False) -> Tensor:
    """Return True where |input - other| <= atol + rtol * |other|.

    Args:
        input: tensor.
        other: tensor; the shapes broadcast.
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: if True, NaN is close to NaN. Equal infinities are always close.
    """
    if input.dtype is not other.dtype:
        raise DTypeError("isclose: the dtypes differ", expected="equal dtypes", got=f"{input.dtype.name} and "
                         f"{other.dtype.name}", fix="convert one: other.to(input.dtype)")
    if rtol < 0 or atol < 0:
        raise ArgumentError("isclose: rtol and atol must be greater than or equal to zero",
                            expected="0 or more", got=f"rtol={rtol}, atol={atol}", fix="rtol=1e-5, atol=1e-8")
    close = eq(input, other)
    if equal_nan:
        close = logical_or(close, logical_and(isnan(input), isnan(other)))
    a, b = floated(input), floated(other)
    bound = abs(b) * rtol + atol
    return logical_or(close, logical_and(isfinite(b), le(abs(a - b), bound)))


def where(condition: Tensor | bool, input: Tensor | Number | None = None,
          other: Tensor | Number | None = None) -> Any:
    """Return `input` where the condition is True, and `other` elsewhere.

    `where(condition)` returns the positions of True as one vector per axis, like nonzero with as_tuple=True.

    Args:
        condition: bool tensor.
        input: tensor or number, or None to return only positions (default). The shapes broadcast, and the
            dtypes are promoted.
        other: tensor or number, or None to return only positions (default).
    """
    if input is None and other is None:
        tested: Any = condition
        return nonzero(tested, as_tuple=True)
    if not isinstance(condition, TensorBase) and not is_number(condition):
        raise NotATensorError("where", condition, "condition")
    mask = condition if isinstance(condition, TensorBase) else scalar(bool(condition), dt.bool_)
    if input is None or other is None:
        raise ArgumentError("where: input and other go together",
                            expected="where(condition, input, other) or where(condition)",
                            got="one of them alone", fix="where(condition, x, 0) keeps x there")
    pair: Any = as_tensors("where", input, other)
    if pair is None:
        needed("where", NotImplemented, input, other)
    if mask.dtype.bytes != 1:
        mask = ne(mask, 0)
    return _op("where").call((mask, *pair), ())


# ---- reductions to bools
def _truths(x: Tensor) -> Tensor:
    return cast(x if x.dtype is dt.bool_ else ne(x, 0), dt.int32)


def _as_truth(y: Tensor, x: Tensor) -> Tensor:
    return cast(y, dt.uint8) if x.dtype is dt.uint8 else y


def any(input: Tensor, dim: Axes | None = None, keepdim: bool = False) -> Tensor:
    """Return True if at least one element is not 0.

    Args:
        input: tensor of any shape.
        dim: axis or axes to reduce; default: all.
        keepdim: keep the reduced axes, with size 1.
    """
    return _as_truth(gt(_SUM.call((_truths(input),), (dims(dim, input.ndim, "any"), keepdim)), 0), input)


def all(input: Tensor, dim: Axes | None = None, keepdim: bool = False) -> Tensor:
    """Return True if no element is 0.

    Args:
        input: tensor of any shape.
        dim: axis or axes to reduce; default: all.
        keepdim: keep the reduced axes, with size 1.
    """
    axes = dims(dim, input.ndim, "all")
    return _as_truth(eq(_SUM.call((_truths(input),), (axes, keepdim)), prod(input.shape[a] for a in axes)),
                     input)


def count_nonzero(input: Tensor, dim: Axes | None = None) -> Tensor:
    """Return the int64 number of elements that are not 0.

    Args:
        input: tensor of any shape.
        dim: axis or axes; default: all.
    """
    return _SUM.call((cast(_truths(input), dt.int64),), (dims(dim, input.ndim, "count_nonzero"), False))


def equal(input: Tensor, other: Tensor) -> bool:
    """Return True if both tensors have the same shape and elements.

    Args:
        input: tensor.
        other: tensor.
    """
    return input.shape == other.shape and bool(all(eq(input, other)))


def allclose(input: Tensor, other: Tensor, *, rtol: float = 1e-05, atol: float = 1e-08,
             equal_nan: bool = False) -> bool:
    """Return True if all elements are close; see isclose.

    Args:
        input: tensor.
        other: tensor; the shapes broadcast.
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: if True, NaN is close to NaN.
    """
    return bool(all(isclose(input, other, rtol=rtol, atol=atol, equal_nan=equal_nan)))
