"""Launches of random numbers and dropout. ints of every source: [seed, draw, ...]."""
from __future__ import annotations

import math

import numpy as np

from flowedu.cuda.launch import ALL, Call, kernel


@kernel("random_uniform", file="random.cu")
def uniform(call: Call) -> None:
    """reals: [low, high]."""
    y, (low, high) = call.args[-1], call.reals
    if y.dtype.bytes == 4:
        with np.errstate(all="ignore"):
            top = float(np.nextafter(np.float32(high), np.float32(low)))
    else:
        top = math.nextafter(high, low)
    call.each("random_uniform", y.size, *call.ints[:2], low, high, top, y.pointer, n=y.size)


@kernel("random_normal", file="random.cu")
def normal(call: Call) -> None:
    """reals: [mean, std]."""
    y = call.args[-1]
    call.each("random_normal", y.size, *call.ints[:2], *call.reals, y.pointer, n=y.size)


@kernel("random_mask_like", types=ALL)
def mask_like(call: Call) -> None:
    """reals: [rate]."""
    y = call.args[-1]
    limit = int(min(max(call.reals[0] * 2.0 ** 24, 0.0), 2.0 ** 24))
    call.each("random_mask", y.size, *call.ints[:2], limit, y.pointer, n=y.size, file="random.cu", t="float")


@kernel("random_randint", types=(3,))
def randint(call: Call) -> None:
    """ints: [seed, draw, low, high]."""
    y = call.args[-1]
    seed, draw, low, high = call.ints
    call.each("random_randint", y.size, seed, draw, low, high - low, y.pointer, n=y.size, file="random.cu",
              t="float")


@kernel("dropout", file="random.cu")
def dropout(call: Call) -> None:
    """reals: [scale]. x, mask -> y."""
    x, mask, y = call.args
    call.each("dropout", y.size, call.reals[0], x.pointer, mask.pointer, y.pointer, n=y.size)
