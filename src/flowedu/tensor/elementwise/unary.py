"""Elementwise functions of one tensor, such as exp, abs, and round.

Signatures are PyTorch's. Functions of real numbers convert integers to the default float dtype first.
"""
from __future__ import annotations

import builtins
import math
from collections.abc import Callable

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.define import REGISTRY, Op
from flowedu.core.ops.promote import cast, default_float, run
from flowedu.core.values import dtype as dt
from flowedu.errors import DTypeError, NotATensorError
from flowedu.tensor.devices.memory_format import clone  # noqa: F401  (one of this family)
from flowedu.tensor.dtypes.promotion import check_tensor, in_float

_op = REGISTRY.__getitem__
_ANY_ARGS = "Args:\n    input: tensor of any shape."
_REAL_ARGS = f"{_ANY_ARGS} Integers and bools are converted to the default float dtype."
_MEANINGS = {
    "exp2": "2 to the power x", "log": "the natural logarithm of x", "log2": "the logarithm of x to base 2",
    "log10": "the logarithm of x to base 10", "log1p": "log(1 + x), accurate near 0",
    "expm1": "exp(x) - 1, accurate near 0", "sqrt": "the square root of x", "rsqrt": "1 / sqrt(x)",
    "reciprocal": "1 / x", "sin": "the sine of x, in radians", "cos": "the cosine of x, in radians",
    "tan": "the tangent of x, in radians", "asin": "the arc sine of x, in radians",
    "acos": "the arc cosine of x, in radians", "atan": "the arc tangent of x, in radians",
    "sinh": "the hyperbolic sine of x", "cosh": "the hyperbolic cosine of x",
    "tanh": "the hyperbolic tangent of x",
    "asinh": "the inverse hyperbolic sine of x", "acosh": "the inverse hyperbolic cosine of x",
    "atanh": "the inverse hyperbolic tangent of x", "erf": "the error function of x",
    "erfc": "1 - erf(x), accurate for large x", "erfinv": "the inverse of the error function",
    "lgamma": "log |gamma(x)|", "sigmoid": "1 / (1 + exp(-x))",
    "gelu": "x * Phi(x), where Phi is the normal distribution function", "mish": "x * tanh(softplus(x))",
    "softsign": "x / (1 + |x|)", "abs": "the absolute value of x", "sign": "-1, 0, or 1, the sign of x",
    "square": "x * x", "relu": "max(x, 0)", "neg": "-x", "floor": "the largest integer that is at most x",
    "ceil": "the smallest integer that is at least x", "trunc": "x without its fraction",
    "round": "x rounded to the nearest integer; halves go to the even one"}


def _describe(name: str, arguments: str) -> str:
    """Return the docstring of an elementwise function of x."""
    return f"Return {_MEANINGS.get(name, name + '(x)')}, for each element.\n\n{arguments}"


