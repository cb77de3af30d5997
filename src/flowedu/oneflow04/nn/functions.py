"""Functions of flow.nn in OneFlow 0.4: bias, dropout, softmax, losses, activations, normalization."""
from __future__ import annotations

from flowedu import ops
from flowedu.core.layers.context import current, gen_seed
from flowedu.core.ops.define import Op
from flowedu.core.ops.reduce import sum as sum_op
from flowedu.core.ops.view import constant, reshape
from flowedu.errors import ArgumentError, CheckError, UnsupportedError
from flowedu.oneflow04.functions.axes import normal_axis
from flowedu.oneflow04.math import mean_of, reduced_axes, relu, variance_of
from flowedu.ops import composed
from flowedu.ops.activations import elu as elu_op
from flowedu.ops.activations import leaky_relu as leaky_relu_op
from flowedu.ops.bias import bias_add as bias_add_op
from flowedu.ops.bounds import hardtanh as hardtanh_op
from flowedu.ops.front import front
from flowedu.ops.norm import batch_norm_infer
from flowedu.ops.norm import layer_norm as layer_norm_op
from flowedu.ops.random import dropout as dropout_op
from flowedu.ops.random import random_mask_like
from flowedu.ops.softmax import log_softmax, sigmoid_cross_entropy, sparse_softmax_cross_entropy
from flowedu.ops.softmax import softmax as softmax_op

_e = ops.elementwise


@front("BiasAdd")
def bias_add(value, bias, data_format: str | None = None):
    """Add a bias along the channel axis.

    Args:
        value: a blob or tensor.
        bias: a vector with one element per channel.
        data_format: a layout NC... (also None) has its channels in axis 1. A layout N...C has them in the
            last axis.
    """
    if data_format is None or data_format.upper().startswith("NC"):
        axis = 1
    elif data_format.upper().startswith("N") and data_format.upper().endswith("C"):
        axis = value.ndim - 1
    else:
        raise ArgumentError("bias_add: unknown data_format", expected="NC... or N...C", got=repr(data_format),
                            fix="leave it out: the bias is then added along axis 1")
    return bias_add_op(value, bias, axis=axis)


def dropout(x, rate: float, noise_shape=None, seed: int | None = None, name: str | None = None):
    """Set elements to 0 with probability `rate` and scale all others by 1/(1-rate), in train jobs.

    Args:
        x: a blob or tensor. A predict job, and rate 0, return it unchanged.
        rate: the probability, in [0, 1).
        noise_shape: must be None.
        seed: the seed of the masks, the same in every session; None derives it from flow.random.seed. A seed
            requires a `name`, as in OneFlow 0.4.
        name: the name of the op.
    """
    if not (isinstance(rate, (int, float)) and 0.0 <= rate < 1.0):
        raise CheckError("dropout: rate is not a probability of dropping", expected="0 <= rate < 1",
                         got=repr(rate), fix="rate=0.5 drops half; a probability p of keeping is rate=1-p")
    if noise_shape is not None:
        raise UnsupportedError("dropout: noise_shape is not supported", expected="None", got=str(noise_shape),
                               fix="leave it out: every element is dropped on its own")
    if seed is not None and not name:
        raise CheckError("dropout: a seed needs a name", expected="name=... with seed=...",
                         got=f"seed={seed}, name={name!r}",
                         fix='dropout(x, 0.5, seed=1, name="dropout1"), or flow.random.seed(1) for '
                             "everything")
    if rate == 0.0 or not current().training:
        return x
    return _dropout(x, rate, gen_seed() if seed is None else seed, name=name)


@front("Dropout")
def _dropout(x, rate, seed):
    mask = random_mask_like(x, rate=float(rate), seed=seed, draw=0)
    return dropout_op(x, mask, scale=1.0 / (1.0 - rate))


