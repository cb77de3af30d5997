"""flow.nn.*: bias, dropout, softmax and losses, activations, normalisation, with OneFlow 0.4's names and rules."""
from __future__ import annotations

from flowedu import ops
from flowedu.core.layers.context import current, gen_seed
from flowedu.errors import ArgumentError, CheckError, UnsupportedError
from flowedu.oneflow04.axes import normal_axis
from flowedu.oneflow04.math import mean_of, reduced_axes, relu, variance_of
from flowedu.ops.front import front

_o = ops.REGISTRY
_e = ops.elementwise


@front("BiasAdd")
def bias_add(value, bias, data_format: str | None = None):
    """value + bias along the channel axis: 1 for None and NC..., the last for N...C."""
    if data_format is None or data_format.upper().startswith("NC"):
        axis = 1
    elif data_format.upper().startswith("N") and data_format.upper().endswith("C"):
        axis = value.ndim - 1
    else:
        raise ArgumentError("bias_add: unknown data_format", expected="NC... or N...C", got=repr(data_format),
                            fix="leave it out: the bias is then added along axis 1")
    return _o["bias_add"](value, bias, axis=axis)


def dropout(x, rate: float, noise_shape=None, seed: int | None = None, name: str | None = None):
    """Each element is dropped with probability `rate` and the rest scaled by 1/(1-rate), while training.

    In a predict job, and for rate 0, x itself comes back. A `seed` makes the masks the same in every session; it asks for
    a `name`, as in OneFlow 0.4.
    """
    if not (isinstance(rate, (int, float)) and 0.0 <= rate < 1.0):
        raise CheckError("dropout: rate is not a probability of dropping", expected="0 <= rate < 1", got=repr(rate),
                         fix="rate=0.5 drops half; a probability p of keeping is rate=1-p")
    if noise_shape is not None:
        raise UnsupportedError("dropout: noise_shape is not supported", expected="None", got=str(noise_shape),
                               fix="leave it out: every element is dropped on its own")
    if seed is not None and not name:
        raise CheckError("dropout: a seed needs a name", expected="name=... with seed=...",
                         got=f"seed={seed}, name={name!r}",
                         fix='dropout(x, 0.5, seed=1, name="dropout1"), or flow.random.seed(1) for everything')
    if rate == 0.0 or not current().training:
        return x
    return _dropout(x, rate, gen_seed() if seed is None else seed, name=name)


@front("Dropout")
def _dropout(x, rate, seed):
    mask = _o["random_mask_like"](x, rate=float(rate), seed=seed, draw=0)
    return _o["dropout"](x, mask, scale=1.0 / (1.0 - rate))


@front("Softmax")
def softmax(logits, axis: int | None = None):
    """exp(x) / sum(exp(x)) along `axis` (default: the last)."""
    if logits.ndim < 2:
        raise CheckError("softmax: logits needs two axes or more", expected="rank >= 2", got=str(logits.shape),
                         fix="reshape to (1, n)")
    return _o["softmax"](logits, axis=normal_axis(-1 if axis is None else axis, logits.ndim, "softmax"))


@front("LogSoftmax")
def logsoftmax(logits, axis: int | None = None):
    """log(softmax(x)), computed without underflow."""
    return _o["log_softmax"](logits, axis=normal_axis(-1 if axis is None else axis, logits.ndim, "logsoftmax"))


@front("SparseSoftmaxCrossEntropy", "out_0")
def sparse_softmax_cross_entropy_with_logits(labels, logits):
    """Per-sample -log softmax(logits)[label]. labels FIRST: integers of shape logits.shape[:-1] (or with a final 1)."""
    if (labels.ndim == logits.ndim and labels.shape[-1:] == (1,) and not labels.dtype.is_floating_point
            and labels.shape[:-1] == logits.shape[:-1]):
        labels = _o["reshape"](labels, shape=labels.shape[:-1])
    return _o["sparse_softmax_cross_entropy"](labels, logits)[0]


@front("SoftmaxCrossEntropy")
def softmax_cross_entropy_with_logits(labels, logits):
    """Per-sample -sum(labels * log softmax(logits)) over the last axis; labels are probabilities."""
    if labels.shape != logits.shape or labels.dtype is not logits.dtype:
        raise CheckError("softmax_cross_entropy_with_logits: labels and logits differ", expected="one shape and dtype",
                         got=f"{labels.spec} and {logits.spec}",
                         fix="integer labels: sparse_softmax_cross_entropy_with_logits; else flow.cast or flow.one_hot")
    rows = _o["log_softmax"](logits, axis=logits.ndim - 1)
    return _e.neg(_o["sum"](labels * rows, axis=(logits.ndim - 1,), keepdims=False))


