"""Sources of random numbers, and dropout.

Every random number is a function of the seed, the draw, and its position (_kernels/ops/random.pyx). `philox`
is the same generator in NumPy, so the reference functions return exactly the values of the kernels. `seed`
and `draw` are always the first two integers of `pack`. A compiled plan replaces `draw` by the number of its
run, so that each run draws new numbers.
"""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flowedu._kernels import register
from flowedu.core.ops import axes
from flowedu.core.ops.define import define
from flowedu.core.ops.record import Effects, Kernel, Laws, Meaning, Split
from flowedu.core.values.dtype import dtype, float32, float64, int8, int64
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError, DTypeError, ShapeError
from flowedu.ops.types import Shape

register("random")

_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def philox(seed: int, draw: int, blocks: int) -> np.ndarray:
    """Return the 4 * blocks words of a draw, 32-bit numbers in a uint64 array.

    The generator is Philox4x32-10 with key `seed` and counters (block, draw).
    """
    block = np.arange(blocks, dtype=np.uint64)
    c0: Any = block & _LOW
    c1: Any = block >> _HALF
    c2: Any
    c3: Any
    c2, c3 = np.uint64(draw & 0xFFFFFFFF), np.uint64(draw >> 32 & 0xFFFFFFFF)
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
    for _ in range(10):
        p0, p1 = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1 = (p1 >> _HALF) ^ c1 ^ np.uint64(k0), p1 & _LOW
        c2, c3 = (p0 >> _HALF) ^ c3 ^ np.uint64(k1), p0 & _LOW
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(np.broadcast_arrays(c0, c1, c2, c3), axis=1).reshape(-1)


