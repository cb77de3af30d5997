"""flow.layers: ops with variables. Names, defaults and shapes as in OneFlow 0.4.

Variables are called "<name>-weight", "<name>-bias" ..., where <name> is the layer's, whose default is a constant: two
unnamed dense layers in one job are an error, and layers of one name in two jobs share their variables.
"""
from __future__ import annotations

from collections.abc import Callable

from flowedu.core.layers.context import current
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, CheckError
from flowedu.oneflow04 import initializers as init
from flowedu.oneflow04.array_ops import reshape
from flowedu.oneflow04.axes import normal_axis
from flowedu.oneflow04.conv_layers import activated, conv1d, conv2d, conv3d, named, prelu, upsample_2d
from flowedu.oneflow04.distribute import AUTO, BROADCAST, split
from flowedu.oneflow04.gradients import layer_norm_grad, layer_norm_param_grad  # noqa: F401  (names of flow.layers, too)
from flowedu.oneflow04.math import add, matmul, relu
from flowedu.oneflow04.nn import functions as F
from flowedu.oneflow04.variables import get_variable
from flowedu.ops import REGISTRY
from flowedu.ops.front import front


def dense(inputs, units: int, activation: Callable | None = None, use_bias: bool = True, kernel_initializer=None,
          bias_initializer=None, kernel_regularizer=None, bias_regularizer=None, trainable: bool = True,
          name: str = "Dense", model_distribute=BROADCAST):
    """y = x @ W.T + b with W (units, features). Without kernel_initializer W is zero (OneFlow 0.4).

    Args:
        activation: a function called as activation(y, name=...).
        model_distribute: how W and b lie on several devices: flow.distribute.broadcast(), split(0), which cuts them along
            units and the result along its last axis, or auto().
    """
    if len(inputs.shape) < 2:
        raise CheckError("layers.dense: inputs needs two axes or more", expected="(batch, features)",
                         got=str(inputs.shape), fix="flow.reshape(x, [batch, -1])")
    if not isinstance(units, int) or units < 1:
        raise ArgumentError("layers.dense: units is not a number of outputs", expected="an int above 0", got=repr(units),
                            fix="dense(x, 10)")
    if not any(model_distribute is d for d in (AUTO, BROADCAST, split(0))):
        raise CheckError("layers.dense: model_distribute is unknown", got=repr(model_distribute),
                         expected="flow.distribute.auto(), broadcast() or split(0)", fix="flow.distribute.broadcast()")
    if model_distribute is split(0) and len(inputs.shape) != 2:
        raise CheckError("layers.dense: model_distribute=split(0) needs inputs with two axes", expected="(batch, features)",
                         got=str(inputs.shape), fix="flow.reshape(x, [-1, x.shape[-1]]) first")
    layout = None if model_distribute is AUTO else model_distribute
    shape = inputs.shape
    flat = reshape(inputs, [-1, shape[-1]]) if len(shape) > 2 else inputs
    weight = get_variable(named(name, "weight"), (units, shape[-1]), inputs.dtype,
                          kernel_initializer or init.constant_initializer(0), kernel_regularizer, trainable,
                          "weight", distribute=layout, reuse=False)
    y = matmul(flat, weight, transpose_b=True, name=f"{name}-matmul")
    if use_bias:
        bias = get_variable(named(name, "bias"), (units,), inputs.dtype, bias_initializer or init.constant_initializer(0),
                            bias_regularizer, trainable, "bias", distribute=layout, reuse=False)
        y = F.bias_add(y, bias, name=f"{name}-bias_add")
    y = activated(y, activation, name, "layers.dense")
    return reshape(y, [-1, *shape[1:-1], units]) if len(shape) > 2 else y        # -1: the batch may vary


@front("BatchNorm")
def _batch_norm_train(x, gamma, beta, mean, var, axis, momentum, epsilon):
    y, m, v = REGISTRY["batch_norm"](x, gamma, beta, axis=axis, epsilon=epsilon)
    for moving, batch in ((mean, m), (var, v)):
        REGISTRY["assign"](moving * momentum + batch * (1.0 - momentum), moving)
    return y


