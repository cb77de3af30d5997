"""Elementwise ops made of others: one formula each, one fused kernel each, gradients for free. And lgamma, with digamma for
its gradient."""
from __future__ import annotations

import math

import numpy as np

from flowedu.core.ops.elementwise import (
    abs,
    equal,
    floor,
    less,
    log,
    minimum,
    neg,
    reciprocal,
    relu,
    relu_grad,
    sigmoid,
    softplus,
    square,
    tanh,
    unary,
    where,
)
from flowedu.core.ops.promote import scalar
from flowedu.core.ops.record import Laws, Split
from flowedu.ops.formula import elementwise
from flowedu.ops.functions import as_input, tan

log_sigmoid = elementwise("log_sigmoid(x) -> y", formula=lambda x: neg(softplus(neg(x))))
relu6 = elementwise("relu6(x) -> y", Split(rising=["x"]), formula=lambda x: minimum(relu(x), 6.0),
                    grad={"x": lambda dy, y: relu6_grad(dy, y)})
relu6_grad = elementwise("relu6_grad(dy, y) -> dx", Split(linear=["dy"]),
                         formula=lambda dy, y: relu_grad(relu_grad(dy, y), 6.0 - y),
                         grad={"dy": lambda ddx, y: relu6_grad(ddx, y), "y": lambda ddx: None})
swish = elementwise("swish(x) -> y", formula=lambda x: x * sigmoid(x))
mish = elementwise("mish(x) -> y", formula=lambda x: x * tanh(softplus(x)))
hardsigmoid = elementwise("hardsigmoid(x) -> y", formula=lambda x: relu6(x + 3) / 6)
hardswish = elementwise("hardswish(x) -> y", formula=lambda x: x * relu6(x + 3) / 6)
softsign = elementwise("softsign(x) -> y", formula=lambda x: x / (abs(x) + 1))

_lgamma = np.vectorize(lambda x: math.inf if x <= 0 and x % 1 == 0 else math.lgamma(x), otypes=[np.float64])

lgamma = unary("lgamma", as_input(_lgamma), lambda dy, x: dy * digamma(x), domain="positive")

# ---- digamma = lgamma', for x of 0.5 or more: by digamma(x + 1) = digamma(x) + 1 / x eight steps up, where the series
# log x - 1/2x - sum of B2k / 2k x^2k is exact to rounding. Of eight reciprocals: 1/x + 1/(x+7) = (2x+7) / x(x+7), ...
def _bernoulli(w):
    y = w * (1 / 12)
    for c in (-691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):
        y = w * (y + c)
    return y


def _four(u):
    return reciprocal(u) + reciprocal(u + 6) + reciprocal(u + 10) + reciprocal(u + 12)


digamma_series = elementwise("digamma_series(x) -> y", Laws(domain={"x": "above_one"}),
                             formula=lambda x: log(x) - reciprocal(x) * 0.5 - _bernoulli(
                                 square(reciprocal(x))), doc="digamma(x) for x of 8 or more.")
digamma_steps = elementwise("digamma_steps(x) -> y", Laws(domain={"x": "positive"}),
                            formula=lambda x: (x + (x + 7)) * _four(x * (x + 7)), doc="digamma(x + 8) - digamma(x).")


def digamma(x):
    """The derivative of lgamma, with derivatives of its own. Below 0.5 by digamma(x) = digamma(1 - x) - pi / tan(pi x). nan
    at -1, -2, ..., where both sides of a pole meet."""
    number = lambda value: scalar(value, x.dtype)
    mirrored = less(x, 0.5)
    up = where(mirrored, 1 - x, x)
    y = digamma_series(up + 8) - digamma_steps(up)
    y = y - where(mirrored, math.pi / tan(where(mirrored, x, number(0.25)) * math.pi), number(0.0))
    y = where(equal(x, math.inf), x, y)
    return where(less(x, 0.0), where(equal(floor(x), x), number(math.nan), y), y)
