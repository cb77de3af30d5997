"""Elementwise functions of two tensors, or of a tensor and a number: add, pow, clamp, logaddexp ...

Shapes broadcast; dtypes are promoted (promote.py).
"""
from __future__ import annotations

import math

import numpy as np

from flowedu.core.eager.dispatch import TensorBase
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import cast, operate, result_type
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError
from flowedu.tensor.elementwise.conditions import eq, floated, gt, isnan, isneginf, isposinf, lt, needed, where
from flowedu.tensor.elementwise.unary import abs, clone, exp, exp2, log1p, neg, reciprocal, rsqrt, sqrt, square, trunc

_op = REGISTRY.__getitem__


def _arithmetic(name: str, op_name: str | None = None, real: bool = False):
    op = _op(op_name or name)

    def f(input, other):
        if real and not _float_inputs(input, other):
            input, other = floated(input), floated(other)
        return needed(name, operate(op, input, other), input, other)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"Elementwise {name} of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."
    f.quick = op, 2
    return f


def _float_inputs(a, b) -> bool:
    return result_type(a, b).is_floating_point


mul, floor_divide, remainder = _arithmetic("mul"), _arithmetic("floor_divide", "floordiv"), _arithmetic("remainder", "mod")
fmod, true_divide = _arithmetic("fmod"), _arithmetic("true_divide", "div")
_add, _sub, _pow = _arithmetic("add"), _arithmetic("sub"), _arithmetic("pow")
maximum, minimum = _arithmetic("maximum"), _arithmetic("minimum")
atan2, xlogy, copysign, hypot = (_arithmetic(n, real=True) for n in ("atan2", "xlogy", "copysign", "hypot"))
multiply, arctan2 = mul, atan2


def add(input, other, *, alpha=1):
    """input + alpha * other. flow.add(a, b, c), or of a list: the sum of all."""
    return _add(input, other if alpha == 1 else _times(input, other, alpha))


def _times(input, other, alpha):
    """alpha * other, in the dtype of both operands."""
    kind = result_type(input, other)
    if not isinstance(other, TensorBase):
        return other * alpha
    return mul(cast(other, kind), bool(alpha) if kind is dt.bool_ else alpha)


def sub(input, other, *, alpha=1):
    """input - alpha * other."""
    return _sub(input, other if alpha == 1 else _times(input, other, alpha))


def rsub(input, other, *, alpha=1):
    """other - alpha * input."""
    return _sub(other, input if alpha == 1 else input * alpha)


subtract = sub
add.quick, sub.quick = _add.quick, _sub.quick


