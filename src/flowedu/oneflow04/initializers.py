"""Initializers of variables, such as `flow.random_normal_initializer(0., 0.02)`.

The session calls an initializer once per variable with its shape, dtype, and seed. Values are drawn in
float64 by np.random.default_rng(seed), in C order, and then cast. So a seed gives the same values on every
machine.

fan_in of a weight is the number of inputs of one output. fan_out is the number of outputs that depend on one
input. `space` is the number of kernel positions:

| weight | fan_in | fan_out |
|---|---|---|
| dense (units, in) | in | units |
| conv NCHW (F, C, *space) | C * space | F * space |
| conv NHWC (F, *space, C) | C * space | F * space |
| one axis (n,) | 1 | n |

OneFlow 0.4 uses the wrong axes for fan_out in NCHW (F * C * kh); flowedu follows the table.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowedu.core.values.dtype import as_dtype, bfloat16, dtype, float32
from flowedu.errors import ArgumentError, CheckError, ShapeError, UnsupportedError

# The standard deviation of a unit normal that is cut at 2.
_CUT_STD = 0.87962566103423978


class Initializer:
    """Base class of initializers. Two initializers with the same arguments are equal."""

    random = True  # whether the values depend on the seed

    def __call__(self, shape: Sequence[int], dtype: dtype = float32, seed: int | None = None) -> np.ndarray:
        """Return a new array of initial values.

        Args:
            shape: the shape of the variable.
            dtype: the dtype of the variable.
            seed: the seed of the generator; None uses entropy of the system.
        """
        d, shape = as_dtype(dtype, f"{self!r}: dtype"), tuple(shape)
        if d is bfloat16:                       # NumPy has none: float32, to be rounded
            d = float32
        if d.numpy is None:
            raise UnsupportedError(f"{self!r}: cannot fill a variable of this dtype",
                                   expected="a number type", got=repr(d), fix="use flow.float32")
        return self._cast(self.draw(np.random.default_rng(seed), shape), d)

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        raise NotImplementedError

    def _cast(self, values: np.ndarray, d: dtype) -> np.ndarray:
        ends = [values.min(initial=0).item(), values.max(initial=0).item()]  # 0 fits everywhere
        if d.is_floating_point:
            high = float(np.finfo(d.numpy).max)
            low, fits = -high, all(abs(x) <= high or not math.isfinite(x) for x in ends)
        else:
            low, high = (0, 1) if d.numpy.kind == "b" else (np.iinfo(d.numpy).min, np.iinfo(d.numpy).max)
            fits = all(low <= x <= high for x in ends)
        if not fits:
            raise ArgumentError(f"{self!r}: the values do not fit into {d.name}",
                                expected=f"values in [{low}, {high}]",
                                got=f"values from {ends[0]} to {ends[1]}",
                                fix="give the variable a wider dtype")
        return values.astype(d.numpy, copy=False)


@dataclass(frozen=True)
class Constant(Initializer):
    """An initializer that fills a variable with one value."""

    value: float

    random = False

    def draw(self, rng, shape):
        return np.full(shape, self.value)


@dataclass(frozen=True)
class Empty(Initializer):
    """An initializer that leaves memory uninitialized, for variables that a checkpoint fills."""

    random = False

    def __call__(self, shape, dtype=float32, seed=None):
        return np.empty(tuple(shape), as_dtype(dtype, f"{self!r}: dtype").numpy)


@dataclass(frozen=True)
class _Between(Initializer):
    low: float
    high: float


class Uniform(_Between):
    """A uniform distribution over [low, high], including both ends."""

    def draw(self, rng, shape):
        return rng.uniform(self.low, np.nextafter(self.high, math.inf), size=shape)


class UniformInt(_Between):
    """A uniform distribution over the integers low, ..., high - 1."""

    def draw(self, rng, shape):
        return rng.integers(self.low, self.high, size=shape)


@dataclass(frozen=True)
class Normal(Initializer):
    """A normal distribution."""

    mean: float
    stddev: float

    def draw(self, rng, shape):
        return rng.normal(self.mean, self.stddev, size=shape)


class TruncatedNormal(Normal):
    """A normal distribution whose values 2 stddev or more from the mean are drawn again."""

    def draw(self, rng, shape):
        out = np.empty(math.prod(shape))
        done = 0
        while done < out.size:
            z = rng.standard_normal(int((out.size - done) * 1.2))  # 4.6% are rejected: mostly one round
            z = z[np.abs(z) < 2][: out.size - done]
            out[done:done + z.size] = z
            done += z.size
        return (self.mean + self.stddev * out).reshape(shape)


@dataclass(frozen=True)
class VarianceScaling(Initializer):
    """A distribution of variance scale / fan, which preserves the scale of signals from layer to layer."""

    scale: float
    mode: str
    distribution: str
    data_format: str = ""

    def draw(self, rng, shape):
        variance = self.scale / max(fan(shape, self.mode, self.data_format), 1)
        if self.distribution == "random_uniform":
            limit = math.sqrt(3 * variance)
            return rng.uniform(-limit, limit, size=shape)
        if self.distribution == "random_normal":
            return rng.normal(0.0, math.sqrt(variance), size=shape)
        return TruncatedNormal(0.0, math.sqrt(variance) / _CUT_STD).draw(rng, shape)


def fan(shape: Sequence[int], mode: str, data_format: str = "") -> float:
    """Return fan_in, fan_out, or their mean (fan_avg) of a weight.

    The data format "" means channels first.
    """
    if not shape:
        raise ShapeError(f"{mode}: a scalar has none", expected="a weight with at least one axis",
                         got="shape ()",
                         fix="use flow.constant_initializer or flow.random_normal_initializer")
    fan_in = math.prod(shape[1:])
    space = shape[1:-1] if data_format.endswith("C") else shape[2:]
    fan_out = shape[0] * math.prod(space)
    return {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[mode]


# --- the public functions
# --------------------------------------------------------------------------------------------

def constant_initializer(value: float = 0, dtype: dtype = float32) -> Initializer:
    """Return an initializer that fills a variable with one value.

    Args:
        value: the value. It is rounded towards zero for an integer dtype.
        dtype: the dtype of the variable.
    """
    what = "constant_initializer"
    return Constant(_number(what, "value", value, _integer(what, dtype), finite=False))


def zeros_initializer(dtype: dtype = float32) -> Initializer:
    """Return an initializer that fills a variable with zeros.

    Args:
        dtype: the dtype of the variable.
    """
    return constant_initializer(0, dtype)


def ones_initializer(dtype: dtype = float32) -> Initializer:
    """Return an initializer that fills a variable with ones.

    Args:
        dtype: the dtype of the variable.
    """
    return constant_initializer(1, dtype)


def empty_initializer(dtype: dtype = float32) -> Initializer:
    """Return an initializer that leaves memory uninitialized.

    Args:
        dtype: the dtype of the variable.
    """
    return Empty()


def random_uniform_initializer(minval: float = 0, maxval: float = 1, dtype: dtype = float32) -> Initializer:
    """Return an initializer with a uniform distribution.

    Args:
        minval: the smallest value.
        maxval: the largest value. An integer dtype excludes it.
        dtype: the dtype of the variable.
    """
    what = "random_uniform_initializer"
    integer = _integer(what, dtype)
    low, high = _number(what, "minval", minval, integer), _number(what, "maxval", maxval, integer)
    if low > high:
        raise CheckError(f"{what}: the range is upside down", expected="minval <= maxval",
                         got=f"{low} > {high}", fix="exchange them")
    if integer and low == high:
        raise ArgumentError(f"{what}: the range contains no integer",
                            expected="minval < maxval: maxval is excluded",
                            got=f"[{low}, {high})", fix=f"write maxval={high + 1}")
    return UniformInt(low, high) if integer else Uniform(low, high)


def random_normal_initializer(mean: float = 0.0, stddev: float = 1.0, seed: None = None,
                              dtype: None = None) -> Initializer:
    """Return an initializer with a normal distribution.

    Args:
        mean: the mean.
        stddev: the standard deviation, 0 or more.
        seed: must be None; pass random_seed to flow.get_variable.
        dtype: must be None; pass dtype to flow.get_variable.
    """
    what = "random_normal_initializer"
    if seed is not None or dtype is not None:
        raise CheckError(f"{what}: seed and dtype must be None", expected="mean and stddev only",
                         got=f"seed={seed!r}, dtype={dtype!r}",
                         fix="pass them to flow.get_variable(..., random_seed=..., dtype=...)")
    return Normal(_number(what, "mean", mean), _number(what, "stddev", stddev, least=0))


def truncated_normal_initializer(mean: float = 0.0, stddev: float = 1.0) -> Initializer:
    """Return an initializer with a normal distribution without values 2 stddev or more from the mean.

    Args:
        mean: the mean.
        stddev: the standard deviation before truncation, 0 or more.
    """
    what = "truncated_normal_initializer"
    return TruncatedNormal(_number(what, "mean", mean), _number(what, "stddev", stddev, least=0))


def truncated_normal(stddev: float = 1.0) -> Initializer:
    """Return truncated_normal_initializer(0.0, stddev).

    Args:
        stddev: the standard deviation before truncation, 0 or more.
    """
    return truncated_normal_initializer(0.0, stddev)


def variance_scaling_initializer(scale: float = 1.0, mode: str = "fan_in",
                                 distribution: str = "truncated_normal",
                                 data_format: str = "") -> Initializer:
    """Return an initializer with mean 0 and variance scale / fan.

    Args:
        scale: the numerator of the variance, 0 or more.
        mode: "fan_in", "fan_out", or "fan_avg" (their mean).
        distribution: "truncated_normal", "random_normal", or "random_uniform".
        data_format: the layout of the weight, such as "NCHW" or "NHWC"; "" means channels first.
    """
    what = "variance_scaling_initializer"
    mode = _choice(what, "mode", str(mode).lower(), ("fan_in", "fan_out", "fan_avg"), ArgumentError)
    distribution = _choice(what, "distribution", str(distribution).lower(),
                           ("truncated_normal", "random_normal", "random_uniform"), ArgumentError)
    text = data_format if isinstance(data_format, str) else "?"
    if text and not text.startswith("NC") and not (text.startswith("N") and text.endswith("C")):
        raise CheckError(f"{what}: data_format is unknown",
                         expected='"NC..." (channels first), "N...C" or ""',
                         got=repr(data_format), fix='write "NCHW" or "NHWC"')
    return VarianceScaling(_number(what, "scale", scale, least=0), mode, distribution, text)


def xavier_uniform_initializer(data_format: str = "") -> Initializer:
    """Return an initializer with a uniform distribution of variance 1 / fan_avg (Glorot and Bengio 2010).

    Args:
        data_format: the layout of the weight, such as "NCHW" or "NHWC"; "" means channels first.
    """
    return variance_scaling_initializer(1.0, "fan_avg", "random_uniform", data_format)


def xavier_normal_initializer(data_format: str = "") -> Initializer:
    """Return an initializer with a normal distribution of variance 1 / fan_avg (Glorot and Bengio 2010).

    Args:
        data_format: the layout of the weight, such as "NCHW" or "NHWC"; "" means channels first.
    """
    return variance_scaling_initializer(1.0, "fan_avg", "random_normal", data_format)


glorot_uniform_initializer = xavier_uniform_initializer
glorot_normal_initializer = xavier_normal_initializer


def kaiming_initializer(shape: tuple[int, ...], distribution: str = "random_normal", mode: str = "fan_in",
                        nonlinearity: str | None = "leaky_relu", negative_slope: float = 0.0,
                        data_format: str = "NCHW") -> Initializer:
    """Return an initializer with mean 0 and standard deviation gain / sqrt(fan) (He et al. 2015).

    Args:
        shape: the shape of the weight, a tuple with two or more axes.
        distribution: "random_normal" or "random_uniform".
        mode: "fan_in", "fan_out", or "fan_avg" (their mean).
        nonlinearity: the activation after the layer, which determines the gain. The gain of "relu" is
            sqrt(2), of "leaky_relu" sqrt(2 / (1 + negative_slope^2)), of "tanh" 5/3, and of "sigmoid",
            "linear", and None 1.
        negative_slope: the slope of "leaky_relu" below 0.
        data_format: the layout of the weight, "NCHW" or "NHWC".
    """
    what = "kaiming_initializer"
    if not isinstance(shape, tuple) or len(shape) < 2 or math.prod(shape) <= 0:
        raise CheckError(f"{what}: not the shape of a weight",
                         expected="a tuple of two or more sizes above zero",
                         got=repr(shape), fix="write (units, in) or (filters, channels, kh, kw)")
    _choice(what, "distribution", distribution, ("random_normal", "random_uniform"), CheckError)
    _choice(what, "mode", mode, ("fan_in", "fan_out", "fan_avg"), CheckError)
    _choice(what, "data_format", data_format, ("NCHW", "NHWC"), CheckError)
    gains = {"relu": math.sqrt(2), "tanh": 5 / 3, "sigmoid": 1.0, "linear": 1.0, None: 1.0, "leaky_relu":
             math.sqrt(2 / (1 + _number(what, "negative_slope", negative_slope) ** 2))}
    gain = gains[_choice(what, "nonlinearity", nonlinearity, tuple(gains), CheckError)]
    std = gain / math.sqrt(fan(shape, mode, data_format))
    if distribution == "random_normal":
        return random_normal_initializer(0.0, std)
    return random_uniform_initializer(-math.sqrt(3) * std, math.sqrt(3) * std)


def _integer(what: str, d: dtype) -> bool:
    d = as_dtype(d, f"{what}: dtype")
    if d.numpy is None:
        raise UnsupportedError(f"{what}: Do not support such data type", expected="a number type",
                               got=repr(d), fix="use flow.float32")
    return not d.is_floating_point


def _number(what: str, name: str, value: Any, integer: bool = False, *, least: float = -math.inf,
            finite: bool = True) -> float:
    """Return `value`, which may be a NumPy scalar, as a Python number. Raise ArgumentError below `least`."""
    try:
        number = int(value) if integer else float(value)
        if not (finite and not math.isfinite(number)) and not number < least:
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    raise ArgumentError(f"{what}: {name} is not a number it can use", got=repr(value),
                        fix=f"pass {name}=0.1, say",
                        expected="a finite number" + (f" >= {least}" if least > -math.inf else ""))


def _choice(what: str, name: str, value: Any, options: tuple, error: type) -> Any:
    if value not in options:
        raise error(f"{what}: {name} is unknown", expected=f"one of {', '.join(map(repr, options))}",
                    got=repr(value), fix=f"write {name}={options[0]!r}, say")
    return value
