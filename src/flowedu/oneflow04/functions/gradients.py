"""Gradient functions for hand-written backward passes: flow.math.gelu_grad and others."""
from __future__ import annotations

from math import prod

from flowedu.core.ops.reduce import sum as sum_op
from flowedu.core.ops.view import constant, reshape
from flowedu.errors import CheckError
from flowedu.oneflow04.functions.axes import normal_axis
from flowedu.ops.front import front
from flowedu.ops.functions import gelu_grad as gelu_grad_op
from flowedu.ops.norm import layer_norm_grad as layer_norm_grad_op
from flowedu.ops.softmax import softmax_grad as softmax_grad_op


@front("GeluGrad")
def gelu_grad(x, dy):
    """Return the gradient of gelu.

    Args:
        x: the input of gelu.
        dy: the gradient of its result.
    """
    return gelu_grad_op(dy, x)


@front("SigmoidGrad")
def sigmoid_grad(y, dy):
    """Return the gradient of the sigmoid, `dy * y * (1 - y)`.

    Args:
        y: the result of the sigmoid.
        dy: the gradient of `y`.
    """
    return dy * y * (1.0 - y)

@front("Softmax")
def softmax_grad(y, dy, axis: int | None = None):
    """Return the gradient of the input of softmax.

    Args:
        y: the result of softmax.
        dy: the gradient of `y`.
        axis: the axis of softmax; None is the last.
    """
    return softmax_grad_op(dy, y, axis=normal_axis(-1 if axis is None else axis, y.ndim, "softmax_grad"))


@front("LayerNormGrad")
def layer_norm_grad(dy, x, mean, inv_variance, begin_norm_axis: int = 1):
    """Return the gradient of the input of layer_norm, before scale and shift.

    Args:
        dy: the gradient of the normalized value.
        x: the input.
        mean: the mean of each row, of shape x.shape[:begin_norm_axis].
        inv_variance: 1 / sqrt(variance + epsilon) of each row, in the same shape.
        begin_norm_axis: the first normalized axis.
    """
    begin = normal_axis(begin_norm_axis, x.ndim, "layer_norm_grad")
    one = constant(shape=x.shape[begin:], value=1.0, dtype=mean.dtype)
    return layer_norm_grad_op(dy, x, one, mean, inv_variance, begin_norm_axis=begin)[0]


@front("LayerNormParamGrad", "normalized_diff")
def layer_norm_param_grad(dy, norm, gamma, begin_params_axis: int = -1):
    """Return the gradients of the normalized value, beta, and gamma, where y = norm * gamma + beta.

    Args:
        dy: the gradient of y.
        norm: the normalized value.
        gamma: the scale, of shape dy.shape[begin_params_axis:].
        begin_params_axis: the first axis that gamma and beta have.

    Returns: (dy * gamma, gradient of beta, gradient of gamma).
    """
    begin = normal_axis(begin_params_axis, dy.ndim, "layer_norm_param_grad")
    if prod(gamma.shape) != prod(dy.shape[begin:]):
        raise CheckError("layer_norm_param_grad: gamma does not fit", expected=f"{dy.shape[begin:]}",
                         got=str(gamma.shape), fix="begin_params_axis is the first axis that gamma has")
    rows = tuple(range(begin))
    scale = reshape(gamma, shape=dy.shape[begin:])
    return dy * scale, sum_op(dy, axis=rows, keepdims=False), sum_op(dy * norm, axis=rows, keepdims=False)


__all__ = ["gelu_grad", "layer_norm_grad", "layer_norm_param_grad", "sigmoid_grad", "softmax_grad"]
