"""Comparisons, logic, and bitwise functions, and functions of bool tensors (where, any, all)."""
from __future__ import annotations

import math
from math import prod

from flowedu.core.eager.dispatch import TensorBase
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import as_tensors, cast, default_float, is_number, operate, scalar
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, DTypeError, NotATensorError
from flowedu.tensor.dims import dims
from flowedu.tensor.elementwise.comparing import compare
from flowedu.tensor.elementwise.unary import abs

_op = REGISTRY.__getitem__
_SUM = _op("sum")


def needed(what, result, *operands):
    if result is NotImplemented:
        bad = next(x for x in operands if not (isinstance(x, TensorBase) or is_number(x)))
        raise NotATensorError(what, bad, "an operand")
    return result


def _comparing(name: str, op_name: str | None = None):
    op = _op(op_name or name)

    def f(input, other):
        return needed(name, compare(op, input, other), input, other)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"Elementwise {name}: bools."
    return f


eq, ne, lt, le, gt, ge = (_comparing(n) for n in ("eq", "ne", "lt", "le", "gt", "ge"))
not_equal, less, less_equal, greater, greater_equal = ne, lt, le, gt, ge


logical_and, logical_or, logical_xor = (_comparing(n, o) for n, o in (
    ("logical_and", "both"), ("logical_or", "either"), ("logical_xor", "differ")))


def logical_not(input):
    """True where x is 0."""
    return eq(input, False) if input.dtype is dt.bool_ else eq(input, 0)


def _bitwise(name: str, whole: str, truth: str | None):
    op, truth_op = _op(whole), truth and _op(truth)

    def f(input, other):
        pair = as_tensors(name, input, other)
        if pair is None:
            needed(name, NotImplemented, input, other)
        a, b = pair
        if a.dtype.is_floating_point or (a.dtype is dt.bool_ and truth is None):
            raise DTypeError(f"{name}: only integers{' and bools' if truth else ''} have bits", got=a.dtype.name,
                             expected="an integer dtype", fix="compare first, or convert with .long()")
        return truth_op.call((a, b), ()) if a.dtype is dt.bool_ else op.call((a, b), ())

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"Elementwise {name} of whole numbers" + (" or bools." if truth else ".")
    return f


bitwise_and, bitwise_or = _bitwise("bitwise_and", "bit_and", "both"), _bitwise("bitwise_or", "bit_or", "either")
bitwise_xor = _bitwise("bitwise_xor", "bit_xor", "differ")
bitwise_left_shift = _bitwise("bitwise_left_shift", "shift_left", None)
bitwise_right_shift = _bitwise("bitwise_right_shift", "shift_right", None)


def bitwise_not(input):
    """Return ~x: the opposite of a bool, -1 - x of an integer."""
    if input.dtype.is_floating_point:
        raise DTypeError("bitwise_not: only integers and bools have bits", expected="an integer dtype",
                         got=input.dtype.name, fix="compare first, or convert with .long()")
    return logical_not(input) if input.dtype is dt.bool_ else operate(_op("sub"), -1, input)


def isnan(input):
    """Whether each element is nan: a bool tensor."""
    return ne(input, input)


def isinf(input):
    """Whether each element is infinite, of either sign: a bool tensor."""
    return eq(abs(input), math.inf) if input.dtype.is_floating_point else ne(input, input)


def isfinite(input):
    """Whether each element is a number and not infinite: a bool tensor."""
    return lt(abs(input), math.inf) if input.dtype.is_floating_point else eq(input, input)


def isposinf(input):
    """Whether each element is inf: a bool tensor."""
    return eq(input, math.inf)


def isneginf(input):
    """Whether each element is -inf: a bool tensor."""
    return eq(input, -math.inf)


def floated(x):
    """Whole numbers as floats of the default dtype."""
    return cast(x, default_float()) if isinstance(x, TensorBase) and not x.dtype.is_floating_point else x


def isclose(input, other, *, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False):
    """|input - other| <= atol + rtol * |other|; infinities are close to themselves."""
    if input.dtype is not other.dtype:
        raise DTypeError("isclose: the dtypes differ", expected="equal dtypes", got=f"{input.dtype.name} and "
                         f"{other.dtype.name}", fix="convert one: other.to(input.dtype)")
    if rtol < 0 or atol < 0:
        raise ArgumentError("isclose: rtol and atol must be greater than or equal to zero", expected="0 or more",
                            got=f"rtol={rtol}, atol={atol}", fix="rtol=1e-5, atol=1e-8")
    close = eq(input, other)
    if equal_nan:
        close = logical_or(close, logical_and(isnan(input), isnan(other)))
    a, b = floated(input), floated(other)
    bound = abs(b) * rtol + atol
    return logical_or(close, logical_and(isfinite(b), le(abs(a - b), bound)))


def where(condition, input=None, other=None):
    """`input` where the condition holds, else `other`; shapes broadcast, dtypes are promoted; numbers are fine. The
    condition alone: its places, one vector for each axis (nonzero with as_tuple)."""
    if input is None and other is None:
        from flowedu.tensor.search import nonzero
        return nonzero(condition, as_tuple=True)
    if not isinstance(condition, TensorBase):
        if not is_number(condition):
            raise NotATensorError("where", condition, "condition")
        condition = scalar(bool(condition), dt.bool_)
    if input is None or other is None:
        raise ArgumentError("where: input and other go together", expected="where(condition, input, other) or "
                            "where(condition)", got="one of them alone", fix="where(condition, x, 0) keeps x there")
    pair = as_tensors("where", input, other)
    if pair is None:
        needed("where", NotImplemented, input, other)
    if condition.dtype.bytes != 1:
        condition = ne(condition, 0)
    return _op("where").call((condition, *pair), ())


# ---- truth
def _truths(x):
    return cast(x if x.dtype is dt.bool_ else ne(x, 0), dt.int32)


def _as_truth(y, x):
    return cast(y, dt.uint8) if x.dtype is dt.uint8 else y


def any(input, dim=None, keepdim: bool = False):
    """Whether an element is not 0."""
    return _as_truth(gt(_SUM.call((_truths(input),), (dims(dim, input.ndim, "any"), keepdim)), 0), input)


def all(input, dim=None, keepdim: bool = False):
    """Whether no element is 0."""
    axes = dims(dim, input.ndim, "all")
    return _as_truth(eq(_SUM.call((_truths(input),), (axes, keepdim)), prod(input.shape[a] for a in axes)), input)


def count_nonzero(input, dim=None):
    """How many elements are not 0, int64."""
    return _SUM.call((cast(_truths(input), dt.int64),), (dims(dim, input.ndim, "count_nonzero"), False))


def equal(input, other) -> bool:
    """Whether both have the same shape and elements."""
    return input.shape == other.shape and bool(all(eq(input, other)))


def allclose(input, other, *, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close: see isclose."""
    return bool(all(isclose(input, other, rtol=rtol, atol=atol, equal_nan=equal_nan)))
