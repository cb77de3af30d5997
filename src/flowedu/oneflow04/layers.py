"""Layers of flow.layers: ops with variables, with the names, defaults, and shapes of OneFlow 0.4.

Variables are called "<name>-weight", "<name>-bias", and so on. The default of `name` is a constant: two
unnamed dense layers in one job raise an error, and layers of the same name in two jobs share their variables.
"""
from __future__ import annotations

from collections.abc import Callable

from flowedu.core.layers.context import current
from flowedu.core.ops.view import assign
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, CheckError
from flowedu.oneflow04 import initializers as init
from flowedu.oneflow04.conv_layers import (
    apply_activation,
    conv1d,
    conv2d,
    conv3d,
    prelu,
    upsample_2d,
    variable_name,
)
from flowedu.oneflow04.distribute import AUTO, BROADCAST, split
from flowedu.oneflow04.functions.axes import normal_axis

# Also names of flow.layers.
from flowedu.oneflow04.functions.gradients import layer_norm_grad, layer_norm_param_grad  # noqa: F401
from flowedu.oneflow04.functions.shapes_and_constants import reshape
from flowedu.oneflow04.math import add, matmul, relu
from flowedu.oneflow04.nn import functions as F
from flowedu.oneflow04.variables import get_variable
from flowedu.ops.front import front
from flowedu.ops.norm import batch_norm, batch_norm_infer


def dense(inputs, units: int, activation: Callable | None = None, use_bias: bool = True,
          kernel_initializer=None,
          bias_initializer=None, kernel_regularizer=None, bias_regularizer=None, trainable: bool = True,
          name: str = "Dense", model_distribute=BROADCAST):
    """Compute y = x @ W.T + b, where W and b are variables.

    Args:
        inputs: a blob of shape (batch, ..., features).
        units: the number of outputs.
        activation: a function called as activation(y, name=...), or None.
        use_bias: add b.
        kernel_initializer: the initializer of W; None is zeros, as in OneFlow 0.4.
        bias_initializer: the initializer of b; None is zeros.
        kernel_regularizer: a regularizer of flow.regularizers, or None.
        bias_regularizer: a regularizer of flow.regularizers, or None.
        trainable: False excludes both variables from training.
        name: the name of the layer; the variables are "<name>-weight" and "<name>-bias".
        model_distribute: the layout of W and b on several devices: flow.distribute.broadcast(), auto(), or
            split(0), which splits them along units and the result along its last axis.

    Shape:
        - W: (units, features)
        - b: (units,)
        - result: (batch, ..., units)
    """
    if len(inputs.shape) < 2:
        raise CheckError("layers.dense: inputs needs two axes or more", expected="(batch, features)",
                         got=str(inputs.shape), fix="flow.reshape(x, [batch, -1])")
    if not isinstance(units, int) or units < 1:
        raise ArgumentError("layers.dense: units is not a number of outputs", expected="an int above 0",
                            got=repr(units), fix="dense(x, 10)")
    if not any(model_distribute is d for d in (AUTO, BROADCAST, split(0))):
        raise CheckError("layers.dense: model_distribute is unknown", got=repr(model_distribute),
                         expected="flow.distribute.auto(), broadcast() or split(0)",
                         fix="flow.distribute.broadcast()")
    if model_distribute is split(0) and len(inputs.shape) != 2:
        raise CheckError("layers.dense: model_distribute=split(0) needs inputs with two axes",
                         expected="(batch, features)",
                         got=str(inputs.shape), fix="flow.reshape(x, [-1, x.shape[-1]]) first")
    layout = None if model_distribute is AUTO else model_distribute
    shape = inputs.shape
    flat = reshape(inputs, [-1, shape[-1]]) if len(shape) > 2 else inputs
    weight = get_variable(variable_name(name, "weight"), (units, shape[-1]), inputs.dtype,
                          kernel_initializer or init.constant_initializer(0), kernel_regularizer, trainable,
                          "weight", distribute=layout, reuse=False)
    y = matmul(flat, weight, transpose_b=True, name=f"{name}-matmul")
    if use_bias:
        bias = get_variable(variable_name(name, "bias"), (units,), inputs.dtype,
                            bias_initializer or init.constant_initializer(0), bias_regularizer,
                            trainable, "bias", distribute=layout, reuse=False)
        y = F.bias_add(y, bias, name=f"{name}-bias_add")
    y = apply_activation(y, activation, name, "layers.dense")
    return reshape(y, [-1, *shape[1:-1], units]) if len(shape) > 2 else y        # -1: the batch may vary


@front("BatchNorm")
def _batch_norm_train(x, gamma, beta, mean, var, axis, momentum, epsilon):
    y, m, v = batch_norm(x, gamma, beta, axis=axis, epsilon=epsilon)
    for moving, batch in ((mean, m), (var, v)):
        assign(moving * momentum + batch * (1.0 - momentum), moving)
    return y


@front("BatchNorm")
def _batch_norm_eval(x, gamma, beta, mean, var, axis, epsilon):
    return batch_norm_infer(x, gamma, beta, mean, var, axis=axis, epsilon=epsilon)


