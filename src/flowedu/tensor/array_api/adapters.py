"""Dtypes of the standard, and adapters that give functions of flowedu its arguments and type promotion."""
from __future__ import annotations

import builtins
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.promote import cast, scalar
from flowedu.core.ops.promote import result_type as _result_type
from flowedu.core.values import dtype as dt
from flowedu.core.values.dtype import bool_ as bool
from flowedu.core.values.dtype import float32, float64, get_default_dtype, int8, int16, int32, int64, uint8
from flowedu.errors import ArgumentError, ShapeError
from flowedu.tensor.arguments.types import Axes, Device, Number
from flowedu.tensor.devices import device as devices
from flowedu.tensor.devices.conversion import beside
from flowedu.tensor.dtypes import numeric_limits
from flowedu.tensor.shapes import join_and_pad as J
from flowedu.tensor.shapes import reshape_and_permute as S

_TYPES = {"bool": bool, "int8": int8, "int16": int16, "int32": int32, "int64": int64, "uint8": uint8,
          "float32": float32, "float64": float64}
_SIGNED, _REAL = {int8, int16, int32, int64}, {float32, float64}
_KINDS = {"bool": {bool}, "signed integer": _SIGNED, "unsigned integer": {uint8},
          "integral": _SIGNED | {uint8}, "real floating": _REAL, "complex floating": set(),
          "numeric": _SIGNED | {uint8} | _REAL}


# ---- dtypes and devices
def result_type(*arrays_and_dtypes: Tensor | dt.dtype | Number) -> dt.dtype:
    """Return the promoted dtype; 0-dim arrays are promoted like other arrays, unlike in PyTorch."""
    return _result_type(*(x.dtype if isinstance(x, Tensor) else x for x in arrays_and_dtypes))


def isdtype(dtype: dt.dtype, kind: dt.dtype | str | tuple) -> builtins.bool:
    """Return True if `dtype` is of a kind (a dtype, a name such as "integral", or a tuple of these)."""
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str) and kind not in _KINDS:
        raise ArgumentError("isdtype: unknown kind of dtype", expected=", ".join(_KINDS), got=repr(kind))
    return dtype in _KINDS[kind] if isinstance(kind, str) else dtype is kind


def _limits(info: Callable, type: Tensor | dt.dtype) -> SimpleNamespace:
    kind = result_type(type)
    return SimpleNamespace(**{**vars(info(kind)), "dtype": kind})


def can_cast(from_: Tensor | dt.dtype, to: dt.dtype, /) -> builtins.bool:
    """Return True if promotion converts values of dtype `from_` to `to`."""
    return result_type(from_, to) is to


def finfo(type: Tensor | dt.dtype, /) -> SimpleNamespace:
    """Return the limits of a floating-point dtype."""
    return _limits(numeric_limits.finfo, type)


def iinfo(type: Tensor | dt.dtype, /) -> SimpleNamespace:
    """Return the limits of an integer dtype."""
    return _limits(numeric_limits.iinfo, type)


def astype(x: Tensor, dtype: dt.dtype, /, *, copy: builtins.bool = True,
           device: Device | None = None) -> Tensor:
    """Return x with another dtype."""
    return x.to(device=device or x.device, dtype=dtype, copy=copy)


def __array_namespace_info__() -> SimpleNamespace:
    """Return functions that describe the namespace: its capabilities, devices, and dtypes."""
    return SimpleNamespace(
        capabilities=lambda: {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8},
        default_device=lambda: devices.CPU,
        devices=lambda: (devices.CPU, *(devices.device("cuda", i) for i in range(devices.gpus()))),
        default_dtypes=lambda *, device=None: {
            "real floating": get_default_dtype(), "integral": int64, "indexing": int64},
        dtypes=lambda *, device=None, kind=None: {
            name: dtype for name, dtype in _TYPES.items() if kind is None or isdtype(dtype, kind)})


# ---- adapters
def promote(*values: Tensor | Number) -> list[Tensor]:
    """Return arrays and numbers as arrays of their common dtype."""
    kind, like = result_type(*values), next((x for x in values if isinstance(x, Tensor)), None)
    return [cast(x, kind) if isinstance(x, Tensor) else beside(scalar(x, kind), like) for x in values]


def make_binary(f: Callable) -> Callable[..., Tensor]:
    return lambda x1, x2, /: f(*promote(x1, x2))


def make_filled(f: Callable) -> Callable[..., Tensor]:
    return lambda shape, *, dtype=None, device=None: f(shape, dtype=dtype, device=device)


def call_reduction(f: Callable, x: Tensor, axis: Axes | None, keepdims: builtins.bool,
                   **options: Any) -> Tensor:
    """Call a reduction of flowedu, where an empty tuple of axes means all; in the standard it means none."""
    if axis == ():
        return f(S.unsqueeze(x, 0), 0, False, **options)
    return f(x, axis, keepdims, **options)


def make_reduction(f: Callable) -> Callable[..., Tensor]:
    return lambda x, /, *, axis=None, keepdims=False: call_reduction(f, x, axis, keepdims)


def make_total(f: Callable) -> Callable[..., Tensor]:
    return lambda x, /, *, axis=None, dtype=None, keepdims=False: call_reduction(
        f, x, axis, keepdims, dtype=dtype)


def make_spread(f: Callable) -> Callable[..., Tensor]:
    return lambda x, /, *, axis=None, correction=0.0, keepdims=False: call_reduction(
        lambda x, axis, keepdims: f(x, axis, None, keepdims, correction=correction), x, axis, keepdims)


def only_axis(axis: int | None, x: Tensor) -> int:
    """Return `axis`; None: 0, for an array of one axis."""
    if axis is None and x.ndim != 1:
        raise ShapeError("axis=None is for arrays of one axis", expected="(n,)", got=str(tuple(x.shape)),
                         fix="axis=0")
    return axis or 0


def _cumulate(f: Callable, initial: int, x: Tensor, axis: int | None, dtype: dt.dtype | None,
              include_initial: builtins.bool) -> Tensor:
    axis, kind = only_axis(axis, x), dtype or (x.dtype if x.dtype.is_floating_point else int64)
    if include_initial:
        start = [1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)]
        x = J.cat([x.new_full(start, initial, dtype=kind), cast(x, kind)], axis)
    return f(x, axis, dtype=kind)


def make_running(f: Callable, initial: int) -> Callable[..., Tensor]:
    return lambda x, /, *, axis=None, dtype=None, include_initial=False: _cumulate(
        f, initial, x, axis, dtype, include_initial)
