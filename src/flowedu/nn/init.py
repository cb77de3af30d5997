"""flow.nn.init: functions that write initial values into a tensor in place and return it.

Results are reproducible after flow.manual_seed. Formulas are those of PyTorch and OneFlow. `fan_in` is the
number of inputs of one output element, and `fan_out` the number of outputs that depend on one input element.
All functions take `tensor`, the tensor to fill. Random ones take `generator`, a flow.Generator (default: the
one of flow.manual_seed).
"""
from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np

from flowedu.core.eager.tensor import attach
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, ShapeError
from flowedu.tensor import Tensor, empty, from_numpy, no_grad
from flowedu.tensor.construction import random as rng
from flowedu.tensor.global_tensors.functions import shared_generator


def _fill(tensor: Tensor, value) -> Tensor:
    """Write an ndarray into `tensor`."""
    return _draw(tensor, lambda generator: from_numpy(np.asarray(value, order="C")), None)


def _draw(tensor: Tensor, f: Callable, generator) -> Tensor:
    """Write the tensor f(generator) into `tensor`; all ranks draw the same values for a global tensor."""
    value = f(_row(tensor, generator))
    value.uniform |= tensor.is_global
    with no_grad():
        return tensor.copy_(value)


def _row(tensor: Tensor, generator):
    return shared_generator(tensor.placement, generator) if tensor.is_global else generator


# ---- simple distributions
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator=None) -> Tensor:
    """Fill with uniform random values in [a, b).

    Args:
        tensor: tensor of any shape.
        a: lower limit.
        b: upper limit.
        generator: flow.Generator; default: the one of flow.manual_seed.

    Raises:
        ArgumentError (a RuntimeError): a > b.
    """
    return _draw(tensor, lambda g: rng.uniform_of(tuple(tensor.shape), tensor.dtype, a, b, g), generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator=None) -> Tensor:
    """Fill with normal random values.

    Args:
        tensor: tensor of any shape.
        mean: mean of the distribution.
        std: standard deviation of the distribution.
        generator: flow.Generator; default: the one of flow.manual_seed.
    """
    return _draw(tensor, lambda g: rng.normal_of(tuple(tensor.shape), tensor.dtype, mean, std, g), generator)


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
                  generator=None) -> Tensor:
    """Fill with normal random values truncated to [a, b].

    Args:
        tensor: tensor of any shape.
        mean: mean of the distribution before truncation.
        std: standard deviation of the distribution before truncation.
        a: lower limit.
        b: upper limit.
        generator: flow.Generator; default: the one of flow.manual_seed.
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn("mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of "
                      "values may be incorrect.", stacklevel=2)
    return _draw(tensor, lambda g: rng.trunc_normal(tensor, mean, std, a, b, generator=g), generator)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with a constant.

    Args:
        tensor: tensor of any shape.
        val: the constant.
    """
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones.

    Args:
        tensor: tensor of any shape.
    """
    return constant_(tensor, 1)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros.

    Args:
        tensor: tensor of any shape.
    """
    return constant_(tensor, 0)


