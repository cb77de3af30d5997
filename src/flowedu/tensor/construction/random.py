"""Random tensors, such as rand, randn, randint, randperm, bernoulli, and multinomial.

In a graph, these functions become random nodes, which return new numbers in every run. The seed of a node is
drawn when the graph is built.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import REDUCING, cast, default_float
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from flowedu.ops.checks import require_range
from flowedu.ops.linalg import searchsorted
from flowedu.ops.order import argsort
from flowedu.ops.scan import cumsum
from flowedu.tensor import elementwise as E
from flowedu.tensor.arguments.types import Device, Number, Placement, Sbp, Sizes
from flowedu.tensor.construction.creation import check_range, from_numpy, sizes
from flowedu.tensor.construction.destination import finished, shared, spread_as, where
from flowedu.tensor.construction.generator import Generator, default_generator, draw
from flowedu.tensor.devices.conversion import beside, made_on
from flowedu.tensor.devices.device import place_of
from flowedu.tensor.devices.memory_format import like, memory_format
from flowedu.tensor.dtypes.numeric_limits import largest_below
from flowedu.tensor.shapes import reshape_and_permute as S
from flowedu.tensor.shapes import split_and_flip as P

_UNIFORM, _NORMAL, _INT = map(REGISTRY.__getitem__, ("random_uniform", "random_normal", "random_randint"))
# ---- random sources
def _float_type(what: str, dtype: dt.dtype | None) -> dt.dtype:
    kind = default_float() if dtype is None else dt.as_dtype(dtype)
    if not kind.is_floating_point:
        raise UnsupportedError(f"{what}: Only support floating dtype", expected="a floating dtype",
                               got=kind.name, fix="flow.randint for integers")
    return kind


def uniform_of(shape: Sequence[int], dtype: dt.dtype, low: Number, high: Number,
               generator: Generator | None = None) -> Tensor:
    """Draw uniform numbers in [low, high); they are below `high` even after rounding to 16 bits."""
    wide = REDUCING.get(dtype.name, dt.float32 if dtype in dt.HALVES else None)
    y = draw(_UNIFORM, (), (tuple(shape), wide or dtype, float(low), float(high)), generator)
    return y if wide is None else _cast_below(y, dtype, low, high)


def _cast_below(y: Tensor, dtype: dt.dtype, low: Number, high: Number) -> Tensor:
    """Cast numbers in [low, high), so that none is rounded up to `high`."""
    if not dtype.is_floating_point:
        return cast(y, dtype)
    top = largest_below(dtype, high) if low < high else low
    return cast(E.clamp(y, max=top if y.dtype.is_floating_point else int(top)), dtype)


def normal_of(shape: Sequence[int], dtype: dt.dtype, mean: Number, std: Number,
              generator: Generator | None = None) -> Tensor:
    """Draw normal numbers with a mean and a standard deviation."""
    if std < 0:
        raise ArgumentError("normal: normal expects std >= 0.0", expected="0 or more", got=str(std),
                            fix="std=abs(std)")
    wide = REDUCING.get(dtype.name, dt.float32 if dtype in dt.HALVES else None)
    y = draw(_NORMAL, (), (tuple(shape), wide or dtype, float(mean), float(std)), generator)
    return y if wide is None else cast(y, dtype)


def integers_of(shape: Sequence[int], low: Number, high: Number,
                generator: Generator | None = None) -> Tensor:
    """Draw int64 numbers in [low, high)."""
    if high <= low:
        raise ArgumentError("randint: random_ expects 'from' to be less than 'to'", expected="low < high",
                            got=f"low={low}, high={high}", fix="swap the two")
    return draw(_INT, (), (tuple(shape), int(low), int(high)), generator)


def rand(*size: Sizes, generator: Generator | None = None, dtype: dt.dtype | None = None,
         device: Device | None = None, requires_grad: bool = False, placement: Placement | None = None,
         sbp: Sbp | None = None) -> Tensor:
    """Return uniform random numbers in [0, 1).

    Args:
        *size: sizes of the axes.
        generator: flow.Generator; default: the one of flow.manual_seed.
        dtype: floating dtype; default: the default dtype.
        device: device of the tensor; default: the CPU.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
    """
    with made_on(place_of(device)):
        y = uniform_of(sizes(size), _float_type("rand", dtype), 0, 1, shared(placement, generator))
    return finished(y, device, requires_grad, placement, sbp)


def randn(*size: Sizes, generator: Generator | None = None, dtype: dt.dtype | None = None,
          device: Device | None = None, requires_grad: bool = False, placement: Placement | None = None,
          sbp: Sbp | None = None) -> Tensor:
    """Return normal random numbers with mean 0 and standard deviation 1.

    Args:
        *size: sizes of the axes.
        generator: flow.Generator; default: the one of flow.manual_seed.
        dtype: floating dtype; default: the default dtype.
        device: device of the tensor; default: the CPU.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
    """
    with made_on(place_of(device)):
        y = normal_of(sizes(size), _float_type("randn", dtype), 0, 1, shared(placement, generator))
    return finished(y, device, requires_grad, placement, sbp)


def randint(low: int, high: int | Sequence[int] | None = None, size: int | Sequence[int] | None = None, *,
            generator: Generator | None = None, dtype: dt.dtype | None = None, device: Device | None = None,
            requires_grad: bool = False, placement: Placement | None = None,
            sbp: Sbp | None = None) -> Tensor:
    """Return random integers in [low, high): randint(10, (2, 3)) or randint(1, 7, (2, 3)).

    Args:
        low: lower limit. If `high` is not passed, this number is the upper limit, and the lower limit is 0.
        high: upper limit, not included; default: None.
        size: sizes of the axes.
        generator: flow.Generator; default: the one of flow.manual_seed.
        dtype: dtype; default: int64.
        device: device of the tensor; default: the CPU.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
    """
    first: int = low
    end: Any = high
    if size is None and isinstance(high, (tuple, list)):  # randint(high, size)
        first, end, size = 0, low, high
    elif high is None:                                    # randint(high, size=size)
        first, end = 0, low
    if size is None:
        raise ShapeError("randint: size is missing", expected="a tuple of sizes", got="None",
                         fix="flow.randint(0, 10, (2, 3))")
    if dtype is not None and first < end:
        check_range("randint", dt.as_dtype(dtype), first, end - 1)
    with made_on(place_of(device)):
        shape = sizes((size,) if isinstance(size, int) else (tuple(size),))
        y = integers_of(shape, first, end, shared(placement, generator))
        y = y if dtype is None else _cast_below(y, dt.as_dtype(dtype), first, end)
    return finished(y, device, requires_grad, placement, sbp)


def randperm(n: int, *, generator: Generator | None = None, dtype: dt.dtype = dt.int64,
             device: Device | None = None, requires_grad: bool = False, placement: Placement | None = None,
             sbp: Sbp | None = None) -> Tensor:
    """Return the integers 0 to n - 1 in random order.

    Args:
        n: size of the vector.
        generator: flow.Generator; default: the one of flow.manual_seed.
        dtype: dtype.
        device: device of the tensor; default: the CPU.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
    """
    if n < 0:
        raise ArgumentError("randperm: n must be non-negative", expected="0 or more", got=str(n),
                            fix="check n")
    order = argsort(uniform_of((n,), dt.float64, 0, 1, shared(placement, generator)))
    return finished(cast(order, dt.as_dtype(dtype)), device, requires_grad, placement, sbp)


def rand_like(input: Tensor, *, generator: Generator | None = None, dtype: dt.dtype | None = None,
              device: Device | None = None, requires_grad: bool = False, placement: Placement | None = None,
              sbp: Sbp | None = None, memory_format: memory_format | None = None) -> Tensor:
    """Return uniform random numbers in [0, 1) with the shape of another tensor.

    Args:
        input: tensor that provides the shape.
        generator: flow.Generator; default: the one of flow.manual_seed.
        dtype: dtype; default: that of the input.
        device: device of the tensor; default: that of the input.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: that of the input.
        sbp: layout of a global tensor; default: that of the input.
        memory_format: order of the elements in memory; default: flow.contiguous_format.
    """
    y = rand(tuple(input.shape), generator=generator, dtype=dtype or input.dtype,
             **where(input, device, placement, sbp))
    return finished(like("rand_like", y, memory_format, input), None, requires_grad)


def randn_like(input: Tensor, *, generator: Generator | None = None, dtype: dt.dtype | None = None,
               device: Device | None = None, requires_grad: bool = False, placement: Placement | None = None,
               sbp: Sbp | None = None, memory_format: memory_format | None = None) -> Tensor:
    """Return normal random numbers with mean 0 and standard deviation 1 and the shape of another tensor.

    Args:
        input: tensor that provides the shape.
        generator: flow.Generator; default: the one of flow.manual_seed.
        dtype: dtype; default: that of the input.
        device: device of the tensor; default: that of the input.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: that of the input.
        sbp: layout of a global tensor; default: that of the input.
        memory_format: order of the elements in memory; default: flow.contiguous_format.
    """
    y = randn(tuple(input.shape), generator=generator, dtype=dtype or input.dtype,
              **where(input, device, placement, sbp))
    return finished(like("randn_like", y, memory_format, input), None, requires_grad)


def randint_like(input: Tensor, low: int, high: int | None = None, *, generator: Generator | None = None,
                 dtype: dt.dtype | None = None, device: Device | None = None, requires_grad: bool = False,
                 placement: Placement | None = None, sbp: Sbp | None = None,
                 memory_format: memory_format | None = None) -> Tensor:
    """Return random integers in [low, high) with the shape of another tensor.

    Args:
        input: tensor that provides the shape.
        low: lower limit. If `high` is not passed, this number is the upper limit, and the lower limit is 0.
        high: upper limit, not included; default: None.
        generator: flow.Generator; default: the one of flow.manual_seed.
        dtype: dtype; default: that of the input.
        device: device of the tensor; default: that of the input.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: that of the input.
        sbp: layout of a global tensor; default: that of the input.
        memory_format: order of the elements in memory; default: flow.contiguous_format.
    """
    low, high = (0, low) if high is None else (low, high)
    y = randint(low, high, tuple(input.shape), generator=generator, dtype=dtype or input.dtype,
                **where(input, device, placement, sbp))
    return finished(like("randint_like", y, memory_format, input), None, requires_grad)


def normal(mean: Tensor | float, std: Tensor | float = 1.0, size: int | Sequence[int] | None = None, *,
           generator: Generator | None = None, dtype: dt.dtype | None = None, device: Device | None = None,
           requires_grad: bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> Tensor:
    """Return normal random numbers, of shape `size` or one for each element of the tensors mean and std.

    Args:
        mean: number or tensor.
        std: number or tensor.
        size: sizes of the axes, if mean and std are numbers; default: None.
        generator: flow.Generator; default: the one of flow.manual_seed.
        dtype: floating dtype; default: the default dtype.
        device: device of the tensor; default: the CPU.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
    """
    if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        if size is None:
            raise ShapeError("normal: size is missing", expected="normal(mean, std, size)", got="None",
                             fix="size=(2, 3)")
        shape = sizes((size,) if isinstance(size, int) else (tuple(size),))
        generator = shared(placement, generator)
        return finished(normal_of(shape, _float_type("normal", dtype), mean, std, generator), device,
                        requires_grad, placement, sbp)
    problem, expected, fix = "normal: normal expects all elements of std >= 0.0", "0 or more", "std=std.abs()"
    if isinstance(std, Tensor):
        std = require_range(std, 0, problem=problem, expected=expected, fix=fix, nan=True)
    elif std < 0:
        raise ArgumentError(problem, expected=expected, got=str(std), fix=fix)
    like: Any = mean if isinstance(mean, Tensor) else std
    shape = S.broadcast_shapes(*[x.shape for x in (mean, std) if isinstance(x, Tensor)])
    with made_on(like._device):
        noise = normal_of(shape, like.dtype, 0, 1, shared(where(like).get("placement", placement), generator))
    return finished(mean + std * spread_as(noise, like), device, requires_grad, placement, sbp)


def _uniform_beside(x: Tensor, shape: Sequence[int], dtype: dt.dtype, generator: Generator | None) -> Tensor:
    """Draw uniform values in [0, 1) to combine with x; for a global x the same values on every rank."""
    return spread_as(uniform_of(shape, dtype, 0, 1, shared(where(x).get("placement"), generator)), x)


def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """Return random zeros and ones in the dtype of the input.

    Args:
        input: probabilities of 1, of any shape.
        p: one probability for all elements; default: None, use the input.
        generator: flow.Generator; default: the one of flow.manual_seed.
    """
    if p is None:
        if not input.dtype.is_floating_point:
            raise DTypeError("bernoulli: the input does not hold probabilities", expected="a floating dtype",
                             got=input.dtype.name, fix="x.float(), or bernoulli(x, p)")
        chance: Tensor | float = _probabilities("bernoulli: Expected p_in >= 0 && p_in <= 1", input.detach())
    else:
        _check_probability(p)
        chance = p
    kind = dt.float64 if input.dtype is dt.float64 else dt.float32        # 16 bits would round probabilities
    with made_on(input._device):
        drawn = _uniform_beside(input, tuple(input.shape), kind, generator)
    return cast(E.lt(drawn, chance), input.dtype)


def _probabilities(problem: str, p: Tensor) -> Tensor:
    return require_range(p, 0, 1, problem=problem, expected="0 to 1",
                         fix="flow.sigmoid(x) makes probabilities")


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise ArgumentError("bernoulli: bernoulli_ expects p to be in [0, 1]", expected="0 to 1", got=str(p),
                            fix="p=0.5")


def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *,
                generator: Generator | None = None) -> Tensor:
    """Draw int64 positions in each row, with probabilities proportional to the weights.

    Args:
        input: weights (n,) or (rows, n), which need not sum to 1.
        num_samples: number of draws per row.
        replacement: if True, a position may be drawn several times.
        generator: flow.Generator; default: the one of flow.manual_seed.
    """
    if input.ndim not in (1, 2) or not input.dtype.is_floating_point:
        raise ShapeError("multinomial: the input must be a vector or a matrix of floats",
                         expected="1 or 2 axes",
                         got=f"{input.dtype.name} {tuple(input.shape)}", fix="weights.reshape(-1).float()")
    if not input.shape[-1] or num_samples < 1:
        raise ArgumentError("multinomial: cannot sample n_sample <= 0 samples, nor from no weights",
                            got=f"{num_samples}, {tuple(input.shape)}",
                            expected="one sample or more, one weight or more", fix="num_samples=1")
    p = _weights(cast(input.detach(), dt.float64), 1 if replacement else num_samples)
    with made_on(p._device):
        return _multinomial(p, p.shape[-1], num_samples, replacement, generator)


def _weights(p: Tensor, least: int) -> Tensor:
    """Return the weights as float64, checked: finite, >= 0, at least `least` positive ones in each row."""
    p = require_range(p, 0, np.finfo(np.float64).max, problem="multinomial: invalid multinomial distribution",
                      expected="weights of 0 or more, not all 0", fix="clamp the weights at 0")
    count = E.gt(p, 0).sum(-1)
    p = require_range(p, 1, tested=count, problem="multinomial: invalid multinomial distribution",
                      expected="weights of 0 or more, not all 0", fix="check the weights for rows of zeros")
    return p if least == 1 else require_range(
        p, least, tested=count, problem="multinomial: cannot sample n_sample > prob_dist.size(-1) samples "
        "without replacement", expected=f"{least} weights above 0", fix="replacement=True, or fewer samples")


def _multinomial(p: Tensor, n: int, num_samples: int, replacement: bool,
                 generator: Generator | None) -> Tensor:
    if replacement:                                       # position of a uniform number in the running sum
        total = cumsum(p, axis=p.ndim - 1)
        drawn = _uniform_beside(p, (*p.shape[:-1], num_samples), dt.float64, generator)
        drawn = drawn * P.part(total, p.ndim - 1, n - 1, n)
        return E.clamp(searchsorted(total, drawn, right=True), max=n - 1)
    # Take the smallest waiting times.
    clocks = -E.log1p(-_uniform_beside(p, tuple(p.shape), dt.float64, generator)) / p
    race = E.where(E.gt(p, 0), clocks, float("inf"))
    return cast(P.part(argsort(race), p.ndim - 1, 0, num_samples), dt.int64)


def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Return Poisson random numbers; not supported in graphs.

    Args:
        input: rates, of any shape.
        generator: flow.Generator; default: the one of flow.manual_seed.
    """
    from flowedu.tensor.indexing.nonzero_positions import data
    rates = data("poisson", input)
    if not ((rates >= 0) & (rates < 2.0 ** 62)).all():
        raise ArgumentError("poisson: invalid Poisson rate, expected all rates to be non-negative",
                            expected="0 to 2**62",
                            got=f"{rates.min()} to {rates.max()}", fix="rates.clamp(0)")
    s, d = (shared(where(input).get("placement"), generator) or default_generator).next()
    y = np.random.Generator(np.random.Philox(key=[s, d])).poisson(rates)
    return cast(spread_as(beside(from_numpy(np.asarray(y, np.float64)), input), input), input.dtype)


