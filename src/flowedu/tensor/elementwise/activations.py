"""Activations and other functions composed of simpler ones, such as silu, selu, softplus, logit, and sinc."""
from __future__ import annotations

import math

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.define import REGISTRY
from flowedu.tensor.dtypes.promotion import in_float
from flowedu.tensor.elementwise.arithmetic import clamp, minimum_number
from flowedu.tensor.elementwise.logic import floated, gt, le, where
from flowedu.tensor.elementwise.unary import abs, expm1, log, sin, square

_op = REGISTRY.__getitem__


def silu(input: Tensor) -> Tensor:
    """Return x * sigmoid(x) for each element.

    Args:
        input: tensor of any shape.
    """
    return in_float(_op("swish"), input)


def selu(input: Tensor) -> Tensor:
    """Return the scaled exponential linear unit of each element; see nn.functional.selu.

    Args:
        input: tensor of any shape.
    """
    below = 1.6732632423543772 * expm1(minimum_number(input, 0.0))
    return where(gt(input, 0), input, below) * 1.0507009873554805


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Return log(1 + exp(beta * x)) / beta for each element.

    Args:
        input: tensor of any shape.
        beta: sharpness of the bend.
        threshold: x itself is returned where beta * x exceeds this value.
    """
    y = in_float(_op("softplus"), input if beta == 1 else input * beta)
    y = y if beta == 1 else y / beta
    return y if threshold >= 20.0 else where(gt(input * beta, threshold), input, y)


def log_sigmoid(input: Tensor) -> Tensor:
    """Return log(sigmoid(x)) for each element, without underflow.

    Args:
        input: tensor of any shape.
    """
    return in_float(_op("log_sigmoid"), input)


logsigmoid = log_sigmoid


def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """Return log(x / (1 - x)) for each element.

    Args:
        input: tensor of any shape.
        eps: x is first limited to [eps, 1 - eps]; default: no limit.
    """
    x = floated(input)                                   # 1 - x would wrap
    x = x if eps is None else clamp(x, eps, 1 - eps)
    # The slope of x / (1 - x) at 0 and 1 would be inf * 0.
    return log(x) - log(1 - x)


def sinc(input: Tensor) -> Tensor:
    """Return sin(pi x) / (pi x) for each element, and 1 at 0.

    Args:
        input: tensor of any shape.
    """
    x = input * math.pi
    near = le(abs(x), 0.1)                               # sin(x) / x has no accurate slope near 0
    s = square(where(near, x, 0.0))
    series = 1 - s * (1 - s * (1 - s * (1 - s / 72) / 42) / 20) / 6
    return where(near, series, sin(x) / where(near, 1.0, x))


def relu6(input: Tensor) -> Tensor:
    """Return min(max(x, 0), 6) for each element.

    Args:
        input: tensor of any shape.
    """
    return in_float(_op("relu6"), input) if input.dtype.is_floating_point else clamp(input, 0, 6)
