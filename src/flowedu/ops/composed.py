"""Elementwise ops composed of other ops, with one formula and one fused kernel each.

Their gradients are derived from the formulas. The module also defines lgamma and its derivative, digamma.
"""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from flowedu.core.ops.define import Op
from flowedu.core.ops.elementwise import (
    abs,
    equal,
    less,
    log,
    logical_and,
    logical_xor,
    maximum,
    minimum,
    neg,
    reciprocal,
    relu,
    relu_grad,
    round,
    sigmoid,
    softplus,
    square,
    tanh,
    unary,
    where,
)
from flowedu.core.ops.promote import cast, scalar
from flowedu.core.ops.record import Laws, Split
from flowedu.core.values import dtype as dt
from flowedu.ops.formula import elementwise
from flowedu.ops.functions import as_input, tan
from flowedu.ops.types import AnyTensor

log_sigmoid = elementwise("log_sigmoid(x) -> y", formula=lambda x: neg(softplus(neg(x))))
relu6 = elementwise("relu6(x) -> y", Split(rising=["x"]), formula=lambda x: minimum(relu(x), 6.0),
                    grad={"x": lambda dy, y: relu6_grad(dy, y)})
relu6_grad = elementwise("relu6_grad(dy, y) -> dx", Split(linear=["dy"]),
                         formula=lambda dy, y: relu_grad(relu_grad(dy, y), 6.0 - y),
                         grad={"dy": lambda ddx, y: relu6_grad(ddx, y), "y": lambda ddx: None})
hardsigmoid = elementwise("hardsigmoid(x) -> y", formula=lambda x: relu6(x + 3) / 6)


# ---- activations x * gate(x): their limits at infinity are numbers, where inf * 0 would be NaN
_FAR = 1e4                                     # where sigmoid is 0 or 1 in every float type


def gated(name: str, gate: Callable, slope: Callable) -> Op:
    """Define x * gate(x) and the op of its gradient.

    Args:
        name: name of the op and of its formula in _kernels/ops/more_formulas.h.
        gate: function of a NumPy array that is 0 at -inf.
        slope: derivative of x * gate(x), written in ops. Its argument is x, clipped to [-1e4, 1e4].
    """
    grad = elementwise(f"{name}_grad(dy, x) -> dx", Split(linear=["dy"]),
                       formula=lambda dy, x: dy * slope(minimum(maximum(x, -_FAR), _FAR)))
    return unary(name, lambda x: np.maximum(x, -_FAR) * gate(np.maximum(x, -_FAR)), lambda dy, x: grad(dy, x))


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x)))


def _sigmoid_slope(x: AnyTensor, rate: float = 1.0) -> AnyTensor:
    s = sigmoid(x if rate == 1 else x * rate)
    return s * ((1 - s) * (x * rate) + 1)


_TANH_RATE, _CUBE = 2 * math.sqrt(2 / math.pi), 0.044715


def _gelu_tanh_slope(x: AnyTensor) -> AnyTensor:
    cube = square(x) * _CUBE
    s = sigmoid((x + x * cube) * _TANH_RATE)
    return s * ((1 - s) * x * ((cube * 3 + 1) * _TANH_RATE) + 1)


def _mish_slope(x: AnyTensor) -> AnyTensor:
    t = tanh(softplus(x))
    return x * sigmoid(x) * (1 - square(t)) + t


def _hardswish_slope(x: AnyTensor) -> AnyTensor:
    gate = relu6(x + 3)
    return (gate + relu6_grad(x, gate)) / 6


swish = gated("swish", _sigmoid, _sigmoid_slope)
quick_gelu = gated("quick_gelu", lambda x: _sigmoid(1.702 * x), lambda x: _sigmoid_slope(x, 1.702))
gelu_tanh = gated("gelu_tanh", lambda x: _sigmoid((x + x * x * x * _CUBE) * _TANH_RATE), _gelu_tanh_slope)
mish = gated("mish", lambda x: np.tanh(np.logaddexp(x, np.zeros_like(x))), _mish_slope)
hardswish = gated("hardswish", lambda x: np.clip(x + 3, 0, 6) / 6, _hardswish_slope)
softsign = unary("softsign", lambda x: np.where(np.abs(x) > 1e30, np.sign(x), x / (1 + np.abs(x))),
                 lambda dy, x: dy * square(reciprocal(abs(x) + 1)))

_lgamma = np.vectorize(lambda x: math.inf if x <= 0 and x % 1 == 0 else math.lgamma(x), otypes=[np.float64])

lgamma = unary("lgamma", as_input(_lgamma), lambda dy, x: dy * digamma(x), domain="positive")

# ---- digamma = lgamma', for x of 0.5 or more: by digamma(x + 1) = digamma(x) + 1 / x eight steps up, where
# the series log x - 1/2x - sum of B2k / 2k x^2k is exact to rounding. Of eight reciprocals: 1/x + 1/(x+7) =
# (2x+7) / x(x+7), ...
def _bernoulli(w: AnyTensor) -> AnyTensor:
    y = w * (1 / 12)
    for c in (-691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):
        y = w * (y + c)
    return y


def _four(u: AnyTensor) -> AnyTensor:
    return reciprocal(u) + reciprocal(u + 6) + reciprocal(u + 10) + reciprocal(u + 12)


digamma_series = elementwise("digamma_series(x) -> y", Laws(domain={"x": "above_one"}),
                             formula=lambda x: log(x) - reciprocal(x) * 0.5 - _bernoulli(
                                 square(reciprocal(x))), doc="digamma(x) for x of 8 or more.")
digamma_steps = elementwise("digamma_steps(x) -> y", Laws(domain={"x": "positive"}),
                            formula=lambda x: (x + (x + 7)) * _four(x * (x + 7)),
                            doc="digamma(x + 8) - digamma(x).")


def digamma(x: AnyTensor) -> AnyTensor:
    """Return the derivative of lgamma, which can be differentiated again. It is NaN at -1, -2, ...

    Values below 0.5 follow from digamma(x) = digamma(1 - x) - pi / tan(pi x). The angle is measured from the
    nearest integer. This difference is exact, so results near a pole remain precise. The argument of
    digamma_steps is limited to 1e18, where its result is negligible, because squares of larger numbers would
    overflow. 16-bit floats are computed in float32.
    """
    if x.dtype in dt.HALVES:
        return cast(digamma(cast(x, dt.float32)), x.dtype)

    def number(value: float) -> AnyTensor:
        return scalar(value, x.dtype)

    mirrored = less(x, 0.5)
    up = where(mirrored, 1 - x, x)
    y = digamma_series(up + 8) - digamma_steps(minimum(up, number(1e18)))
    angle, zero = (x - round(x)) * math.pi, equal(x, 0.0)
    pole = logical_and(mirrored, equal(angle, 0.0))
    reflected = logical_xor(mirrored, pole)
    y = y - where(reflected, math.pi / tan(where(reflected, angle, number(0.25))), number(0.0))
    at_pole = where(zero, neg(reciprocal(where(zero, x, number(1.0)))), number(math.nan))
    return where(pole, at_pole, y)
