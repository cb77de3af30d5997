"""Gradient functions for hand-written backward passes: flow.math.gelu_grad and others."""
from __future__ import annotations

from math import prod

from flowedu import ops
from flowedu.errors import CheckError
from flowedu.oneflow04.axes import normal_axis
from flowedu.ops.front import front

_o = ops.REGISTRY


@front("GeluGrad")
def gelu_grad(x, dy):
    """dy times the slope of gelu at x."""
    return _o["gelu_grad"](dy, x)


@front("SigmoidGrad")
def sigmoid_grad(y, dy):
    """dy times the slope of the sigmoid whose result is y: dy * y * (1 - y)."""
    return dy * y * (1.0 - y)




@front("Softmax")
def softmax_grad(y, dy, axis: int | None = None):
    """The gradient of softmax's input, where y is its result and dy that one's gradient."""
    return _o["softmax_grad"](dy, y, axis=normal_axis(-1 if axis is None else axis, y.ndim, "softmax_grad"))


@front("LayerNormGrad")
def layer_norm_grad(dy, x, mean, inv_variance, begin_norm_axis: int = 1):
    """The gradient of layer_norm's input, before scale and shift. mean and inv_variance (1 / sqrt(variance + epsilon)) of
    each row: x.shape[:begin_norm_axis]."""
    begin = normal_axis(begin_norm_axis, x.ndim, "layer_norm_grad")
    one = _o["constant"](shape=x.shape[begin:], value=1.0, dtype=mean.dtype)
    return _o["layer_norm_grad"](dy, x, one, mean, inv_variance, begin_norm_axis=begin)[0]


@front("LayerNormParamGrad", "normalized_diff")
def layer_norm_param_grad(dy, norm, gamma, begin_params_axis: int = -1):
    """(dy * gamma, the gradient of beta, that of gamma), where y = norm * gamma + beta."""
    begin = normal_axis(begin_params_axis, dy.ndim, "layer_norm_param_grad")
    if prod(gamma.shape) != prod(dy.shape[begin:]):
        raise CheckError("layer_norm_param_grad: gamma does not fit", expected=f"{dy.shape[begin:]}", got=str(gamma.shape),
                         fix="begin_params_axis is the first axis that gamma has")
    rows = tuple(range(begin))
    scale = _o["reshape"](gamma, shape=dy.shape[begin:])
    return dy * scale, _o["sum"](dy, axis=rows, keepdims=False), _o["sum"](dy * norm, axis=rows, keepdims=False)


__all__ = ["gelu_grad", "layer_norm_grad", "layer_norm_param_grad", "sigmoid_grad", "softmax_grad"]