def batch_normalization(inputs, axis: int = -1, momentum: float = 0.99, epsilon: float = 0.001,
                        center: bool = True,
                        scale: bool = True, beta_initializer=None, gamma_initializer=None,
                        beta_regularizer=None,
                        gamma_regularizer=None, moving_mean_initializer=None,
                        moving_variance_initializer=None,
                        trainable: bool = True, training: bool = True, name: str = "BatchNorm",
                        gamma_name: str | None = None, beta_name: str | None = None,
                        moving_mean_name: str | None = None, moving_variance_name: str | None = None):
    """Normalize over all axes except `axis`, then scale by gamma and shift by beta.

    A train job normalizes with the statistics of the batch, and updates the moving statistics by
    moving = momentum * moving + (1 - momentum) * batch, with the biased variance. A predict job, or a layer
    with trainable=False or training=False, normalizes with the moving statistics.

    Args:
        inputs: a blob.
        axis: the axis of the channels; 1 for NCHW.
        momentum: the factor of the old moving statistics.
        epsilon: a constant added to the variance.
        center: add beta.
        scale: multiply by gamma.
        beta_initializer: the initializer of beta; None is zeros.
        gamma_initializer: the initializer of gamma; None is ones.
        beta_regularizer: a regularizer of flow.regularizers, or None.
        gamma_regularizer: a regularizer of flow.regularizers, or None.
        moving_mean_initializer: the initializer of the moving mean; None is zeros.
        moving_variance_initializer: the initializer of the moving variance; None is ones.
        trainable: False excludes gamma and beta from training.
        training: False uses the moving statistics in a train job.
        name: the name of the layer; the variables are "<name>-gamma", "<name>-beta", "<name>-moving_mean",
            and "<name>-moving_variance".
        gamma_name: another name of gamma, or None.
        beta_name: another name of beta, or None.
        moving_mean_name: another name of the moving mean, or None.
        moving_variance_name: another name of the moving variance, or None.
    """
    axis = normal_axis(axis, len(inputs.shape), "layers.batch_normalization")
    training = training and current().training and trainable
    n = (inputs.shape[axis],)
    zeros, ones = init.constant_initializer(0), init.constant_initializer(1)

    def variable(part, override, initializer, wanted, regularizer=None, learn=trainable, value=0.0):
        if not wanted:
            from flowedu.oneflow04.functions.shapes_and_constants import constant
            return constant(value, inputs.dtype, n)
        return get_variable(variable_name(name, part, override), n, inputs.dtype, initializer, regularizer,
                            learn, part, reuse=False)

    gamma = variable("gamma", gamma_name, gamma_initializer or ones, scale, gamma_regularizer, value=1.0)
    beta = variable("beta", beta_name, beta_initializer or zeros, center, beta_regularizer)
    mean = variable("moving_mean", moving_mean_name, moving_mean_initializer or zeros, True, learn=False)
    var = variable("moving_variance", moving_variance_name, moving_variance_initializer or ones, True,
                   learn=False)
    if training:
        return _batch_norm_train(inputs, gamma, beta, mean, var, axis, float(momentum), float(epsilon),
                                 name=name)
    return _batch_norm_eval(inputs, gamma, beta, mean, var, axis, float(epsilon), name=name)


def batch_normalization_add_relu(inputs, addend=None, axis: int = -1, name: str = "BatchNorm", **kwargs):
    """Return relu(batch_normalization(inputs) + addend).

    Args:
        inputs: a blob.
        addend: a blob of the same shape, or None.
        axis: the axis of the channels; 1 for NCHW.
        name: the name of the layer.
        **kwargs: other arguments of batch_normalization.
    """
    y = batch_normalization(inputs, axis, name=name, **kwargs)
    return relu(y if addend is None else add(y, addend))


def batch_normalization_relu(inputs, axis: int = -1, name: str = "BatchNorm", **kwargs):
    """Return relu(batch_normalization(inputs)).

    Args:
        inputs: a blob.
        axis: the axis of the channels; 1 for NCHW.
        name: the name of the layer.
        **kwargs: other arguments of batch_normalization.
    """
    return batch_normalization_add_relu(inputs, None, axis, name, **kwargs)


def layer_norm(inputs, center: bool = True, scale: bool = True, trainable: bool = True,
               begin_norm_axis: int = 1,
               begin_params_axis: int = -1, epsilon: float = 1e-5, name: str = "LayerNorm"):
    """Normalize over the axes from `begin_norm_axis` on, then scale by gamma and shift by beta.

    Args:
        inputs: a blob.
        center: add beta, the variable "<name>-beta".
        scale: multiply by gamma, the variable "<name>-gamma".
        trainable: False excludes both variables from training.
        begin_norm_axis: the first normalized axis.
        begin_params_axis: the first axis of gamma and beta, which have the shape
            inputs.shape[begin_params_axis:].
        epsilon: a constant added to the variance.
        name: the name of the layer.
    """
    shape = inputs.shape[normal_axis(begin_params_axis, len(inputs.shape), "layers.layer_norm"):]
    dtype = inputs.dtype if inputs.dtype is not dt.float16 else dt.float32
    beta = get_variable(variable_name(name, "beta"), shape, dtype, init.constant_initializer(0), None,
                        trainable, "beta", reuse=False) if center else None
    gamma = get_variable(variable_name(name, "gamma"), shape, dtype, init.constant_initializer(1), None,
                         trainable, "gamma", reuse=False) if scale else None
    return F.layer_norm(inputs, gamma, beta, begin_norm_axis, begin_params_axis, epsilon, name=name)


__all__ = ["batch_normalization", "batch_normalization_add_relu", "batch_normalization_relu", "conv1d",
           "conv2d", "conv3d", "dense", "layer_norm", "prelu", "upsample_2d"]
