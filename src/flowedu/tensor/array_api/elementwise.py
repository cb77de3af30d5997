"""Elementwise functions of the standard."""
from __future__ import annotations

import numpy as np

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.promote import cast
from flowedu.tensor import elementwise as E
from flowedu.tensor.arguments.types import Number
from flowedu.tensor.array_api.adapters import make_binary, promote
from flowedu.tensor.construction.creation import zeros_like
from flowedu.tensor.indexing import nonzero_positions
from flowedu.tensor.interop import protocols

add, subtract = make_binary(E.add), make_binary(E.sub)
multiply, divide = make_binary(E.mul), make_binary(E.div)
floor_divide, remainder = make_binary(E.floor_divide), make_binary(E.remainder)
pow, hypot, atan2 = make_binary(E.pow), make_binary(E.hypot), make_binary(E.atan2)
copysign, logaddexp = make_binary(E.copysign), make_binary(E.logaddexp)
maximum, minimum = make_binary(E.maximum), make_binary(E.minimum)
equal, not_equal = make_binary(E.eq), make_binary(E.ne)
less, less_equal = make_binary(E.lt), make_binary(E.le)
greater, greater_equal = make_binary(E.gt), make_binary(E.ge)
logical_and, logical_or = make_binary(E.logical_and), make_binary(E.logical_or)
logical_xor = make_binary(E.logical_xor)
bitwise_and, bitwise_or = make_binary(E.bitwise_and), make_binary(E.bitwise_or)
bitwise_xor = make_binary(E.bitwise_xor)
bitwise_left_shift = make_binary(E.bitwise_left_shift)
bitwise_right_shift = make_binary(E.bitwise_right_shift)
nextafter = make_binary(lambda x1, x2: protocols.alike(
    np.nextafter(nonzero_positions.data("nextafter", x1), nonzero_positions.data("nextafter", x2)), x1))


def where(condition: Tensor, x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """Return x1 where the condition is True, and x2 elsewhere."""
    return E.where(condition, *promote(x1, x2))


def conj(x: Tensor, /) -> Tensor:
    """Return x, because flowedu has no complex numbers."""
    return E.positive(x)


def real(x: Tensor, /) -> Tensor:
    """Return x, because flowedu has no complex numbers."""
    return E.positive(x)


def imag(x: Tensor, /) -> Tensor:
    """Return zeros, because flowedu has no complex numbers."""
    return zeros_like(x)


def sign(x: Tensor, /) -> Tensor:
    """Return -1, 0, or 1; NaN for NaN, for which PyTorch's function returns 0."""
    return E.where(E.isnan(x), x, E.sign(x))


def clip(x: Tensor, /, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Tensor:
    """Return x with each element limited to [min, max]."""
    low, high = (cast(b, x.dtype) if isinstance(b, Tensor) else b for b in (min, max))
    return E.clone(x) if low is None and high is None else E.clamp(x, low, high)