# ---- new values that inplace/history.py writes into the tensor
def uniform(self: Tensor, low: float = 0.0, high: float = 1.0, *,
            generator: Generator | None = None) -> Tensor:
    """Draw values from the uniform distribution over [low, high)."""
    if low > high:
        raise ArgumentError("uniform_: uniform_ expects to return a [from, to) range, but found from > to",
                            expected="from <= to", got=f"{low} > {high}", fix="swap the two")
    return uniform_of(tuple(self.shape), self.dtype, low, high, generator)


def normal_like(self: Tensor, mean: float = 0.0, std: float = 1.0, *,
                generator: Generator | None = None) -> Tensor:
    """Draw values from the normal distribution with the given mean and standard deviation."""
    return normal_of(tuple(self.shape), self.dtype, mean, std, generator)


def exponential(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Draw values from the exponential distribution, with density lambd * exp(-lambd * x)."""
    if not lambd > 0:
        raise ArgumentError("exponential_: exponential_ expects lambda > 0.0", expected="above 0",
                            got=str(lambd), fix="lambd=1.0")
    # Rounded once, from the float32 stream.
    kind = dt.float32 if self.dtype in dt.HALVES else self.dtype
    return cast(-E.log1p(-uniform_of(tuple(self.shape), kind, 0, 1, generator)) * (1.0 / lambd), self.dtype)


def random(self: Tensor, low: int = 0, high: int | None = None, *,
           generator: Generator | None = None) -> Tensor:
    """Draw integers from [low, high), or from [0, n) for random_(n)."""
    if high is None:
        low, high = (0, low) if low else (0, {"bool": 2, "int8": 128, "uint8": 256, "int16": 1 << 15,
                                              "float16": 2049,
                                              "bfloat16": 257,
                                              "float32": 1 << 24}.get(self.dtype.name, (1 << 31) - 1))
    elif low < high:
        check_range("random_", self.dtype, low, high - 1)
    return _cast_below(integers_of(tuple(self.shape), low, high, generator), self.dtype, low, high)


def bernoulli_like(self: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Draw ones with probability p, a number or a tensor, and otherwise zeros."""
    if isinstance(p, Tensor):
        p = _probabilities("bernoulli_: Expected p_in >= 0 && p_in <= 1", p.detach())
    else:
        _check_probability(p)
    with made_on(self._device):
        drawn = _uniform_beside(self, tuple(self.shape), dt.float32, generator)
    return cast(E.lt(drawn, p), self.dtype)


def trunc_normal(self: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, *,
                 generator: Generator | None = None) -> Tensor:
    """Draw values from a normal distribution that is truncated to [a, b]."""
    from math import erf, sqrt
    if not std > 0:
        raise ArgumentError("trunc_normal_: std is not positive", expected="above 0", got=str(std),
                            fix="std=1.0")
    low, high = (erf((x - mean) / (std * sqrt(2))) for x in (a, b))
    u = uniform_of(tuple(self.shape), dt.float64, low, max(high, np.nextafter(low, 2.0)), generator)
    y = E.erfinv(u) * (std * sqrt(2)) + mean
    return cast(E.clamp(y, a, b), self.dtype)


