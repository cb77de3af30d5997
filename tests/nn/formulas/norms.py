"""Normalization without running statistics (test_running_statistics.py tests those)."""
import math

import numpy as np

from .table import row


def standard(x, axes, eps):
    """Normalize to mean 0 and variance 1 over the axes, with the biased variance."""
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + eps)


def per_channel(v, ndim):
    return v.reshape(-1, *(1,) * (ndim - 2))


def scaled(y, weight, bias):
    """Apply one weight and bias for each channel (axis 1)."""
    y = y if weight is None else y * per_channel(weight, y.ndim)
    return y if bias is None else y + per_channel(bias, y.ndim)


def _planes(d, least=0):
    """Draw (N, C, ...) with at least two values in every normalized group."""
    x = d.rng.standard_normal((d.one_of(1, 2, 3), d.one_of(1, 2, 4), *d.shape(least, 3))) * 2 + 1
    return np.concatenate([x, x[..., :1] + 1], -1) if math.prod(x.shape[2:]) < 2 and least else x


def _affine(d, n):
    return d.maybe(weight=lambda: d.floats(n), bias=lambda: d.floats(n))


def _batch(d):
    x = _planes(d)
    x = np.concatenate([x, x[:1] * 2 + 1]) if x.size == x.shape[1] else x
    args = {"input": x, "running_mean": d.floats(x.shape[1]), "running_var": d.positive(x.shape[1])}
    return args | _affine(d, x.shape[1]) | {"training": d.one_of(True, False)} | d.options(eps=(0.1,))


@row(_batch, fixed=("running_mean", "running_var"))
def batch_norm(input, running_mean=None, running_var=None, weight=None, bias=None, training=False,
               momentum=0.1, eps=1e-5):
    if training:
        return scaled(standard(input, (0, *range(2, input.ndim)), eps), weight, bias)
    mean, var = (per_channel(v, input.ndim) for v in (running_mean, running_var))
    return scaled((input - mean) / np.sqrt(var + eps), weight, bias)


def _instances(d):
    x = _planes(d, 1)
    return {"input": x} | _affine(d, x.shape[1]) | d.options(eps=(0.1,))


@row(_instances)
def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True,
                  momentum=0.1, eps=1e-5):
    return scaled(standard(input, tuple(range(2, input.ndim)), eps), weight, bias)


def _grouped(d):
    x = _planes(d, 1)
    groups = d.one_of(*(g for g in (1, 2, 4) if x.shape[1] % g == 0))
    return {"input": x, "num_groups": groups} | _affine(d, x.shape[1]) | d.options(eps=(0.1,))


@row(_grouped, module="GroupNorm", other_defaults=("bias",), build=lambda a: None if "bias" in a
     and "weight" not in a
     else {"num_channels": a["input"].shape[1], "affine": "weight" in a, "bias": "bias" in a})
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    groups = input.reshape(len(input), num_groups, -1)
    return scaled(standard(groups, -1, eps).reshape(input.shape), weight, bias)


def _last(d):
    x = d.rng.standard_normal(d.shape(1, 3)) * 2 + 1
    shape = x.shape[d.whole(0, x.ndim - 1):]
    args = {"input": x, "normalized_shape": shape[0] if len(shape) == 1 and d.one_of(True, False) else shape}
    return args | {k: d.floats(*shape) for k in _affine(d, 1)} | d.options(eps=(0.1,))


def _last_axes(x, shape):
    return tuple(range(x.ndim - (1 if isinstance(shape, int) else len(shape)), x.ndim))


def _layer_norm(a):
    if "bias" in a and "weight" not in a:
        return None
    return {"elementwise_affine": "weight" in a} | ({"bias": "bias" in a} if "weight" in a else {})


@row(_last, module="LayerNorm", build=_layer_norm, other_defaults=("bias",))
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    y = standard(input, _last_axes(input, normalized_shape), eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def _without_bias(d):
    args = _last(d)
    args.pop("bias", None)
    return args


@row(lambda d: {"eps": 1e-5} | _without_bias(d), module="RMSNorm",
     other_defaults=("eps",), build=lambda a: {"elementwise_affine": "weight" in a})
def rms_norm(input, normalized_shape, weight=None, eps=None):
    eps = np.finfo(input.dtype).eps if eps is None else eps
    y = input / np.sqrt((input ** 2).mean(_last_axes(input, normalized_shape), keepdims=True) + eps)
    return y if weight is None else y * weight


@row(lambda d: {"input": _planes(d, 1), "size": d.one_of(1, 2, 3)} | d.options(alpha=(0.5,), beta=(0.5, 2.0),
                                                                               k=(2.0,)),
     module="LocalResponseNorm")
def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    squares = np.zeros_like(input)
    for c in range(input.shape[1]):
        near = input[:, max(c - size // 2, 0):c + (size - 1) // 2 + 1]
        squares[:, c] = (near ** 2).sum(1)
    return input / (k + alpha * squares / size) ** beta
