"""Elementwise functions of two tensors, or of a tensor and a number, such as add, pow, clamp, and logaddexp.

Shapes broadcast, and dtypes are promoted (core/ops/promote.py).
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from flowedu.core.eager.dispatch import TensorBase
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import cast, operate, result_type
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError
from flowedu.tensor.arguments.types import Number
from flowedu.tensor.elementwise.logic import (
    eq,
    floated,
    gt,
    isnan,
    isneginf,
    isposinf,
    lt,
    needed,
    where,
)
from flowedu.tensor.elementwise.unary import (
    abs,
    clone,
    exp,
    exp2,
    log1p,
    neg,
    reciprocal,
    rsqrt,
    sqrt,
    square,
    trunc,
)

_op = REGISTRY.__getitem__
_ARGS = """Args:
    input: tensor or number.
    other: tensor or number. The shapes broadcast, and the dtypes are promoted."""
_MEANINGS = {
    "mul": "input * other", "floor_divide": "input / other, rounded down",
    "remainder": "the remainder of input / other, with the sign of other",
    "fmod": "the remainder of input / other, with the sign of input",
    "true_divide": "input / other, as a float",
    "add": "input + other", "sub": "input - other", "pow": "input to the power of other",
    "maximum": "the larger element, or NaN if one is NaN",
    "minimum": "the smaller element, or NaN if one is NaN",
    "atan2": "the angle of the point (other, input), in radians",
    "xlogy": "input * log(other), and 0 where input is 0",
    "copysign": "|input| with the sign of other", "hypot": "sqrt(input^2 + other^2), without overflow"}


def _arithmetic(name: str, op_name: str | None = None, real: bool = False) -> Callable[..., Tensor]:
    """Return a function of two operands that calls one op. `real` converts integers to floats first."""
    op = _op(op_name or name)

    def f(input: Tensor | Number, other: Tensor | Number) -> Tensor:
        if real and not _float_inputs(input, other):
            input, other = floated(input), floated(other)
        return needed(name, operate(op, input, other), input, other)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"Return {_MEANINGS[name]}, for each element.\n\n{_ARGS}"
    f.quick = op, 2  # type: ignore[attr-defined]  # an attribute of a function
    return f


def _float_inputs(a: Any, b: Any) -> bool:
    return result_type(a, b).is_floating_point


mul, floor_divide, remainder = (_arithmetic("mul"), _arithmetic("floor_divide", "floordiv"),
                                _arithmetic("remainder", "mod"))
fmod, true_divide = _arithmetic("fmod"), _arithmetic("true_divide", "div")
_add, _sub, _pow = _arithmetic("add"), _arithmetic("sub"), _arithmetic("pow")
maximum, minimum = _arithmetic("maximum"), _arithmetic("minimum")
atan2, xlogy = _arithmetic("atan2", real=True), _arithmetic("xlogy", real=True)
copysign, hypot = _arithmetic("copysign", real=True), _arithmetic("hypot", real=True)
multiply, arctan2 = mul, atan2


def add(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """Return input + alpha * other.

    `flow.add(a, b, c)` and `flow.add([a, b, c])` return the sum of all tensors.

    Args:
        input: tensor or number.
        other: tensor or number; the shapes broadcast, the dtypes are promoted.
        alpha: factor of other.
    """
    return _add(input, other if alpha == 1 else _times(input, other, alpha))


def _times(input: Tensor | Number, other: Tensor | Number, alpha: Number) -> Tensor | Number:
    """Return alpha * other in the dtype of both operands."""
    kind = result_type(input, other)
    if not isinstance(other, TensorBase):
        return other * alpha
    return mul(cast(other, kind), bool(alpha) if kind is dt.bool_ else alpha)


def sub(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """Return input - alpha * other.

    Args:
        input: tensor or number.
        other: tensor or number; the shapes broadcast, the dtypes are promoted.
        alpha: factor of other.
    """
    return _sub(input, other if alpha == 1 else _times(input, other, alpha))


def rsub(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """Return other - alpha * input.

    Args:
        input: tensor or number.
        other: tensor or number; the shapes broadcast, the dtypes are promoted.
        alpha: factor of input.
    """
    return _sub(other, input if alpha == 1 else input * alpha)


subtract = sub
add.quick, sub.quick = _add.quick, _sub.quick  # type: ignore[attr-defined]  # attributes of functions


def div(input: Tensor | Number, other: Tensor | Number, *, rounding_mode: str | None = None) -> Tensor:
    """Return input / other.

    Args:
        input: tensor or number.
        other: tensor or number; the shapes broadcast, the dtypes are promoted.
        rounding_mode: "floor" or "trunc" rounds the quotient, and integers stay integers; default: no
            rounding.
    """
    if rounding_mode is None:
        return true_divide(input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode != "trunc":
        raise ArgumentError("div: unknown rounding_mode", expected='None, "floor" or "trunc"',
                            got=repr(rounding_mode), fix="leave it out for the exact quotient")
    if result_type(input, other).is_floating_point:
        none = eq(other, 0) if isinstance(other, TensorBase) else None
        if none is None:
            return trunc(true_divide(input, other))
        # Finite slope, so that 0 * slope is 0.
        there = true_divide(input, where(none, 1, other))
        return trunc(where(none, true_divide(_fixed(input), _fixed(other)), there))
    return floor_divide(input - fmod(input, other), other)


def _fixed(x: Any) -> Any:
    """Return x without a gradient."""
    return x.detach() if hasattr(x, "detach") else x


divide = div
div.quick = true_divide.quick  # type: ignore[attr-defined]  # an attribute of a function


def pow(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """Return input ** exponent.

    Integers to an integer power stay integers. If the exponent is a tensor, an integer to a negative power is
    0, except for the bases 1 and -1. A negative Python int as the exponent of integers raises an error.

    Args:
        input: tensor or number.
        exponent: tensor or number; the shapes broadcast, the dtypes are promoted.
    """
    exponent = exponent.item() if isinstance(exponent, np.generic) else exponent
    if type(exponent) in (int, float) and isinstance(input, TensorBase):
        whole = not input.dtype.is_floating_point
        if whole and type(exponent) is int and exponent < 0:
            raise ArgumentError("pow: a negative power of integers", got=f"exponent {exponent} of "
                                f"{input.dtype.name}", expected="an exponent of 0 or more, or floats",
                                fix=f"input.float() ** {exponent}")
        if exponent == 2:
            return square(input) if not whole or type(exponent) is int else square(floated(input))
        if not whole and exponent == 1:
            return clone(input)
        if not whole and exponent == 0:                  # the derivative is 0 everywhere, also at 0
            return where(True, 1.0, input)
        if exponent == 0.5:
            return sqrt(input)
        if exponent == -0.5 and not whole:
            return rsqrt(input)
        if exponent == -1 and not whole:
            return reciprocal(input)
        # (float32: the kernel of pow does it)
        if exponent == 3 and input.dtype is dt.float64:
            return square(input) * input
    return _pow(input, exponent)


def float_power(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """Return input ** exponent in float64.

    Args:
        input: tensor or number.
        exponent: tensor or number; the shapes broadcast.
    """
    return _pow(*(cast(x, dt.float64) if isinstance(x, TensorBase) else x for x in (input, exponent)))


def alike(*tensors: Any) -> list:
    """Cast the tensors to their common dtype."""
    kind = result_type(*tensors)
    return [cast(x, kind) if isinstance(x, TensorBase) else x for x in tensors]


def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor | Number, *, value: Number = 1) -> Tensor:
    """Return input + value * tensor1 * tensor2.

    Args:
        input: tensor.
        tensor1: tensor; the shapes broadcast.
        tensor2: tensor or number.
        value: factor.
    """
    input, tensor1, tensor2 = alike(input, tensor1, tensor2)
    product = tensor1 * tensor2
    return input + (product if value == 1 else product * value)


def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor | Number, *, value: Number = 1) -> Tensor:
    """Return input + value * tensor1 / tensor2.

    Args:
        input: tensor.
        tensor1: tensor; the shapes broadcast.
        tensor2: tensor or number.
        value: factor.
    """
    input, tensor1, tensor2 = alike(input, tensor1, tensor2)
    ratio = tensor1 / tensor2
    return input + (ratio if value == 1 else ratio * value)


def lerp(input: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor:
    """Return the linear interpolation input + weight * (end - input).

    Args:
        input: value at weight 0.
        end: value at weight 1; the shapes broadcast.
        weight: number or tensor.
    """
    return input + (end - input) * weight


def logaddexp(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Return log(exp(input) + exp(other)), without overflow.

    Args:
        input: tensor or number.
        other: tensor or number; the shapes broadcast, the dtypes are promoted.
    """
    return _logadd(floated(input), floated(other), exp, log1p)


