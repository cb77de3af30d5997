"""Elementwise ops that OneFlow 0.4 does not have: bitwise ops, and further functions of tensors."""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from flowedu.core.ops.define import Op
from flowedu.core.ops.elementwise import div, exp, neg, sign, square, unary, zeros_of
from flowedu.core.ops.promote import DIVIDING
from flowedu.core.ops.record import Laws
from flowedu.core.ops.tiled import elementwise
from flowedu.ops.functions import as_input


# ---- bitwise ops of integers
def _bits(name: str, ref: Callable, shift: bool = False) -> Op:
    return elementwise(f"{name}(x, y) -> z",
                       Laws(domain={"x": "index:99", "y": "index:9" if shift else "index:99"},
                            float_only=False), tile=name,
                       ref=lambda x, y: ref(x, y))


bit_and = _bits("bit_and", np.bitwise_and)
bit_or = _bits("bit_or", np.bitwise_or)
bit_xor = _bits("bit_xor", np.bitwise_xor)
shift_left = _bits("shift_left", np.left_shift, shift=True)
shift_right = _bits("shift_right", np.right_shift, shift=True)

# ---- functions


def _erfinv(x: np.ndarray) -> np.ndarray:
    from statistics import NormalDist  # here: it brings fractions and decimals along

    def one(v: float) -> float:
        if not -1 < v < 1:
            return math.copysign(math.inf, v) if abs(v) == 1 else math.nan
        return NormalDist().inv_cdf((1 + v) / 2) / math.sqrt(2)
    return np.vectorize(one, otypes=[np.float64])(x)


trunc = unary("trunc", lambda x: np.trunc(x), lambda dy: zeros_of(dy))
exp2 = unary("exp2", lambda x: np.exp2(x), lambda dy, y: dy * y * math.log(2))
log2 = unary("log2", lambda x: np.log2(x), lambda dy, x: dy / (x * math.log(2)), domain="positive")
log10 = unary("log10", lambda x: np.log10(x), lambda dy, x: dy / (x * math.log(10)), domain="positive")
erfinv = unary("erfinv", as_input(_erfinv), lambda dy, y: dy * exp(square(y)) * (math.sqrt(math.pi) / 2),
               domain="unit")
fmod = elementwise("fmod(x, y) -> z", Laws(domain={"x": "unit", "y": "above_one"}, float_only=False),
                   tile="fmod", ref=lambda x, y: np.fmod(x, y),
                   grad={"x": lambda dz: dz, "y": lambda dz, x, y: neg(dz * trunc(div(x, y)))})
DIVIDING.add(fmod)
copysign = elementwise("copysign(x, y) -> z", tile="copysign", ref=lambda x, y: np.copysign(x, y),
                       grad={"x": lambda dz, x, z: dz * (sign(x) * sign(z))})
