"""More functions of real numbers: trigonometric and hyperbolic functions, erf, and gelu.

The records are defined as in core/ops/elementwise.py.
"""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from flowedu.core.ops.elementwise import equal, exp, maximum, minimum, neg, rsqrt, square, unary, where
from flowedu.core.ops.promote import scalar
from flowedu.core.ops.record import Laws, Split
from flowedu.core.ops.tiled import elementwise
from flowedu.ops.types import AnyTensor

_TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)
_DENSITY = 1 / math.sqrt(2 * math.pi)             # of the normal distribution, at 0
_erf = np.vectorize(math.erf, otypes=[np.float64])
_cdf = np.vectorize(lambda x: math.erfc(-x * math.sqrt(0.5)) / 2, otypes=[np.float64])


def as_input(f: Callable) -> Callable:
    """Return a NumPy function that keeps the dtype of its input."""
    return lambda x: f(x).astype(x.dtype)


def _not_zero(x: AnyTensor) -> AnyTensor:
    return where(equal(x, 0.0), scalar(1, x.dtype), x)


def _gelu_slope(x: np.ndarray) -> np.ndarray:
    """Return the slope of gelu, for NumPy arrays. The bell is 0 beyond 40, where inf * 0 would be NaN."""
    return _cdf(x) + np.clip(x, -40, 40) * np.exp(-x * x / 2) * _DENSITY


def _gelu_curvature(x: AnyTensor) -> AnyTensor:
    """Return the second derivative of gelu, which is also 0 beyond 40."""
    s = square(minimum(maximum(x, -40.0), 40.0))
    return (2 - s) * exp(s * -0.5) * _DENSITY


squared_difference = elementwise("squared_difference(x, y) -> z", Laws(float_only=False),
                                 tile="squared_difference",
                                 ref=lambda x, y: np.square(x - y),
                                 grad={"x": lambda dz, x, y: dz * (x - y) * 2,
                                       "y": lambda dz, x, y: dz * (y - x) * 2})
atan2 = elementwise("atan2(x, y) -> z", Laws(domain={"y": "positive"}), tile="atan2",
                    ref=lambda x, y: np.arctan2(x, y),
                    grad={"x": lambda dz, x, y: dz * y / _not_zero(square(x) + square(y)),
                          "y": lambda dz, x, y: neg(dz * x / _not_zero(square(x) + square(y)))})
reciprocal_no_nan = unary("reciprocal_no_nan", lambda x: np.where(x == 0, x, 1 / np.where(x == 0, x + 1, x)),
                          lambda dy, y: neg(dy * square(y)), domain="nonzero")
hypot = (elementwise("hypot(x, y) -> z", tile="hypot", ref=lambda x, y: np.hypot(x, y),
                     grad={"x": lambda dz, x, z: dz * (x / _not_zero(z)),
                           "y": lambda dz, y, z: dz * (y / _not_zero(z))},
                     doc="sqrt(x * x + y * y) without overflow; inf where x or y is. The slope at (0, 0) "
                     "is 0."))
tan = unary("tan", lambda x: np.tan(x), lambda dy, y: dy * (square(y) + 1), domain="unit")
asin = unary("asin", lambda x: np.arcsin(x), lambda dy, x: dy * rsqrt(1 - square(x)), domain="unit")
acos = unary("acos", lambda x: np.arccos(x), lambda dy, x: neg(dy * rsqrt(1 - square(x))), domain="unit")
atan = unary("atan", lambda x: np.arctan(x), lambda dy, x: dy / (square(x) + 1))
sinh = unary("sinh", lambda x: np.sinh(x), lambda dy, x: dy * cosh(x))
cosh = unary("cosh", lambda x: np.cosh(x), lambda dy, x: dy * sinh(x))
asinh = unary("asinh", lambda x: np.arcsinh(x), lambda dy, x: dy * rsqrt(square(x) + 1))
acosh = unary("acosh", lambda x: np.arccosh(x), lambda dy, x: dy * rsqrt(square(x) - 1), domain="above_one")
atanh = unary("atanh", lambda x: np.arctanh(x), lambda dy, x: dy / (1 - square(x)), domain="unit")
erf = unary("erf", as_input(_erf), lambda dy, x: dy * exp(neg(square(x))) * _TWO_OVER_SQRT_PI)
erfc = unary("erfc", as_input(lambda x: 1 - _erf(x)),
             lambda dy, x: dy * exp(neg(square(x))) * -_TWO_OVER_SQRT_PI)
gelu = unary("gelu", as_input(lambda x: np.maximum(x, -40) * _cdf(x)), lambda dy, x: gelu_grad(dy, x))
gelu_grad = elementwise("gelu_grad(dy, x) -> dx", Split(linear=["dy"]), tile="gelu_grad",
                        ref=lambda dy, x: (dy * _gelu_slope(x)).astype(x.dtype),
                        grad={"dy": lambda ddx, x: gelu_grad(ddx, x),
                              "x": lambda ddx, dy, x: ddx * dy * _gelu_curvature(x)},
                        doc="dy times the slope of gelu at x: cdf(x) + x * density(x) of the normal "
                        "distribution.")