def logaddexp2(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Return log2(2^input + 2^other), without overflow.

    Args:
        input: tensor or number.
        other: tensor or number; the shapes broadcast, the dtypes are promoted.
    """
    return _logadd(floated(input), floated(other), exp2, lambda x: log1p(x) / math.log(2))


def _logadd(a: Tensor, b: Tensor, power: Callable, log_: Callable) -> Tensor:
    second, gap = gt(b, a), b - a
    gap = where(eq(a, b), where(eq(abs(a), math.inf), 0.0, gap), gap)       # inf - inf is nan
    return where(second, b, a) + log_(power(where(second, neg(gap), gap)))  # also smooth where a = b


def heaviside(input: Tensor, values: Tensor | Number) -> Tensor:
    """Return 0 for negative elements, 1 for positive ones, and `values` for 0.

    Args:
        input: tensor.
        values: tensor or number; the shapes broadcast.
    """
    return where(eq(input, 0), values, cast(gt(input, 0), input.dtype))


def ldexp(input: Tensor | Number, other: Tensor) -> Tensor:
    """Return input * 2^other.

    Args:
        input: tensor or number.
        other: tensor or number; the shapes broadcast, the dtypes are promoted.
    """
    factor = exp2(floated(other))
    whole = isinstance(input, TensorBase) and not input.dtype.is_floating_point
    return input * (factor if whole else cast(factor, result_type(input, other)))


# ---- bounds
def maximum_number(input: Tensor | Number, number: Tensor | Number) -> Tensor:
    """Return the larger of x and a number or tensor, or x if they are equal, in their common dtype."""
    return needed("clamp_min", operate(_op("clamp_min"), input, number), input, number)


def minimum_number(input: Tensor | Number, number: Tensor | Number) -> Tensor:
    """Return the smaller of x and a number or tensor, or x if they are equal, in their common dtype."""
    return needed("clamp_max", operate(_op("clamp_max"), input, number), input, number)


def fmax(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Return the larger of two elements; if one of them is NaN, return the other.

    Args:
        input: tensor or number.
        other: tensor or number; the shapes broadcast, the dtypes are promoted.
    """
    return where(isnan(input), other, where(isnan(other), input, maximum_number(input, other)))


def fmin(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Return the smaller of two elements; if one of them is NaN, return the other.

    Args:
        input: tensor or number.
        other: tensor or number; the shapes broadcast, the dtypes are promoted.
    """
    return where(isnan(input), other, where(isnan(other), input, minimum_number(input, other)))


def clamp(input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Tensor:
    """Limit each element to [min, max].

    Args:
        input: tensor of any shape.
        min: number or tensor; default: None, no lower limit.
        max: number or tensor; default: None, no upper limit.

    Note:
        Elements equal to a limit pass their gradient to the input.
    """
    if min is None and max is None:
        raise ArgumentError("clamp: no bound is given", expected="min, max or both", got="None",
                            fix="x.clamp(0, 1)")
    x = input if min is None else maximum_number(input, min)
    return x if max is None else minimum_number(x, max)


clip = clamp


def clamp_min(input: Tensor, min: Tensor | Number) -> Tensor:
    """Limit each element to at least `min`.

    Args:
        input: tensor of any shape.
        min: number or tensor.
    """
    return clamp(input, min=min)


def clamp_max(input: Tensor, max: Tensor | Number) -> Tensor:
    """Limit each element to at most `max`.

    Args:
        input: tensor of any shape.
        max: number or tensor.
    """
    return clamp(input, max=max)


def nan_to_num(input: Tensor, nan: float = 0.0, posinf: float | None = None,
               neginf: float | None = None) -> Tensor:
    """Replace NaN and infinities by numbers.

    Args:
        input: tensor of any shape.
        nan: replacement of NaN.
        posinf: replacement of infinity; default: the largest finite number of the dtype.
        neginf: replacement of -infinity; default: the most negative finite number of the dtype.
    """
    if not input.dtype.is_floating_point:
        return clone(input)
    top = float(np.finfo(input.dtype.numpy).max) if input.dtype.numpy is not None else 3.3895313892515355e38
    x = where(isnan(input), nan, input)
    x = where(isposinf(x), top if posinf is None else posinf, x)
    return where(isneginf(x), -top if neginf is None else neginf, x)


def signbit(input: Tensor) -> Tensor:
    """Return True for negative elements, including -0.0.

    Args:
        input: tensor of any shape.
    """
    return lt(copysign(1.0, input), 0) if input.dtype.is_floating_point else lt(input, 0)
