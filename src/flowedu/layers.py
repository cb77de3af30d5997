"""flow.layers: ops with variables. Names, defaults and shapes as in OneFlow 0.4.

Variables are called "<name>-weight", "<name>-bias" ..., where <name> is the layer's, whose default is a constant: two
unnamed dense layers in one job are an error, and layers of one name in two jobs share their variables.
"""
from __future__ import annotations

from collections.abc import Callable

from flowedu import initializers as init
from flowedu.array_ops import reshape
from flowedu.blob import dtype as dt
from flowedu.blob.spec import normal_axis
from flowedu.context import current
from flowedu.errors import ArgumentError, CheckError
from flowedu.frontend import front
from flowedu.math import add, matmul, relu
from flowedu.nn import functions as F
from flowedu.ops import REGISTRY
from flowedu.ops.padding import conv_ints
from flowedu.variables import get_variable


def _named(name: str, part: str, override: str | None = None) -> str:
    return override or f"{name}-{part}"


def _activated(y, activation: Callable | None, name: str, what: str):
    if activation is None:
        return y
    if not callable(activation):
        raise CheckError(f"{what}: activation is not a function", expected="a function called as f(blob, name=...)",
                         got=repr(activation), fix=f"flow.nn.{activation}" if isinstance(activation, str)
                         else "flow.nn.relu")
    return activation(y, name=f"{name}-activation")


def dense(inputs, units: int, activation: Callable | None = None, use_bias: bool = True, kernel_initializer=None,
          bias_initializer=None, kernel_regularizer=None, bias_regularizer=None, trainable: bool = True,
          name: str = "Dense", model_distribute=None):
    """y = x @ W.T + b with W (units, features). Without kernel_initializer W is zero (OneFlow 0.4).

    Args:
        activation: a function called as activation(y, name=...).
    """
    if len(inputs.shape) < 2:
        raise CheckError("layers.dense: inputs needs two axes or more", expected="(batch, features)",
                         got=str(inputs.shape), fix="flow.reshape(x, [batch, -1])")
    if not isinstance(units, int) or units < 1:
        raise ArgumentError("layers.dense: units is not a number of outputs", expected="an int above 0", got=repr(units),
                            fix="dense(x, 10)")
    shape = inputs.shape
    flat = reshape(inputs, [-1, shape[-1]]) if len(shape) > 2 else inputs
    weight = get_variable(_named(name, "weight"), (units, shape[-1]), inputs.dtype,
                          kernel_initializer or init.constant_initializer(0), kernel_regularizer, trainable,
                          "weight", reuse=False)
    y = matmul(flat, weight, transpose_b=True, name=f"{name}-matmul")
    if use_bias:
        bias = get_variable(_named(name, "bias"), (units,), inputs.dtype, bias_initializer or init.constant_initializer(0),
                            bias_regularizer, trainable, "bias", reuse=False)
        y = F.bias_add(y, bias, name=f"{name}-bias_add")
    y = _activated(y, activation, name, "layers.dense")
    return reshape(y, [*shape[:-1], units]) if len(shape) > 2 else y


def conv2d(inputs, filters: int, kernel_size=1, strides=1, padding="VALID", data_format: str = "NCHW",
           dilation_rate=None, groups: int = 1, activation: Callable | None = None, use_bias: bool = True,
           kernel_initializer=None, bias_initializer=None, kernel_regularizer=None, bias_regularizer=None,
           trainable: bool = True, name: str = "Conv2d", weight_name: str | None = None, bias_name: str | None = None):
    """2-d convolution with a variable kernel (filters, in // groups, kh, kw), for NHWC (filters, kh, kw, in)."""
    F.channels_first("layers.conv2d", data_format)
    last = data_format.upper() == "NHWC"
    kernel = conv_ints(kernel_size, "layers.conv2d: kernel_size")
    channels = inputs.shape[3 if last else 1]
    if not isinstance(groups, int) or not 0 < groups <= filters or filters % groups or channels % groups or (
            last and groups != 1):
        raise CheckError("layers.conv2d: groups does not divide the channels", got=f"groups={groups}, filters={filters}, "
                         f"channels={channels}", expected="filters and channels that groups divides"
                         + (" (1 for NHWC)" if last else ""),
                         fix="groups=1, or NCHW data and channel counts that are multiples of groups")
    shape = (filters, *kernel, channels) if last else (filters, channels // groups, *kernel)
    weight = get_variable(_named(name, "weight", weight_name), shape, inputs.dtype,
                          kernel_initializer or init.xavier_uniform_initializer(data_format), kernel_regularizer, trainable,
                          "weight", reuse=False)
    y = F.conv2d(inputs, weight, strides, padding, data_format, dilation_rate, groups, name=name)
    if use_bias:
        bias = get_variable(_named(name, "bias", bias_name), (filters,), inputs.dtype,
                            bias_initializer or init.constant_initializer(0), bias_regularizer, trainable, "bias",
                            reuse=False)
        y = F.bias_add(y, bias, data_format, name=f"{name}-bias_add")
    return _activated(y, activation, name, "layers.conv2d")


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
            from flowedu.array_ops import constant
            return constant(value, inputs.dtype, n)
        return get_variable(_named(name, part, override), n, inputs.dtype, initializer, regularizer, learn, part,
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
    beta = get_variable(_named(name, "beta"), shape, dtype, init.constant_initializer(0), None, trainable, "beta",
                        reuse=False) if center else None
    gamma = get_variable(_named(name, "gamma"), shape, dtype, init.constant_initializer(1), None, trainable, "gamma",
                         reuse=False) if scale else None
    return F.layer_norm(inputs, gamma, beta, begin_norm_axis, begin_params_axis, epsilon, name=name)
