"""testing: assert_close."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowedu import Tensor, bfloat16, tensor
from flowedu.errors import ArgumentError

# (rtol, atol), the defaults in PyTorch's documentation
_LIMITS = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5),
           "float64": (1e-7, 1e-7)}


def assert_close(actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None,
                 atol: float | None = None, equal_nan: bool = False, check_device: bool = True,
                 check_dtype: bool = True, check_layout: bool = True, check_stride: bool = False,
                 msg: str | Callable[[str], str] | None = None) -> None:
    """Raise AssertionError unless |actual - expected| <= atol + rtol * |expected| for all elements.

    Shapes, dtypes, and devices must be equal; options disable the last two checks. actual, expected:
    tensors, arrays, numbers, or lists, tuples and dicts of them. rtol, atol: both or neither; the defaults
    depend on the dtype (1.3e-6 and 1e-5 for float32, 0 for integers). msg: a replacement of the message, or
    a function of it.
    """
    if (rtol is None) != (atol is None):
        raise ArgumentError("assert_close: one tolerance without the other",
                            expected="rtol and atol, or neither",
                            got=f"rtol={rtol}, atol={atol}", fix="assert_close(a, b, rtol=1e-5, atol=1e-8)")
    rules = _Rules(None if rtol is None or atol is None else (rtol, atol), equal_nan,
                   tuple(name for name, asked in (("device", check_device), ("dtype", check_dtype)) if asked),
                   check_stride)
    difference = _difference(actual, expected, rules, "")
    if difference:
        raise AssertionError(msg(difference) if callable(msg) else msg or difference)


class _Rules(NamedTuple):
    """Rules for a pair: tolerances (None: by dtype), equal attributes, and equal strides if `stride`."""

    limits: tuple[float, float] | None
    nan: bool
    same: tuple[str, ...]
    stride: bool


def _difference(a: Any, b: Any, rules: _Rules, at: str) -> str | None:
    where = f" at {at}" if at else ""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if set(a) != set(b):
            return f"The keys of the mappings differ{where}: {sorted(map(repr, set(a) ^ set(b)))}"
        return next(filter(None, (_difference(a[k], b[k], rules, f"{at}[{k!r}]") for k in a)), None)
    if isinstance(a, (list, tuple)) and isinstance(b, Sequence) and not isinstance(b, str):
        if len(a) != len(b):
            return f"The lengths of the sequences differ{where}: {len(a)} and {len(b)}"
        return next(filter(None, (_difference(x, y, rules, f"{at}[{i}]")
                                  for i, (x, y) in enumerate(zip(a, b)))), None)
    if a is None or b is None:
        other = b if a is None else a
        return None if other is None else f"None is not equal to {other}{where}"
    numbers = not isinstance(a, Tensor) and not isinstance(b, Tensor) and np.ndim(a) == np.ndim(b) == 0
    if isinstance(a, Tensor) != isinstance(b, Tensor):
        return f"None of the pairs can be compared{where}: {type(a).__name__} and {type(b).__name__}"
    if numbers:
        rules = rules._replace(same=())
    x, y = (v if isinstance(v, Tensor) else tensor(np.asarray(v)) for v in (a, b))
    return _numbers(x, y, rules, where, numbers)


def _numbers(a: Tensor, b: Tensor, rules: _Rules, where: str, python: bool) -> str | None:
    if a.shape != b.shape:
        return f"The values for attribute 'shape' do not match{where}: {tuple(a.shape)} != {tuple(b.shape)}."
    for name in rules.same:
        if getattr(a, name) != getattr(b, name):
            return (f"The values for attribute {name!r} do not match{where}: {getattr(a, name)} != "
                    f"{getattr(b, name)}.")
    if rules.stride and a.stride() != b.stride():
        return f"The values for attribute 'stride()' do not match{where}: {a.stride()} != {b.stride()}."
    rtol, atol = rules.limits or max(_LIMITS.get(x.dtype.name, (0.0, 0.0)) for x in (a, b))
    if python and not rules.limits:
        rtol, atol = (1e-7, 1e-7) if "float" in a.dtype.name + b.dtype.name else (0.0, 0.0)
    x, y = (np.asarray((t.float() if t.dtype is bfloat16 else t).detach().cpu().numpy()).astype(np.float64)
            for t in (a, b))
    with np.errstate(invalid="ignore"):
        bad = ~np.isclose(x, y, rtol, atol, rules.nan)
    if not bad.any():
        return None
    if python:
        return (f"Scalars are not close{where}!\n\nExpected {y} but got {x}.\n(up to {atol} absolute, {rtol} "
                f"relative)")
    error = np.abs(x - y)
    worst = np.unravel_index(np.argmax(np.where(bad, np.nan_to_num(error, nan=np.inf), -1)), error.shape)
    return (f"Tensor-likes are not close{where}!\n\nMismatched elements: {bad.sum()} / {bad.size} "
            f"({100 * bad.mean():.1f}%)\nGreatest absolute difference: {error[worst]} at index "
            f"{tuple(int(i) for i in worst)} (up to {atol} allowed, and {rtol} relative)")