@front("Softmax")
def softmax(logits, axis: int | None = None):
    """Compute exp(x) / sum(exp(x)) along an axis.

    Args:
        logits: a blob with two or more axes.
        axis: the axis; None is the last.
    """
    if logits.ndim < 2:
        raise CheckError("softmax: logits needs two axes or more", expected="rank >= 2",
                         got=str(logits.shape), fix="reshape to (1, n)")
    return softmax_op(logits, axis=normal_axis(-1 if axis is None else axis, logits.ndim, "softmax"))


@front("LogSoftmax")
def logsoftmax(logits, axis: int | None = None):
    """Compute log(softmax(x)) without underflow.

    Args:
        logits: a blob or tensor.
        axis: the axis; None is the last.
    """
    return log_softmax(logits, axis=normal_axis(-1 if axis is None else axis, logits.ndim, "logsoftmax"))


@front("SparseSoftmaxCrossEntropy", "out_0")
def sparse_softmax_cross_entropy_with_logits(labels, logits):
    """Compute -log softmax(logits)[label] of each sample.

    Args:
        labels: class indices of shape logits.shape[:-1], or with a final axis of 1. They are the first
            argument.
        logits: a blob of shape (..., classes).
    """
    if (labels.ndim == logits.ndim and labels.shape[-1:] == (1,) and not labels.dtype.is_floating_point
            and labels.shape[:-1] == logits.shape[:-1]):
        labels = reshape(labels, shape=labels.shape[:-1])
    return sparse_softmax_cross_entropy(labels, logits)[0]


@front("SoftmaxCrossEntropy")
def softmax_cross_entropy_with_logits(labels, logits):
    """Compute -sum(labels * log softmax(logits)) over the last axis.

    Args:
        labels: probabilities in the shape and dtype of `logits`.
        logits: a blob of shape (..., classes).
    """
    if labels.shape != logits.shape or labels.dtype is not logits.dtype:
        raise CheckError("softmax_cross_entropy_with_logits: labels and logits differ",
                         expected="one shape and dtype", got=f"{labels.spec} and {logits.spec}",
                         fix="integer labels: sparse_softmax_cross_entropy_with_logits; else flow.cast or "
                         "flow.one_hot")
    rows = log_softmax(logits, axis=logits.ndim - 1)
    return _e.neg(sum_op(labels * rows, axis=(logits.ndim - 1,), keepdims=False))


@front("SigmoidCrossEntropy")
def sigmoid_cross_entropy_with_logits(labels, logits):
    """Compute the binary cross-entropy of sigmoid(logits) elementwise.

    Args:
        labels: floats in the shape of `logits`.
        logits: a blob or tensor.
    """
    return sigmoid_cross_entropy(labels, logits)


@front("LeakyRelu")
def leaky_relu(x, alpha: float = 0.2):
    """Return x where x > 0, and alpha * x elsewhere.

    Args:
        x: a blob or tensor.
        alpha: the slope below 0.
    """
    return leaky_relu_op(x, float(alpha))


@front("Elu")
def elu(x, alpha: float = 1.0):
    """Return x where x > 0, and alpha * (exp(x) - 1) elsewhere.

    Args:
        x: a blob or tensor.
        alpha: the factor below 0.
    """
    return elu_op(x, float(alpha), 1.0)


@front("Hardtanh")
def hardtanh(x, min_val: float = -1.0, max_val: float = 1.0):
    """Clip elements to [min_val, max_val].

    Args:
        x: a blob or tensor.
        min_val: the smallest result.
        max_val: the largest result.
    """
    return hardtanh_op(x, float(min_val), float(max_val))


@front("Swish")
def swish(x, beta: float = 1.0):
    """Return x * sigmoid(beta * x).

    Args:
        x: a blob or tensor.
        beta: the factor inside the sigmoid.
    """
    return composed.swish(x) if beta == 1.0 else x * _e.sigmoid(x * float(beta))