def eye_(tensor: Tensor) -> Tensor:
    """Fill with the identity matrix.

    Args:
        tensor: matrix (n, m).

    Raises:
        ShapeError (a ValueError): the tensor does not have two axes.
    """
    if tensor.ndim != 2:
        raise ShapeError("Only tensors with 2 dimensions are supported", expected="a matrix",
                         got=str(tuple(tensor.shape)), fix="init.dirac_ is its like for convolutions")
    return _fill(tensor, np.eye(*tensor.shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill with the weight of a convolution that returns as many input channels as possible unchanged.

    Args:
        tensor: weight with 3 to 5 axes.
        groups: number of groups of the convolution.
    """
    if tensor.ndim not in (3, 4, 5):
        raise ShapeError("Only tensors with 3, 4, or 5 dimensions are supported",
                         expected="the weight of a convolution",
                         got=str(tuple(tensor.shape)), fix="init.eye_ is its like for matrices")
    out, into = tensor.shape[:2]
    if out % groups:
        raise ArgumentError("dim 0 must be divisible by groups", expected=f"a multiple of {groups}",
                            got=str(out), fix="groups=1")
    a, middle = np.zeros(tuple(tensor.shape)), tuple(k // 2 for k in tensor.shape[2:])
    for g in range(groups):
        for d in range(min(out // groups, into)):
            a[(g * (out // groups) + d, d, *middle)] = 1
    return _fill(tensor, a)


# ---- distributions that depend on the fan
def _fans(tensor: Tensor, data_format: str = "NCHW") -> tuple[int, int]:
    """Return (fan_in, fan_out)."""
    if tensor.ndim < 2:
        raise ShapeError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions",
                         expected="a weight", got=str(tuple(tensor.shape)),
                         fix="normal_ or uniform_ for a vector")
    shape = tuple(tensor.shape)
    space = math.prod(shape[2:] if data_format.startswith("NC") else shape[1:-1])
    into = shape[1] if data_format.startswith("NC") else shape[-1]
    return into * space, shape[0] * space


_calculate_fan_in_and_fan_out = _fans


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor that compensates for the effect of a nonlinearity on the size of signals.

    Args:
        nonlinearity: "linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu", and so on.
        param: negative slope of "leaky_relu"; default: 0.01.
    """
    if nonlinearity in ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
                        "conv_transpose3d", "sigmoid"):
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ArgumentError(f"negative_slope {slope} not a valid number", expected="a number",
                                got=repr(slope), fix="a=0.2, say")
        return math.sqrt(2.0 / (1 + slope ** 2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ArgumentError(f"Unsupported nonlinearity {nonlinearity}", got=repr(nonlinearity),
                        expected="linear, conv1d, ..., sigmoid, tanh, relu, leaky_relu or selu",
                        fix="calculate_gain('relu') for others that are like relu")


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, *, data_format: str = "NCHW",
                    generator=None) -> Tensor:
    """Fill with uniform values of standard deviation gain * sqrt(2 / (fan_in + fan_out)).

    Args:
        tensor: weight with at least two axes.
        gain: factor, see calculate_gain.
        data_format: "NCHW" or "NHWC", the position of the channels in the weight.
        generator: flow.Generator; default: the one of flow.manual_seed.
    """
    a = math.sqrt(3.0) * gain * math.sqrt(2.0 / max(sum(_fans(tensor, data_format)), 1))
    return uniform_(tensor, -a, a, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, *, data_format: str = "NCHW", generator=None) -> Tensor:
    """Fill with normal values of standard deviation gain * sqrt(2 / (fan_in + fan_out)).

    Args:
        tensor: weight with at least two axes.
        gain: factor, see calculate_gain.
        data_format: "NCHW" or "NHWC", the position of the channels in the weight.
        generator: flow.Generator; default: the one of flow.manual_seed.
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / max(sum(_fans(tensor, data_format)), 1)), generator)


def _kaiming_std(tensor, a, mode, nonlinearity, data_format) -> float:
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ArgumentError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']",
                            expected="fan_in or fan_out", got=repr(mode), fix="mode='fan_in' is the default")
    fan = _fans(tensor, data_format)[mode.lower() == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(max(fan, 1))


def kaiming_uniform_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                     *, data_format: str = "NCHW", generator=None) -> Tensor:
    """Fill with uniform values of standard deviation gain / sqrt(fan).

    Args:
        tensor: weight with at least two axes.
        a: negative slope of the leaky_relu that follows.
        mode: "fan_in" or "fan_out".
        nonlinearity: name of the activation that follows, see calculate_gain.
        data_format: "NCHW" or "NHWC", the position of the channels in the weight.
        generator: flow.Generator; default: the one of flow.manual_seed.
    """
    if 0 in tensor.shape:
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity, data_format)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", *,
                    data_format: str = "NCHW", generator=None) -> Tensor:
    """Fill with normal values of standard deviation gain / sqrt(fan).

    Args:
        tensor: weight with at least two axes.
        a: negative slope of the leaky_relu that follows.
        mode: "fan_in" or "fan_out".
        nonlinearity: name of the activation that follows, see calculate_gain.
        data_format: "NCHW" or "NHWC", the position of the channels in the weight.
        generator: flow.Generator; default: the one of flow.manual_seed.
    """
    if 0 in tensor.shape:
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity, data_format), generator)


def uniform_bias_(tensor: Tensor | None, fan_in: int) -> None:
    """Fill the bias of a layer with uniform values in [-1/sqrt(fan_in), 1/sqrt(fan_in)].

    Args:
        tensor: the bias; None: do nothing.
        fan_in: number of inputs per output; 0 fills the bias with zeros.
    """
    if tensor is not None:
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0.0
        uniform_(tensor, -bound, bound)


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator=None) -> Tensor:
    """Fill with a matrix with orthogonal rows, or orthogonal columns if it has fewer columns than rows.

    Args:
        tensor: tensor with at least two axes. All axes except the first are joined into the
            columns of a matrix.
        gain: length of the rows.
        generator: flow.Generator; default: the one of flow.manual_seed.
    """
    if tensor.ndim < 2:
        raise ShapeError("Only tensors with 2 or more dimensions are supported", expected="a weight",
                         got=str(tuple(tensor.shape)), fix="init.normal_ for a vector")
    if not tensor.numel():
        return tensor
    drawn = normal_(empty(*tensor.shape, dtype=dt.float64), generator=_row(tensor, generator))
    a = drawn.numpy().reshape(tensor.shape[0], -1)
    wide = a.shape[0] < a.shape[1]
    q, r = np.linalg.qr(a.T if wide else a)
    q = q * np.sign(np.diag(r))
    return _fill(tensor, (q.T if wide else q).reshape(tuple(tensor.shape)) * gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator=None) -> Tensor:
    """Fill with normal values and set a share of every column to 0.

    Args:
        tensor: matrix.
        sparsity: share of zeros, 0 to 1.
        std: standard deviation of the other values.
        generator: flow.Generator; default: the one of flow.manual_seed.
    """
    if tensor.ndim != 2:
        raise ShapeError("Only tensors with 2 dimensions are supported", expected="a matrix",
                         got=str(tuple(tensor.shape)), fix="init.normal_ for other shapes")
    a = normal_(empty(*tensor.shape, dtype=dt.float64), 0.0, std, generator).numpy()
    order = uniform_(empty(*tensor.shape, dtype=dt.float64), generator=generator).numpy()
    np.put_along_axis(a, np.argsort(order, axis=0)[:math.ceil(sparsity * a.shape[0])], 0, axis=0)
    return _fill(tensor, a)


attach(Tensor, {f.__name__: f for f in (xavier_uniform_, xavier_normal_, kaiming_uniform_, kaiming_normal_,
                                        orthogonal_)})