def _unit53(seed: int, draw: int, n: int) -> np.ndarray:
    """Return n doubles in [0, 1) of 53 bits, from two words each."""
    w = philox(seed, draw, -(-n // 2))
    return (((w[0::2] >> np.uint64(5)) * 67108864.0 + (w[1::2] >> np.uint64(6))) * 2.0 ** -53)[:n]


def _unit24(seed: int, draw: int, n: int) -> np.ndarray:
    """Return n integers in [0, 2**24), from one word each."""
    return philox(seed, draw, -(-n // 4))[:n] >> np.uint64(8)


def _uniform_ref(shape: Shape, dtype: dtype, low: float, high: float, seed: int, draw: int) -> np.ndarray:
    n, low, high = prod(shape), dtype.numpy.type(low), dtype.numpy.type(high)
    u = (_unit53(seed, draw, n) if dtype is float64 else _unit24(seed, draw,
                                                                 n).astype(np.float32) * np.float32(2 ** -24))
    return np.minimum(u * (high - low) + low, np.nextafter(high, low)).reshape(shape)


def _normal_ref(shape: Shape, dtype: dtype, mean: float, std: float, seed: int, draw: int) -> np.ndarray:
    n = prod(shape)
    u = _unit53(seed, draw, n + n % 2)
    radius, angle = np.sqrt(-2 * np.log(1 - u[0::2])), 2 * np.pi * u[1::2]
    z = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)[:n]
    return (mean + std * z).astype(dtype.numpy).reshape(shape)


def _randint_ref(shape: Shape, low: int, high: int, seed: int, draw: int) -> np.ndarray:
    w = philox(seed, draw, -(-prod(shape) // 2))
    width = np.uint64(high - low)
    y = (w[1::2] * width + (w[0::2] * width >> _HALF)) >> _HALF
    return (y[:prod(shape)].astype(np.int64) + low).reshape(shape)


def _source_axes(shape: Shape) -> str:
    """Upper case: a position's number must not depend on how the result is cut."""
    return "->" + axes.same(len(shape)).upper()


def _check_float(name: str, dtype: dtype) -> None:
    if dtype not in (float32, float64):
        raise DTypeError(f"{name}: no kernel for this element type", expected="float32 or float64",
                         got=dtype.name, fix="draw float32 and cast, or use random_randint")


def _check_uniform(dtype: dtype, low: float, high: float) -> None:
    _check_float("random_uniform", dtype)
    if not low <= high:
        raise ArgumentError("random_uniform: the range is empty", expected="low <= high",
                            got=f"low={low}, high={high}")


random_uniform = define(
    "random_uniform(*, shape, dtype, low=0.0, high=1.0, seed=0, draw=0) -> y",
    Meaning(_source_axes, _uniform_ref, shape=lambda shape: shape, dtype=lambda dtype: dtype,
            check=_check_uniform),
    Kernel("random_uniform", pack=lambda seed, draw, low, high: ((seed, draw), (low, high))),
    Effects(random=True), Laws([dict(shapes=[], shape=(6, 12), dtype=float32, seed=3),
          dict(shapes=[], shape=(67,), dtype=float64, low=-2.0, high=0.5, draw=1)]),
    doc="Uniform in [low, high).")

random_normal = define(
    "random_normal(*, shape, dtype, mean=0.0, std=1.0, seed=0, draw=0) -> y",
    Meaning(_source_axes, _normal_ref, shape=lambda shape: shape, dtype=lambda dtype: dtype,
            check=lambda dtype: _check_float("random_normal", dtype)),
    Kernel("random_normal", pack=lambda seed, draw, mean, std: ((seed, draw), (mean, std))),
    Effects(random=True), Laws([dict(shapes=[], shape=(6, 12), dtype=float32, seed=3),
          dict(shapes=[], shape=(67,), dtype=float64, mean=-2.0, std=0.5, draw=1)]),
    doc="Normal with the given mean and standard deviation.")


def _check_range(low: int, high: int) -> None:
    if not 0 < high - low <= 2 ** 32:
        raise ArgumentError("random_randint: the range is empty or too wide",
                            expected="low < high <= low + 2**32", got=f"low={low}, high={high}")


random_randint = define(
    "random_randint(*, shape, low=0, high, seed=0, draw=0) -> y",
    Meaning(_source_axes, _randint_ref, shape=lambda shape: shape, dtype=lambda: int64, check=_check_range),
    Kernel("random_randint", pack=lambda seed, draw, low, high: ((seed, draw, low, high), ())),
    Effects(random=True), Laws([dict(shapes=[], shape=(6, 12), low=-3, high=10, seed=3)]),
    doc="int64 in [low, high), each equally likely to within 2**-32.")


def _check_rate(rate: float) -> None:
    if not 0 <= rate <= 1:
        raise ArgumentError("dropout: rate is not a probability",
                            expected="0 <= rate <= 1, the share of zeros",
                            got=str(rate), fix="rate=0.5 drops half of the values")


random_mask_like = define(
    "random_mask_like(x, *, rate, seed=0, draw=0) -> mask",
    Meaning(lambda x: "{0}->{0}".format(axes.same(x.ndim).upper()),
            lambda x, rate, seed, draw: (_unit24(seed, draw, x.size) > rate * 2.0 ** 24).astype(
                np.int8).reshape(x.shape), dtype=lambda: int8, check=_check_rate),
    Kernel("random_mask_like", pack=lambda seed, draw, rate: ((seed, draw), (rate,)), contiguous=False),
    Effects(random=True),
    Laws([dict(shapes=[(6, 12)], rate=0.5, seed=3), dict(shapes=[(67,)], rate=0.1, draw=2)],
         float_only=False),
    doc="int8 ones and zeros of x's shape, zero with probability `rate`; x is not read.")


def _check_dropout(x: Spec, mask: Spec) -> None:
    if mask.dtype is not int8:
        raise DTypeError("dropout: the mask is not int8", expected="int8 ones and zeros", got=mask.dtype.name,
                         fix="make it with random_mask_like")
    if mask.shape != x.shape:
        raise ShapeError("dropout: the mask has another shape", expected=str(x.shape), got=str(mask.shape))


dropout = define(
    "dropout(x, mask, *, scale) -> y",
    Meaning(lambda x: "{0},{0}->{0}".format(axes.same(x.ndim)),
            lambda x, mask, scale: np.where(mask, x * x.dtype.type(scale), x.dtype.type(0)),
            check=_check_dropout),
    Kernel("dropout", pack=lambda scale: ((), (scale,)), inplace=["x"]), Split(linear=["x"]),
    Laws([dict(shapes=[(6, 12), (6, 12)], scale=2.0)], domain={"mask": "mask"}),
    grad={"x": lambda dy, mask, scale: dropout(dy, mask, scale=scale)}, doc="x * mask * scale.")
