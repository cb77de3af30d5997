"""Element types. `flow.float32` and its siblings are the only instances of `dtype`, so `is` compares them.

Names and aliases as in OneFlow 0.4 and later: float = float32, double = float64, half = float16, int = int32,
long = int64, char = NumPy's byte.
"""
from __future__ import annotations

import numpy as np

from flowedu.errors import DTypeError, UnsupportedError


class dtype:
    """One element type.

    Attributes: name; code, as in _kernels/abi.h (-1: no kernels); numpy, or None for record and tensor_buffer;
    bytes; is_floating_point; is_signed.
    """

    __slots__ = ("bytes", "code", "is_floating_point", "is_signed", "name", "numpy")

    def __init__(self, name: str, code: int, numpy: type | None):
        self.name, self.code = name, code
        self.numpy = None if numpy is None else np.dtype(numpy)
        self.bytes = 0 if self.numpy is None else self.numpy.itemsize
        self.is_floating_point = name.startswith("float")
        self.is_signed = self.is_floating_point or name in ("int8", "int32", "int64", "char")

    def __repr__(self) -> str:
        return f"flowedu.{self.name}"

    def __reduce__(self):
        return self.name


float32 = dtype("float32", 0, np.float32)
float64 = dtype("float64", 1, np.float64)
int32 = dtype("int32", 2, np.int32)
int64 = dtype("int64", 3, np.int64)
int8 = dtype("int8", 4, np.int8)
uint8 = dtype("uint8", 5, np.uint8)
bool_ = dtype("bool", 6, np.bool_)
float16 = dtype("float16", 7, np.float16)
char = dtype("char", -1, np.byte)
record = dtype("record", -1, None)
tensor_buffer = dtype("tensor_buffer", -1, None)

BY_CODE = (float32, float64, int32, int64, int8, uint8, bool_, float16)
_ALL = (*BY_CODE, char, record, tensor_buffer)
_BY_NUMPY = {d.numpy: d for d in BY_CODE}


def dtypes() -> list[dtype]:
    """Every canonical element type."""
    return list(_ALL)


def convert_oneflow_dtype_to_numpy_dtype(d: dtype) -> np.dtype:
    """The NumPy type of `d`. UnsupportedError (a NotImplementedError) for record and tensor_buffer, which have none;
    DTypeError for what is no element type of flowedu."""
    what = "convert_oneflow_dtype_to_numpy_dtype"
    if not isinstance(d, dtype):
        raise DTypeError(f"{what}: not an element type of flowedu", expected="flow.float32, say", got=repr(d),
                         fix="np.dtype(d) gives the dtype of what NumPy knows")
    if d.numpy is None:
        raise UnsupportedError(f"{what}: {d.name} has no NumPy counterpart", expected="an element type of numbers",
                               got=repr(d), fix="flow.tensor_buffer_to_tensor or a decoder of records gives numbers")
    return d.numpy


def as_dtype(d: object, what: str = "dtype") -> dtype:
    """`d` itself if it is a dtype, or the one that matches a NumPy dtype or Python type.

    Raises DTypeError naming the argument `what`.
    """
    if isinstance(d, dtype):
        return d
    try:
        return _BY_NUMPY[np.dtype(d)]
    except (TypeError, KeyError):
        names = ", ".join(x.name for x in BY_CODE)
        raise DTypeError(f"{what} is not an element type flowedu knows", expected=f"one of flow.{{{names}}}",
                         got=repr(d), fix="pass flow.float32, say, or convert the array with .astype") from None
