"""Activations and softmax."""
import math

import numpy as np

from .table import row

_erf = np.vectorize(math.erf, otypes=[float])


def one(d):
    return {"input": d.floats(*d.shape(0, 3))}


def sigmoid(input):
    return 1 / (1 + np.exp(-input))


row(one, module="Sigmoid")(sigmoid)


@row(one, module="Tanh")
def tanh(input):
    return np.tanh(input)


@row(one, module="ReLU")
def relu(input):
    return np.maximum(input, 0)


@row(one, module="ReLU6")
def relu6(input):
    return np.clip(input, 0, 6)


@row(one, module="SiLU")
def silu(input):
    return input * sigmoid(input)


@row(one, module="Mish")
def mish(input):
    return input * np.tanh(np.log1p(np.exp(input)))


@row(one, module="Hardsigmoid")
def hardsigmoid(input):
    return np.clip(input / 6 + 0.5, 0, 1)


@row(one, module="Hardswish")
def hardswish(input):
    return input * np.clip(input / 6 + 0.5, 0, 1)


@row(one, module="LogSigmoid")
def logsigmoid(input):
    return -np.logaddexp(0, -input)


@row(one, module="Softsign")
def softsign(input):
    return input / (1 + np.abs(input))


@row(one, module="QuickGELU")
def quick_gelu(input):
    return input * sigmoid(1.702 * input)


@row(one, module="Tanhshrink")
def tanhshrink(input):
    return input - np.tanh(input)


@row(lambda d: one(d) | d.options(approximate=("none", "tanh")), module="GELU")
def gelu(input, approximate="none"):
    if approximate == "tanh":
        return input / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (input + 0.044715 * input ** 3)))
    return input / 2 * (1 + _erf(input / math.sqrt(2)))


@row(lambda d: one(d) | d.options(negative_slope=(0.0, 0.3, -1.5)), module="LeakyReLU")
def leaky_relu(input, negative_slope=0.01):
    return np.where(input > 0, input, negative_slope * input)


@row(lambda d: one(d) | d.options(lower=(0.0, 0.2), upper=(0.4, 0.9)), module="RReLU")
def rrelu(input, lower=1 / 8, upper=1 / 3):
    return np.where(input > 0, input, (lower + upper) / 2 * input)


def _prelu(d):
    x = d.floats(*d.shape(2, 4))
    return {"input": x, "weight": d.floats(d.one_of(1, x.shape[1]))}


@row(_prelu, module="PReLU", build=lambda a: {"num_parameters": a["weight"].size})
def prelu(input, weight):
    return np.where(input > 0, input, weight.reshape(-1, *(1,) * (input.ndim - 2)) * input)


@row(lambda d: one(d) | d.options(alpha=(0.5, 2.0)), module="ELU")
def elu(input, alpha=1.0):
    return np.where(input > 0, input, alpha * (np.exp(input) - 1))


@row(lambda d: one(d) | d.options(alpha=(0.5, 2.0)), module="CELU")
def celu(input, alpha=1.0):
    return np.maximum(input, 0) + np.minimum(0, alpha * (np.exp(input / alpha) - 1))


@row(one, module="SELU")
def selu(input):
    return 1.0507009873554805 * np.where(input > 0, input, 1.6732632423543772 * (np.exp(input) - 1))


@row(lambda d: one(d) | d.options(min_val=(-2.0, -0.5), max_val=(0.5, 1.5)), module="Hardtanh")
def hardtanh(input, min_val=-1.0, max_val=1.0):
    return np.clip(input, min_val, max_val)


@row(lambda d: one(d) | d.options(beta=(0.5, 2.0), threshold=(1.0, 3.0)), module="Softplus")
def softplus(input, beta=1.0, threshold=20.0):
    return np.where(beta * input > threshold, input, np.log1p(np.exp(beta * input)) / beta)


@row(lambda d: one(d) | d.options(lambd=(0.0, 1.0)), module="Softshrink")
def softshrink(input, lambd=0.5):
    return np.sign(input) * np.maximum(np.abs(input) - lambd, 0)


@row(lambda d: one(d) | d.options(lambd=(0.0, 1.0)), module="Hardshrink")
def hardshrink(input, lambd=0.5):
    return np.where(np.abs(input) > lambd, input, 0)


@row(lambda d: one(d) | {"threshold": d.one_of(0.5, -1.0), "value": d.one_of(2.0, -7.0)}, module="Threshold")
def threshold(input, threshold, value):
    return np.where(input > threshold, input, value)


def _halves(d):
    shape = list(d.shape(1, 3))
    axis = d.whole(0, len(shape) - 1)
    shape[axis] *= 2
    given = {"dim": d.one_of(axis, axis - len(shape))}
    return {"input": d.floats(*shape)} | ({} if axis == len(shape) - 1 and d.one_of(True, False) else given)


@row(_halves, module="GLU")
def glu(input, dim=-1):
    a, b = np.split(input, 2, dim)
    return a * sigmoid(b)


# ---- softmax
def _along(d):
    x = d.floats(*d.shape(1, 4)) * d.one_of(1.0, 50.0)
    return {"input": x, "dim": d.whole(-x.ndim, x.ndim - 1)}


def _default_axis(ndim):
    return 0 if ndim in (0, 1, 3) else 1


@row(_along, module="Softmax")
def softmax(input, dim=None):
    dim = _default_axis(input.ndim) if dim is None else dim
    e = np.exp(input - input.max(dim, keepdims=True))
    return e / e.sum(dim, keepdims=True)


@row(_along, module="LogSoftmax")
def log_softmax(input, dim=None):
    dim = _default_axis(input.ndim) if dim is None else dim
    shifted = input - input.max(dim, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(dim, keepdims=True))


@row(_along, module="Softmin")
def softmin(input, dim=None):
    return softmax(-input, dim)


@row(lambda d: {"input": d.floats(*d.shape(3, 4))}, function=None, module="Softmax2d")
def softmax_of_channels(input):
    return softmax(input, -3)