def _define(name: str, kinds: tuple[dt.dtype, ...], arguments: str,
            convert: Callable[[Op, Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return a function that calls the op `name`, or convert(op, x) if the dtype is not one of `kinds`."""
    op = _op(name)
    call = op.call

    def f(input: Tensor) -> Tensor:
        try:
            kind = input.dtype
        except AttributeError:
            raise NotATensorError(name, input) from None
        return call((input,), ()) if kind in kinds else convert(op, input)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = _describe(name, arguments)
    f.quick = op, len(kinds)  # type: ignore[attr-defined]  # an attribute of a function
    return f


def _real(name: str) -> Callable[[Tensor], Tensor]:
    """Return a function of real numbers that calls one op."""
    return _define(name, dt.FLOATS, _REAL_ARGS, in_float)


def _any(name: str) -> Callable[[Tensor], Tensor]:
    """Return a function of any numeric dtype that calls one op."""
    return _define(name, dt.NUMBERS, _ANY_ARGS, lambda op, x: run(op, (x,)))


# ---- one input, real numbers
exp, expm1, exp2 = _real("exp"), _real("expm1"), _real("exp2")
log, log1p = _real("log"), _real("log1p")
log2, log10 = _real("log2"), _real("log10")
sqrt, rsqrt, reciprocal = _real("sqrt"), _real("rsqrt"), _real("reciprocal")
sin, cos, tan = _real("sin"), _real("cos"), _real("tan")
asin, acos, atan = _real("asin"), _real("acos"), _real("atan")
sinh, cosh, tanh = _real("sinh"), _real("cosh"), _real("tanh")
asinh, acosh, atanh = _real("asinh"), _real("acosh"), _real("atanh")
arcsin, arccos, arctan = asin, acos, atan
arcsinh, arccosh, arctanh = asinh, acosh, atanh
erf, erfc, erfinv = _real("erf"), _real("erfc"), _real("erfinv")
lgamma, sigmoid = _real("lgamma"), _real("sigmoid")
gelu, mish, softsign = (_real(n) for n in ("gelu", "mish", "softsign"))


def digamma(input: Tensor) -> Tensor:
    """Return the derivative of lgamma, for each element.

    Args:
        input: tensor of any shape. Integers are converted to the default float dtype.
    """
    from flowedu.ops.composed import digamma as series
    x = input if input.dtype.is_floating_point else cast(input, default_float())
    return series(x)  # type: ignore[return-value]  # a tensor for a tensor


def deg2rad(input: Tensor) -> Tensor:
    """Convert degrees to radians.

    Args:
        input: tensor of any shape.
    """
    check_tensor("deg2rad", input)
    return input * (math.pi / 180)


def rad2deg(input: Tensor) -> Tensor:
    """Convert radians to degrees.

    Args:
        input: tensor of any shape.
    """
    check_tensor("rad2deg", input)
    return input * (180 / math.pi)


# ---- one input, any numbers
abs, sign = _any("abs"), _any("sign")
_square, relu = _any("square"), _any("relu")
absolute, sgn = abs, sign
_neg = _any("neg")


def square(input: Tensor) -> Tensor:
    """Return x * x for each element; bools give int64.

    Args:
        input: tensor of any shape.
    """
    return _square(input if input.dtype is not dt.bool_ else cast(input, dt.int64))


def neg(input: Tensor) -> Tensor:
    """Return -x for each element.

    Args:
        input: tensor of any shape and any dtype except bool.
    """
    if input.dtype is dt.bool_:
        raise DTypeError("neg: the - of a bool tensor is not defined", expected="numbers", got="bool",
                         fix="~x (flow.logical_not) negates a condition")
    return _neg(input)


negative = neg


def positive(input: Tensor) -> Tensor:
    """Return the tensor itself.

    Args:
        input: tensor of any shape.
    """
    check_tensor("positive", input)
    return input


def _rounding(name: str) -> Callable[[Tensor], Tensor]:
    op = _op(name)

    def f(input: Tensor) -> Tensor:
        if not input.dtype.is_floating_point:            # integers need no rounding
            return clone(input)
        return run(op, (input,))

    f.__name__ = f.__qualname__ = name
    f.__doc__ = _describe(name, f"{_ANY_ARGS} Integers are returned unchanged.")
    return f


floor, ceil = _rounding("floor"), _rounding("ceil")
trunc, _round = _rounding("trunc"), _rounding("round")
fix = trunc


def round(input: Tensor, decimals: int = 0) -> Tensor:
    """Round each element to a number of decimals; halves go to the even digit.

    Args:
        input: tensor of any shape.
        decimals: number of digits after the point; negative numbers round to tens, hundreds, and so on.
    """
    if not decimals:
        return _round(input)
    if builtins.abs(decimals) > 300:                     # no float has, or every float has, such digits
        return clone(input) if decimals > 0 else input * 0
    scale = 10.0 ** builtins.abs(decimals)
    return _round(input * scale) / scale if decimals > 0 else _round(input / scale) * scale


def frac(input: Tensor) -> Tensor:
    """Return x - trunc(x) for each element.

    Args:
        input: tensor of any shape.
    """
    return input - trunc(input)