def div(input, other, *, rounding_mode: str | None = None):
    """Return input / other; rounding_mode "floor" or "trunc" rounds the quotient and keeps integers
    integers.
    """
    if rounding_mode is None:
        return true_divide(input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode != "trunc":
        raise ArgumentError("div: unknown rounding_mode", expected='None, "floor" or "trunc"', got=repr(rounding_mode),
                            fix="leave it out for the exact quotient")
    if result_type(input, other).is_floating_point:
        none = eq(other, 0) if isinstance(other, TensorBase) else None
        if none is None:
            return trunc(true_divide(input, other))
        there = true_divide(input, where(none, 1, other))                   # its slope is finite, and 0 times it is 0
        return trunc(where(none, true_divide(_fixed(input), _fixed(other)), there))
    return floor_divide(input - fmod(input, other), other)


def _fixed(x):
    """x without a gradient."""
    return x.detach() if hasattr(x, "detach") else x


divide = div
div.quick = true_divide.quick


def pow(input, exponent):
    """input ** exponent. Whole numbers to a whole power stay whole; a negative whole exponent gives 0 (1 and -1 apart),
    and is an error as a Python number."""
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
        if not whole and exponent == 0:                  # its derivative is 0 everywhere, also at 0
            return where(True, 1.0, input)
        if exponent == 0.5:
            return sqrt(input)
        if exponent == -0.5 and not whole:
            return rsqrt(input)
        if exponent == -1 and not whole:
            return reciprocal(input)
        if exponent == 3 and input.dtype is dt.float64:                      # (float32: the kernel of pow does it)
            return square(input) * input
    return _pow(input, exponent)


def float_power(input, exponent):
    """input ** exponent in float64; exponent: a tensor or a number."""
    return _pow(*(cast(x, dt.float64) if isinstance(x, TensorBase) else x for x in (input, exponent)))


def alike(*tensors):
    """The tensors in the dtype of all together."""
    kind = result_type(*tensors)
    return [cast(x, kind) if isinstance(x, TensorBase) else x for x in tensors]


def addcmul(input, tensor1, tensor2, *, value=1):
    """input + value * tensor1 * tensor2."""
    input, tensor1, tensor2 = alike(input, tensor1, tensor2)
    product = tensor1 * tensor2
    return input + (product if value == 1 else product * value)


def addcdiv(input, tensor1, tensor2, *, value=1):
    """input + value * tensor1 / tensor2."""
    input, tensor1, tensor2 = alike(input, tensor1, tensor2)
    ratio = tensor1 / tensor2
    return input + (ratio if value == 1 else ratio * value)


def lerp(input, end, weight):
    """input + weight * (end - input)."""
    return input + (end - input) * weight


def logaddexp(input, other):
    """log(exp(input) + exp(other)), without overflow."""
    return _logadd(floated(input), floated(other), exp, log1p)


def logaddexp2(input, other):
    """log2(2^input + 2^other)."""
    return _logadd(floated(input), floated(other), exp2, lambda x: log1p(x) / math.log(2))


def _logadd(a, b, power, log_):
    second, gap = gt(b, a), b - a
    gap = where(eq(a, b), where(eq(abs(a), math.inf), 0.0, gap), gap)       # inf - inf is nan
    return where(second, b, a) + log_(power(where(second, neg(gap), gap)))  # also smooth where a = b


def heaviside(input, values):
    """0 below 0, 1 above, `values` at 0."""
    return where(eq(input, 0), values, cast(gt(input, 0), input.dtype))


def ldexp(input, other):
    """input * 2^other."""
    factor = exp2(floated(other))
    whole = isinstance(input, TensorBase) and not input.dtype.is_floating_point
    return input * (factor if whole else cast(factor, result_type(input, other)))


# ---- bounds
def maximum_number(input, number):
    """The larger of x and a number or tensor, x where they are equal; the dtype of both."""
    return needed("clamp_min", operate(_op("clamp_min"), input, number), input, number)


def minimum_number(input, number):
    return needed("clamp_max", operate(_op("clamp_max"), input, number), input, number)


def fmax(input, other):
    """The larger of two elements; of nan and a number, the number."""
    return where(isnan(input), other, where(isnan(other), input, maximum_number(input, other)))


def fmin(input, other):
    """The smaller of two elements; of nan and a number, the number."""
    return where(isnan(input), other, where(isnan(other), input, minimum_number(input, other)))


def clamp(input, min=None, max=None):
    """x kept inside [min, max]: numbers or tensors, either may be None. On a bound the gradient is x's."""
    if min is None and max is None:
        raise ArgumentError("clamp: no bound is given", expected="min, max or both", got="None", fix="x.clamp(0, 1)")
    x = input if min is None else maximum_number(input, min)
    return x if max is None else minimum_number(x, max)


clip = clamp


def clamp_min(input, min):
    """No element below `min`, a number or a tensor."""
    return clamp(input, min=min)


def clamp_max(input, max):
    """No element above `max`, a number or a tensor."""
    return clamp(input, max=max)


def nan_to_num(input, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None):
    """NaN becomes `nan`, the infinities the largest and smallest number of the dtype, unless given."""
    if not input.dtype.is_floating_point:
        return clone(input)
    top = float(np.finfo(input.dtype.numpy).max) if input.dtype.numpy is not None else 3.3895313892515355e38
    x = where(isnan(input), nan, input)
    x = where(isposinf(x), top if posinf is None else posinf, x)
    return where(isneginf(x), -top if neginf is None else neginf, x)


def signbit(input):
    """Whether x is negative (-0.0 too)."""
    return lt(copysign(1.0, input), 0) if input.dtype.is_floating_point else lt(input, 0)
