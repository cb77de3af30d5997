"""Initial values of variables: `flow.random_normal_initializer(0., 0.02)` makes an Initializer; the session calls it
once per variable with the shape, the dtype and a seed.

Values are drawn in float64 by np.random.default_rng(seed), in C order, then cast: a seed fixes them on every machine.

fan_in and fan_out of a weight count the inputs of one output and the outputs one input reaches. With `space` the
number of kernel positions:

| weight | fan_in | fan_out |
|---|---|---|
| dense (units, in) | in | units |
| conv NCHW (F, C, *space) | C * space | F * space |
| conv NHWC (F, *space, C) | C * space | F * space |
| one axis (n,) | 1 | n |

OneFlow 0.4 takes the wrong axes for fan_out in NCHW (F * C * kh); flowedu follows the table.
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
    """Makes the first value of a variable. Two initializers with the same arguments are equal."""

    random = True  # whether the values depend on the seed

    def __call__(self, shape: Sequence[int], dtype: dtype = float32, seed: int | None = None) -> np.ndarray:
        """A new array.

        Args:
            seed: what fixes the values; None draws from the system's entropy.
        """
        d, shape = as_dtype(dtype, f"{self!r}: dtype"), tuple(shape)
        if d is bfloat16:                       # NumPy has none: float32, to be rounded
            d = float32
        if d.numpy is None:
            raise UnsupportedError(f"{self!r}: cannot fill a variable of this dtype", expected="a number type",
                                   got=repr(d), fix="use flow.float32")
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
            raise ArgumentError(f"{self!r}: the values do not fit into {d.name}", expected=f"values in [{low}, {high}]",
                                got=f"values from {ends[0]} to {ends[1]}", fix="give the variable a wider dtype")
        return values.astype(d.numpy, copy=False)


@dataclass(frozen=True)
class Constant(Initializer):
    value: float

    random = False

    def draw(self, rng, shape):
        return np.full(shape, self.value)


@dataclass(frozen=True)
class Empty(Initializer):
    """Whatever the memory holds: for variables that a checkpoint fills."""

    random = False

    def __call__(self, shape, dtype=float32, seed=None):
        return np.empty(tuple(shape), as_dtype(dtype, f"{self!r}: dtype").numpy)


@dataclass(frozen=True)
class _Between(Initializer):
    low: float
    high: float


class Uniform(_Between):
    """[low, high], both ends possible."""

    def draw(self, rng, shape):
        return rng.uniform(self.low, np.nextafter(self.high, math.inf), size=shape)


class UniformInt(_Between):
    """The integers low, ..., high - 1."""

    def draw(self, rng, shape):
        return rng.integers(self.low, self.high, size=shape)


@dataclass(frozen=True)
class Normal(Initializer):
    mean: float
    stddev: float

    def draw(self, rng, shape):
        return rng.normal(self.mean, self.stddev, size=shape)


class TruncatedNormal(Normal):
    """A normal distribution without its tails: what lies 2 stddev or more from the mean is drawn again."""

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
    """Variance scale / fan, so that signals keep their size from layer to layer."""

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
    """fan_in, fan_out or their mean (fan_avg) of a weight; see the table at the top. "" counts as channels first."""
    if not shape:
        raise ShapeError(f"{mode}: a scalar has none", expected="a weight with at least one axis", got="shape ()",
                         fix="use flow.constant_initializer or flow.random_normal_initializer")
    fan_in = math.prod(shape[1:])
    space = shape[1:-1] if data_format.endswith("C") else shape[2:]
    fan_out = shape[0] * math.prod(space if len(shape) > 2 else ())
    return {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[mode]


# --- the public functions --------------------------------------------------------------------------------------------

def constant_initializer(value: float = 0, dtype: dtype = float32) -> Initializer:
    """All elements `value`; rounded towards zero when `dtype` is an integer type."""
    what = "constant_initializer"
    return Constant(_number(what, "value", value, _integer(what, dtype), finite=False))


def zeros_initializer(dtype: dtype = float32) -> Initializer:
    """All elements 0."""
    return constant_initializer(0, dtype)


def ones_initializer(dtype: dtype = float32) -> Initializer:
    """All elements 1."""
    return constant_initializer(1, dtype)


def empty_initializer(dtype: dtype = float32) -> Initializer:
    """Uninitialised memory."""
    return Empty()


def random_uniform_initializer(minval: float = 0, maxval: float = 1, dtype: dtype = float32) -> Initializer:
    """Uniform over [minval, maxval]; for an integer `dtype` the integers minval, ..., maxval - 1."""
    what = "random_uniform_initializer"
    integer = _integer(what, dtype)
    low, high = _number(what, "minval", minval, integer), _number(what, "maxval", maxval, integer)
    if low > high:
        raise CheckError(f"{what}: the range is upside down", expected="minval <= maxval", got=f"{low} > {high}",
                         fix="exchange them")
    if integer and low == high:
        raise ArgumentError(f"{what}: no integer lies in the range", expected="minval < maxval: maxval is excluded",
                            got=f"[{low}, {high})", fix=f"write maxval={high + 1}")
    return UniformInt(low, high) if integer else Uniform(low, high)


def random_normal_initializer(mean: float = 0.0, stddev: float = 1.0, seed: None = None,
                              dtype: None = None) -> Initializer:
    """Normal with this mean and standard deviation. `seed` and `dtype` must stay None (they are the variable's)."""
    what = "random_normal_initializer"
    if seed is not None or dtype is not None:
        raise CheckError(f"{what}: seed and dtype must be None", expected="mean and stddev only",
                         got=f"seed={seed!r}, dtype={dtype!r}",
                         fix="pass them to flow.get_variable(..., random_seed=..., dtype=...)")
    return Normal(_number(what, "mean", mean), _number(what, "stddev", stddev, least=0))


def truncated_normal_initializer(mean: float = 0.0, stddev: float = 1.0) -> Initializer:
    """Normal, but no value is 2 stddev or more away from the mean."""
    what = "truncated_normal_initializer"
    return TruncatedNormal(_number(what, "mean", mean), _number(what, "stddev", stddev, least=0))


def truncated_normal(stddev: float = 1.0) -> Initializer:
    """truncated_normal_initializer with mean 0."""
    return truncated_normal_initializer(0.0, stddev)


def variance_scaling_initializer(scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal",
                                 data_format: str = "") -> Initializer:
    """Mean 0 and variance scale / fan.

    Args:
        mode: "fan_in", "fan_out", "fan_avg" (their mean).
        distribution: "truncated_normal", "random_normal", "random_uniform".
        data_format: of the weight: "NCHW", "NHWC" and the like; "" means channels first.
    """
    what = "variance_scaling_initializer"
    mode = _choice(what, "mode", str(mode).lower(), ("fan_in", "fan_out", "fan_avg"), ArgumentError)
    distribution = _choice(what, "distribution", str(distribution).lower(),
                           ("truncated_normal", "random_normal", "random_uniform"), ArgumentError)
    text = data_format if isinstance(data_format, str) else "?"
    if text and not text.startswith("NC") and not (text.startswith("N") and text.endswith("C")):
        raise CheckError(f"{what}: data_format is unknown", expected='"NC..." (channels first), "N...C" or ""',
                         got=repr(data_format), fix='write "NCHW" or "NHWC"')
    return VarianceScaling(_number(what, "scale", scale, least=0), mode, distribution, text)


def xavier_uniform_initializer(data_format: str = "") -> Initializer:
    """Uniform with variance 1 / fan_avg."""
    return variance_scaling_initializer(1.0, "fan_avg", "random_uniform", data_format)


def xavier_normal_initializer(data_format: str = "") -> Initializer:
    """Normal with variance 1 / fan_avg."""
    return variance_scaling_initializer(1.0, "fan_avg", "random_normal", data_format)


glorot_uniform_initializer = xavier_uniform_initializer
glorot_normal_initializer = xavier_normal_initializer


def kaiming_initializer(shape: tuple[int, ...], distribution: str = "random_normal", mode: str = "fan_in",
                        nonlinearity: str | None = "leaky_relu", negative_slope: float = 0.0,
                        data_format: str = "NCHW") -> Initializer:
    """Mean 0 and standard deviation gain / sqrt(fan), after He et al. 2015.

    Args:
        shape: of the weight, a tuple with two or more axes.
        distribution: "random_normal" or "random_uniform".
        nonlinearity: what follows the layer, and with it the gain: "relu" sqrt(2), "leaky_relu"
            sqrt(2 / (1 + negative_slope^2)), "tanh" 5/3, "sigmoid", "linear" and None 1.
    """
    what = "kaiming_initializer"
    if not isinstance(shape, tuple) or len(shape) < 2 or math.prod(shape) <= 0:
        raise CheckError(f"{what}: not the shape of a weight", expected="a tuple of two or more sizes above zero",
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
        raise UnsupportedError(f"{what}: Do not support such data type", expected="a number type", got=repr(d),
                               fix="use flow.float32")
    return not d.is_floating_point


def _number(what: str, name: str, value: Any, integer: bool = False, *, least: float = -math.inf,
            finite: bool = True) -> float:
    """`value`, also a NumPy scalar, as a Python number >= least."""
    try:
        number = int(value) if integer else float(value)
        if not (finite and not math.isfinite(number)) and not number < least:
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    raise ArgumentError(f"{what}: {name} is not a number it can use", got=repr(value), fix=f"pass {name}=0.1, say",
                        expected="a finite number" + (f" >= {least}" if least > -math.inf else ""))


def _choice(what: str, name: str, value: Any, options: tuple, error: type) -> Any:
    if value not in options:
        raise error(f"{what}: {name} is unknown", expected=f"one of {', '.join(map(repr, options))}", got=repr(value),
                    fix=f"write {name}={options[0]!r}, say")
    return value