@front("SigmoidCrossEntropy")
def sigmoid_cross_entropy_with_logits(labels, logits):
    """Elementwise binary cross-entropy of sigmoid(logits) against float labels."""
    return _o["sigmoid_cross_entropy"](labels, logits)


@front("LeakyRelu")
def leaky_relu(x, alpha: float = 0.2):
    """x where x > 0, alpha * x elsewhere."""
    return _o["leaky_relu"](x, float(alpha))


@front("Elu")
def elu(x, alpha: float = 1.0):
    """x where x > 0, alpha * (exp(x) - 1) elsewhere."""
    return _o["elu"](x, float(alpha), 1.0)


@front("Hardtanh")
def hardtanh(x, min_val: float = -1.0, max_val: float = 1.0):
    """x kept inside [min_val, max_val]."""
    return _o["hardtanh"](x, float(min_val), float(max_val))


@front("Swish")
def swish(x, beta: float = 1.0):
    """x * sigmoid(beta * x)."""
    return ops.REGISTRY["swish"](x) if beta == 1.0 else x * _e.sigmoid(x * float(beta))


def _activation(name: str, prefix: str):
    op = _o[name]

    @front(prefix)
    def f(x):
        return op(x)

    f.__name__, f.__doc__ = name, f"Elementwise {name}."
    return f


relu6 = _activation("relu6", "Relu6")
mish = _activation("mish", "Mish")
hardsigmoid = _activation("hardsigmoid", "HardSigmoid")
hardswish = _activation("hardswish", "HardSwish")


@front("Moments")
def moments(x, axes, keepdims: bool = False):
    """(mean, biased variance) over `axes`."""
    listed = reduced_axes("moments", axes, x.ndim)
    mean, var = mean_of(x, listed, True), variance_of(x, listed, True)
    if keepdims:
        return mean, var
    shape = tuple(n for i, n in enumerate(x.shape) if i not in listed) or (1,)
    return _o["reshape"](mean, shape=shape), _o["reshape"](var, shape=shape)


@front("BatchNormalization")
def batch_normalization(x, mean, variance, offset=None, scale=None, variance_epsilon: float = 1e-5, axis: int = 1):
    """(x - mean) / sqrt(variance + epsilon) * scale + offset, along `axis`."""
    axis = normal_axis(axis, x.ndim, "batch_normalization")
    scale = _o["constant"](shape=mean.shape, value=1.0, dtype=mean.dtype) if scale is None else scale
    offset = _o["constant"](shape=mean.shape, value=0.0, dtype=mean.dtype) if offset is None else offset
    return _o["batch_norm_infer"](x, scale, offset, mean, variance, axis=axis, epsilon=float(variance_epsilon))


@front("LayerNorm")
def layer_norm(inputs, gamma=None, beta=None, begin_norm_axis: int = 1, begin_params_axis: int = -1, epsilon: float = 1e-5):
    """Normalised over the axes from begin_norm_axis on, then * gamma + beta (of shape inputs.shape[begin_params_axis:])."""
    norm = normal_axis(begin_norm_axis, inputs.ndim, "layer_norm")
    params = normal_axis(begin_params_axis, inputs.ndim, "layer_norm")
    if params == norm and gamma is not None and beta is not None:
        return _o["layer_norm"](inputs, gamma, beta, begin_norm_axis=norm, epsilon=float(epsilon))[0]
    shape = inputs.shape[norm:]
    one = _o["constant"](shape=shape, value=1.0, dtype=inputs.dtype)
    zero = _o["constant"](shape=shape, value=0.0, dtype=inputs.dtype)
    y = _o["layer_norm"](inputs, one, zero, begin_norm_axis=norm, epsilon=float(epsilon))[0]
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


__all__ = ["batch_normalization", "bias_add", "dropout", "elu", "hardsigmoid", "hardswish", "hardtanh", "layer_norm",
           "leaky_relu", "logsoftmax", "mish", "moments", "relu", "relu6", "sigmoid_cross_entropy_with_logits", "softmax",
           "softmax_cross_entropy_with_logits", "sparse_softmax_cross_entropy_with_logits", "swish"]
