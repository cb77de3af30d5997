"""Activation functions and others composed of simpler ones: silu, selu, softplus, logit, sinc ..."""
from __future__ import annotations

import math

from flowedu.core.ops.define import REGISTRY
from flowedu.tensor.elementwise.arithmetic import clamp, minimum_number
from flowedu.tensor.elementwise.conditions import floated, gt, le, where
from flowedu.tensor.elementwise.unary import abs, expm1, log, sin, square
from flowedu.tensor.promotion import in_float

_op = REGISTRY.__getitem__


def silu(input):
    """x * sigmoid(x)."""
    return in_float(_op("swish"), input)


def selu(input):
    """The scaled exponential linear unit."""
    below = 1.6732632423543772 * expm1(minimum_number(input, 0.0))
    return where(gt(input, 0), input, below) * 1.0507009873554805


def softplus(input, beta: float = 1.0, threshold: float = 20.0):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold."""
    y = in_float(_op("softplus"), input if beta == 1 else input * beta)
    y = y if beta == 1 else y / beta
    return y if threshold >= 20.0 else where(gt(input * beta, threshold), input, y)


def log_sigmoid(input):
    """log(sigmoid(x)), exact where sigmoid(x) underflows."""
    return in_float(_op("log_sigmoid"), input)


logsigmoid = log_sigmoid


def logit(input, eps: float | None = None):
    """log(x / (1 - x)); with eps, x is first kept inside [eps, 1 - eps]."""
    x = floated(input)                                   # 1 - x would wrap
    x = x if eps is None else clamp(x, eps, 1 - eps)
    return log(x) - log(1 - x)                           # of x / (1 - x) the slope at 0 and 1 would be inf * 0


def sinc(input):
    """sin(pi x) / (pi x); 1 at 0."""
    x = input * math.pi
    near = le(abs(x), 0.1)                               # there sin(x) / x has no exact slope, at 1e-42 none at all
    s = square(where(near, x, 0.0))
    series = 1 - s * (1 - s * (1 - s * (1 - s / 72) / 42) / 20) / 6
    return where(near, series, sin(x) / where(near, 1.0, x))


def relu6(input):
    """min(max(x, 0), 6)."""
    return in_float(_op("relu6"), input) if input.dtype.is_floating_point else clamp(input, 0, 6)
