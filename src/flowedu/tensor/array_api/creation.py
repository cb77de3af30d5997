"""Functions of the standard that create arrays."""
from __future__ import annotations

import array
import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.promote import cast
from flowedu.core.values import dtype as dt
from flowedu.core.values.dtype import get_default_dtype
from flowedu.errors import ArgumentError
from flowedu.tensor import elementwise as E
from flowedu.tensor.arguments.types import Device, Number
from flowedu.tensor.array_api.adapters import make_filled
from flowedu.tensor.construction import creation
from flowedu.tensor.interop import protocols
from flowedu.tensor.shapes import join_and_pad as J
from flowedu.tensor.shapes import reshape_and_permute as S

empty, ones, zeros = map(make_filled, (creation.empty, creation.ones, creation.zeros))


def full(shape: int | Sequence[int], fill_value: Number, *, dtype: dt.dtype | None = None,
         device: Device | None = None) -> Tensor:
    """Return an array filled with a number."""
    return creation.full(shape, fill_value, dtype=dtype, device=device)


def from_dlpack(x: Any, /, *, device: Device | None = None, copy: builtins.bool | None = None) -> Tensor:
    """Return the array of another library that exports DLPack."""
    return protocols.from_dlpack(x, device=device, copy=copy)


def linspace(start: Number, stop: Number, /, num: int, *, dtype: dt.dtype | None = None,
             device: Device | None = None, endpoint: builtins.bool = True) -> Tensor:
    """Return `num` evenly spaced numbers from start to stop."""
    return creation.linspace(start, stop, num if endpoint else num + 1, dtype=dtype, device=device)[:num]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> Sequence[Tensor]:
    """Return the coordinates of the points of a grid, an array per axis."""
    return J.meshgrid(*arrays, indexing=indexing)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Return x with zeros above the k-th diagonal."""
    return J.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Return x with zeros below the k-th diagonal."""
    return J.triu(x, k)


def asarray(obj: Any, /, *, dtype: dt.dtype | None = None, device: Device | None = None,
            copy: builtins.bool | None = None) -> Tensor:
    """Return an array from numbers, nested lists, a buffer, or an array, without a copy where possible."""
    data = np.asarray(obj) if isinstance(obj, (memoryview, bytearray, array.array)) else obj
    y = creation.as_tensor(data, dtype, obj.device if device is None and isinstance(obj, Tensor) else device)
    shared = y is obj or isinstance(data, np.ndarray) and np.shares_memory(data, y.numpy())
    if copy is False and not shared:
        raise ArgumentError("asarray: a copy is needed", expected="copy=None", got="copy=False",
                            fix="leave copy out")
    return E.clone(y) if copy and shared else y


def arange(start: Number, /, stop: Number | None = None, step: Number = 1, *, dtype: dt.dtype | None = None,
           device: Device | None = None) -> Tensor:
    """Return start, start + step, ... before stop, or an empty array if the step leads away from it."""
    start, stop = (0, start) if stop is None else (start, stop)
    stop = start + 0 * (stop - start) if (stop - start) * step < 0 else stop
    return creation.arange(start, stop, step, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: dt.dtype | None = None,
        device: Device | None = None) -> Tensor:
    """Return a matrix with ones on the k-th diagonal."""
    n_cols = n_rows if n_cols is None else n_cols
    k = builtins.max(-n_rows, builtins.min(k, n_cols))      # int64 holds it, and the result is the same
    rows, columns = creation.arange(n_rows, device=device), creation.arange(n_cols, device=device)
    return cast(E.eq(S.unsqueeze(rows, 1) + k, columns), dtype or get_default_dtype())
