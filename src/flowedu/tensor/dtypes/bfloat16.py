"""Conversion between bfloat16 and NumPy, with the package ml_dtypes if it is installed, or via float32."""
from __future__ import annotations

import numpy as np

from flowedu.core.eager.arrays import from_numpy
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.promote import cast
from flowedu.core.values import dtype as dt
from flowedu.errors import DTypeError
from flowedu.errors.extras import install


class _Bits:
    """NumPy view of a bfloat16 tensor's memory as 16-bit integers. It keeps the tensor alive."""

    def __init__(self, x: Tensor) -> None:
        self.tensor = x
        self.__array_interface__ = {"data": (x.data_ptr(), False), "shape": tuple(x.shape), "typestr": "<u2",
                                    "version": 3, "strides": tuple(2 * s for s in x.stride())}


def to_ml_dtypes(x: Tensor) -> np.ndarray:
    """Return the memory as an array of ml_dtypes.bfloat16; raise DTypeError if ml_dtypes is not installed."""
    try:
        import ml_dtypes
    except ImportError:
        raise DTypeError("numpy: NumPy has no bfloat16",
                         expected="a dtype NumPy has, or the package ml_dtypes",
                         got=repr(x.dtype), fix=f"x.float().numpy(), or {install('ml_dtypes')}") from None
    if not x.numel():
        return np.empty(tuple(x.shape), ml_dtypes.bfloat16)
    return np.asarray(_Bits(x)).view(ml_dtypes.bfloat16)


def of_bits(bits: np.ndarray) -> Tensor:
    """Return the bfloat16 tensor whose bits are the given 16-bit integers."""
    whole = np.ascontiguousarray(bits).view(np.uint16).astype(np.uint32) << 16
    return cast(from_numpy(whole.view(np.float32).reshape(bits.shape)), dt.bfloat16)


def bits_of(x: Tensor) -> np.ndarray:
    """Return the bits of a bfloat16 tensor, which are the upper 16 bits of float32."""
    return (np.ascontiguousarray(x.peek()).view(np.uint32) >> 16).astype(np.uint16).reshape(tuple(x.shape))
