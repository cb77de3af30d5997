"""finfo and iinfo: the numerical limits of a dtype."""
from __future__ import annotations

import math

import numpy as np

from flowedu.core.values.dtype import as_dtype, bfloat16, dtype, get_default_dtype
from flowedu.errors import DTypeError


class finfo:
    """Limits of a floating dtype.

    Attributes: bits, eps, max, min, tiny (also smallest_normal), resolution, and dtype (its name).

    Args:
        type: floating dtype; default: the default dtype.
    """

    def __init__(self, type: dtype | None = None) -> None:
        d = get_default_dtype() if type is None else as_dtype(type)
        if not d.is_floating_point:
            raise DTypeError("finfo: the dtype is not a floating one", got=repr(d), expected="float32, say",
                             fix="flow.iinfo is for integers")
        self.dtype, self.bits = d.name, 8 * d.bytes
        if d is bfloat16:                                # float32 with 7 of its 23 fraction bits
            self.eps, self.tiny, self.resolution = 2.0 ** -7, 2.0 ** -126, 0.01
            self.max = float((2 - 2.0 ** -7) * 2.0 ** 127)
        else:
            info = np.finfo(d.numpy)
            self.eps, self.tiny, self.max = float(info.eps), float(info.tiny), float(info.max)
            self.resolution = 10.0 ** -info.precision
        self.min, self.smallest_normal = -self.max, self.tiny

    def __repr__(self) -> str:
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
                f"eps={self.eps:g}, smallest_normal={self.tiny:g}, tiny={self.tiny:g}, dtype={self.dtype})")


def largest_below(kind: dtype, x: float) -> float:
    """Return the largest finite number of a floating dtype that is smaller than `x`."""
    info = finfo(kind)
    if x > info.max:
        return info.max
    mantissa, exponent = math.frexp(x)
    exponent -= mantissa == 0.5                           # numbers below a power of two are closer together
    spacing = max(2.0 ** (exponent - 1), info.tiny) * info.eps if x else info.tiny * info.eps
    return (math.ceil(x / spacing) - 1) * spacing


class iinfo:
    """Limits of an integer dtype: bits, max, min, and dtype (its name).

    Args:
        type: integer dtype.
    """

    def __init__(self, type: dtype) -> None:
        d = as_dtype(type)
        if d.is_floating_point or d.numpy is None or d.numpy == np.bool_:
            raise DTypeError("iinfo: the dtype is not an integer dtype", got=repr(d), expected="int32, say",
                             fix="flow.finfo is for floating dtypes")
        info = np.iinfo(d.numpy)
        self.dtype, self.bits = d.name, info.bits
        self.max, self.min = int(info.max), int(info.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
