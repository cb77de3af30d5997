"""Elementwise functions of one tensor: exp, abs, round ...

Signatures are PyTorch's. Whole numbers given to a function of real numbers become floats of the default dtype first.
"""
from __future__ import annotations

import builtins
import math

from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import cast, default_float, run
from flowedu.core.values import dtype as dt
from flowedu.errors import DTypeError, NotATensorError
from flowedu.tensor.memory_format import clone  # noqa: F401  (one of this family)
from flowedu.tensor.promotion import check_tensor, in_float

_op = REGISTRY.__getitem__


# ---- one input, real numbers
def _real(name: str, op_name: str | None = None):
    op = _op(op_name or name)
    call = op.call

    def f(input):
        try:
            kind = input.dtype
        except AttributeError:
            raise NotATensorError(name, input) from None
        return call((input,), ()) if kind in dt.FLOATS else in_float(op, input)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"{op.doc or 'Elementwise ' + name + '.'} Whole numbers become floats."
    f.quick = op, 2
    return f


exp, expm1, exp2, log, log1p, log2, log10, sqrt, rsqrt, reciprocal = (_real(n) for n in (
    "exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "reciprocal"))
sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, asinh, acosh, atanh = (_real(n) for n in (
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"))
arcsin, arccos, arctan, arcsinh, arccosh, arctanh = asin, acos, atan, asinh, acosh, atanh
erf, erfc, erfinv, lgamma, sigmoid = (_real(n) for n in ("erf", "erfc", "erfinv", "lgamma", "sigmoid"))
gelu, mish, softsign = (_real(n) for n in ("gelu", "mish", "softsign"))


def digamma(input):
    """The derivative of lgamma."""
    from flowedu.ops.composed import digamma as series
    return series(input if input.dtype.is_floating_point else cast(input, default_float()))


def deg2rad(input):
    """Degrees as radians."""
    check_tensor("deg2rad", input)
    return input * (math.pi / 180)


def rad2deg(input):
    """Radians as degrees."""
    check_tensor("rad2deg", input)
    return input * (180 / math.pi)


# ---- one input, any numbers
def _any(name: str, op_name: str | None = None):
    op = _op(op_name or name)
    call = op.call

    def f(input):
        try:
            kind = input.dtype
        except AttributeError:
            raise NotATensorError(name, input) from None
        return call((input,), ()) if kind in dt.NUMBERS else run(op, (input,))

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"Elementwise {name}."
    f.quick = op, 4
    return f


abs, sign, _square, relu = _any("abs"), _any("sign"), _any("square"), _any("relu")
absolute, sgn = abs, sign
_neg = _any("neg")


def square(input):
    """x * x; of bools 0 and 1, int64."""
    return _square(input if input.dtype is not dt.bool_ else cast(input, dt.int64))


def neg(input):
    """-x. Not of bools."""
    if input.dtype is dt.bool_:
        raise DTypeError("neg: the - of a bool tensor is not defined", expected="numbers", got="bool",
                         fix="~x (flow.logical_not) negates a condition")
    return _neg(input)


negative = neg


def positive(input):
    """x itself."""
    check_tensor("positive", input)
    return input


def _rounding(name: str):
    op = _op(name)

    def f(input):
        if not input.dtype.is_floating_point:            # whole already
            return clone(input)
        return run(op, (input,))

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"Elementwise {name}; whole numbers stay as they are."
    return f


floor, ceil, trunc, _round = _rounding("floor"), _rounding("ceil"), _rounding("trunc"), _rounding("round")
fix = trunc


def round(input, decimals: int = 0):
    """To the nearest number with that many decimals; halves go to the even one."""
    if not decimals:
        return _round(input)
    if builtins.abs(decimals) > 300:                     # all floats have those digits, or none
        return clone(input) if decimals > 0 else input * 0
    scale = 10.0 ** builtins.abs(decimals)
    return _round(input * scale) / scale if decimals > 0 else _round(input / scale) * scale


def frac(input):
    """x - trunc(x)."""
    return input - trunc(input)