def _activation(name: str, op: Op, prefix: str):
    @front(prefix)
    def f(x):
        return op(x)

    f.__name__, f.__doc__ = (name, f"Compute {name} elementwise.\n\n    Args:\n        x: a blob or "
                             f"tensor.\n    ")
    return f


relu6 = _activation("relu6", composed.relu6, "Relu6")
mish = _activation("mish", composed.mish, "Mish")
hardsigmoid = _activation("hardsigmoid", composed.hardsigmoid, "HardSigmoid")
hardswish = _activation("hardswish", composed.hardswish, "HardSwish")


@front("Moments")
def moments(x, axes, keepdims: bool = False):
    """Return the mean and the biased variance over axes.

    Args:
        x: a blob or tensor.
        axes: an int or a list of ints; None reduces over all axes.
        keepdims: keep the reduced axes with size 1.

    Returns: (mean, variance).
    """
    listed = reduced_axes("moments", axes, x.ndim)
    mean, var = mean_of(x, listed, True), variance_of(x, listed, True)
    if keepdims:
        return mean, var
    shape = tuple(n for i, n in enumerate(x.shape) if i not in listed) or (1,)
    return reshape(mean, shape=shape), reshape(var, shape=shape)


@front("BatchNormalization")
def batch_normalization(x, mean, variance, offset=None, scale=None, variance_epsilon: float = 1e-5,
                        axis: int = 1):
    """Return (x - mean) / sqrt(variance + variance_epsilon) * scale + offset, along an axis.

    Args:
        x: a blob or tensor.
        mean: a vector with one element per channel.
        variance: a vector with one element per channel.
        offset: a vector with one element per channel; None is 0.
        scale: a vector with one element per channel; None is 1.
        variance_epsilon: a constant added to the variance.
        axis: the axis of the channels.
    """
    axis = normal_axis(axis, x.ndim, "batch_normalization")
    scale = constant(shape=mean.shape, value=1.0, dtype=mean.dtype) if scale is None else scale
    offset = constant(shape=mean.shape, value=0.0, dtype=mean.dtype) if offset is None else offset
    return batch_norm_infer(x, scale, offset, mean, variance, axis=axis, epsilon=float(variance_epsilon))


@front("LayerNorm")
def layer_norm(inputs, gamma=None, beta=None, begin_norm_axis: int = 1, begin_params_axis: int = -1,
               epsilon: float = 1e-5):
    """Normalize over the axes from `begin_norm_axis` on, then multiply by gamma and add beta.

    Args:
        inputs: a blob or tensor.
        gamma: a blob of shape inputs.shape[begin_params_axis:]; None is 1.
        beta: a blob of the same shape; None is 0.
        begin_norm_axis: the first normalized axis.
        begin_params_axis: the first axis of gamma and beta.
        epsilon: a constant added to the variance.
    """
    norm = normal_axis(begin_norm_axis, inputs.ndim, "layer_norm")
    params = normal_axis(begin_params_axis, inputs.ndim, "layer_norm")
    if params == norm and gamma is not None and beta is not None:
        return layer_norm_op(inputs, gamma, beta, begin_norm_axis=norm, epsilon=float(epsilon))[0]
    shape = inputs.shape[norm:]
    one = constant(shape=shape, value=1.0, dtype=inputs.dtype)
    zero = constant(shape=shape, value=0.0, dtype=inputs.dtype)
    y = layer_norm_op(inputs, one, zero, begin_norm_axis=norm, epsilon=float(epsilon))[0]
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


__all__ = ["batch_normalization", "bias_add", "dropout", "elu", "hardsigmoid", "hardswish", "hardtanh",
           "layer_norm", "leaky_relu", "logsoftmax", "mish", "moments", "relu", "relu6",
           "sigmoid_cross_entropy_with_logits", "softmax", "softmax_cross_entropy_with_logits",
           "sparse_softmax_cross_entropy_with_logits", "swish"]
