"""Element types. Each `dtype`, such as `flow.float32`, has one instance, so `is` compares dtypes.

Names and aliases follow OneFlow 0.4 and later: float = float32, double = float64, half = float16,
int = int32, long = int64, short = int16, char = NumPy's byte. int16 is from PyTorch only.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from flowedu.core.values import thread_state
from flowedu.errors import values as errors
from flowedu.errors.element_types import instead


class dtype:
    """One element type.

    Further attributes: is_floating_point, is_signed, is_complex; limits, as (min, max).

    Args:
        name: name in the package `flow`, such as "float32".
        code: number in _kernels/core/abi.h; -1 if there are no kernels.
        numpy: NumPy scalar type; None for bfloat16, record, and tensor_buffer.
        bytes: size of an element in bytes if `numpy` is None; default: 0.
    """

    __slots__ = ("bytes", "code", "is_complex", "is_floating_point", "is_signed", "limits", "name",
                 "numpy")

    def __init__(self, name: str, code: int, numpy: type | None, bytes: int = 0):
        self.name, self.code = name, code
        self.numpy: np.dtype | Any = None if numpy is None else np.dtype(numpy)
        self.bytes = bytes if self.numpy is None else self.numpy.itemsize
        self.is_floating_point, self.is_complex = "float" in name, False
        self.is_signed = self.is_floating_point or name[:3] == "int" or name == "char"
        bits = 1 if name == "bool" else 8 * self.bytes - self.is_signed
        self.limits = -2 ** bits * self.is_signed, 2 ** bits - 1

    def __repr__(self) -> str:
        return f"flowedu.{self.name}"

    def __reduce__(self) -> tuple:
        return by_name, (self.name,)


float32 = dtype("float32", 0, np.float32)
float64 = dtype("float64", 1, np.float64)
int32 = dtype("int32", 2, np.int32)
int64 = dtype("int64", 3, np.int64)
int8 = dtype("int8", 4, np.int8)
uint8 = dtype("uint8", 5, np.uint8)
bool_ = dtype("bool", 6, np.bool_)
float16 = dtype("float16", 7, np.float16)
bfloat16 = dtype("bfloat16", 8, None, 2)
int16 = dtype("int16", 9, np.int16)
char = dtype("char", -1, np.byte)
record, tensor_buffer = dtype("record", -1, None), dtype("tensor_buffer", -1, None)

FLOATS, HALVES = (float32, float64), (float16, bfloat16)    # FLOATS: dtypes of every float kernel
NUMBERS = (float32, float64, int32, int64)          # dtypes of the kernels for any numbers
BY_CODE = (float32, float64, int32, int64, int8, uint8, bool_, float16, bfloat16, int16)
_ALL = (*BY_CODE, char, record, tensor_buffer)
_BY_NUMPY = {d.numpy: d for d in BY_CODE if d.numpy is not None}
_BY_NAME = {d.name: d for d in _ALL}


def by_name(name: str) -> dtype:
    """Return the element type named `name`, such as "float32". Raises DTypeError."""
    if name not in _BY_NAME:
        raise errors.unknown_dtype_name(name, _BY_NAME)
    return _BY_NAME[name]


def dtypes() -> list[dtype]:
    """Return all element types."""
    return list(_ALL)


def as_dtype(d: object, what: str = "dtype") -> dtype:
    """Return `d` if it is a dtype, else the one that matches a NumPy dtype or Python type.

    Raises DTypeError, whose text names the argument `what`.
    """
    if isinstance(d, dtype):
        return d
    try:
        return _BY_NUMPY[np.dtype(d)]  # type: ignore[call-overload]  # NumPy checks `d`
    except (TypeError, ValueError, KeyError):
        names = ", ".join(x.name for x in BY_CODE)
        raise errors.unknown_dtype(what, names, d, instead(d)) from None


# ---- the dtype of Python floats
_default = float32


def get_default_dtype() -> dtype:
    """Return the dtype of tensors made from Python floats; float32 by default."""
    return _default


def set_default_dtype(d: dtype) -> None:
    """Set the dtype of tensors made from Python floats. Raises DTypeError for integers.

    Args:
        d: floating dtype, as a flow.dtype, NumPy dtype, or Python type.
    """
    global _default
    d = as_dtype(d, "set_default_dtype: d")
    if not d.is_floating_point:
        raise errors.default_dtype(d)
    _default = d
    thread_state.changes += 1