@front("BatchNorm")
def _batch_norm_eval(x, gamma, beta, mean, var, axis, epsilon):
    return REGISTRY["batch_norm_infer"](x, gamma, beta, mean, var, axis=axis, epsilon=epsilon)


def batch_normalization(inputs, axis: int = -1, momentum: float = 0.99, epsilon: float = 0.001, center: bool = True,
                        scale: bool = True, beta_initializer=None, gamma_initializer=None, beta_regularizer=None,
                        gamma_regularizer=None, moving_mean_initializer=None, moving_variance_initializer=None,
                        trainable: bool = True, training: bool = True, name: str = "BatchNorm",
                        gamma_name: str | None = None, beta_name: str | None = None, moving_mean_name: str | None = None,
                        moving_variance_name: str | None = None):
    """Batch normalisation along `axis` (for NCHW pass axis=1).

    In a predict job, and with trainable=False, the moving statistics are used. While training they are updated by
    moving = momentum * moving + (1 - momentum) * batch, with the biased variance.
    """
    axis = normal_axis(axis, len(inputs.shape), "layers.batch_normalization")
    training = training and current().training and trainable
    n = (inputs.shape[axis],)
    zeros, ones = init.constant_initializer(0), init.constant_initializer(1)

    def variable(part, override, initializer, wanted, regularizer=None, learn=trainable, value=0.0):
        if not wanted:
            from flowedu.oneflow04.array_ops import constant
            return constant(value, inputs.dtype, n)
        return get_variable(named(name, part, override), n, inputs.dtype, initializer, regularizer, learn, part,
                            reuse=False)

    gamma = variable("gamma", gamma_name, gamma_initializer or ones, scale, gamma_regularizer, value=1.0)
    beta = variable("beta", beta_name, beta_initializer or zeros, center, beta_regularizer)
    mean = variable("moving_mean", moving_mean_name, moving_mean_initializer or zeros, True, learn=False)
    var = variable("moving_variance", moving_variance_name, moving_variance_initializer or ones, True, learn=False)
    if training:
        return _batch_norm_train(inputs, gamma, beta, mean, var, axis, float(momentum), float(epsilon), name=name)
    return _batch_norm_eval(inputs, gamma, beta, mean, var, axis, float(epsilon), name=name)


def batch_normalization_add_relu(inputs, addend=None, axis: int = -1, name: str = "BatchNorm", **kwargs):
    """relu(batch_normalization(inputs) + addend)."""
    y = batch_normalization(inputs, axis, name=name, **kwargs)
    return relu(y if addend is None else add(y, addend))


def batch_normalization_relu(inputs, axis: int = -1, name: str = "BatchNorm", **kwargs):
    """relu(batch_normalization(inputs))."""
    return batch_normalization_add_relu(inputs, None, axis, name, **kwargs)


def layer_norm(inputs, center: bool = True, scale: bool = True, trainable: bool = True, begin_norm_axis: int = 1,
               begin_params_axis: int = -1, epsilon: float = 1e-5, name: str = "LayerNorm"):
    """Normalised over the axes from begin_norm_axis on; gamma and beta have shape inputs.shape[begin_params_axis:]."""
    shape = inputs.shape[normal_axis(begin_params_axis, len(inputs.shape), "layers.layer_norm"):]
    dtype = inputs.dtype if inputs.dtype is not dt.float16 else dt.float32
    beta = get_variable(named(name, "beta"), shape, dtype, init.constant_initializer(0), None, trainable, "beta",
                        reuse=False) if center else None
    gamma = get_variable(named(name, "gamma"), shape, dtype, init.constant_initializer(1), None, trainable, "gamma",
                         reuse=False) if scale else None
    return F.layer_norm(inputs, gamma, beta, begin_norm_axis, begin_params_axis, epsilon, name=name)


__all__ = ["batch_normalization", "batch_normalization_add_relu", "batch_normalization_relu", "conv1d", "conv2d", "conv3d",
           "dense", "layer_norm", "prelu", "upsample_2d"]
