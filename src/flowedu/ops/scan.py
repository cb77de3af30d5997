"""Running results along an axis: cumsum, linear_scan, and positions of running extrema.

cumprod is a linear_scan (h[t] = x[t] * h[t-1]). Its gradient contains no division, so it is exact even if
factors are zero.
"""
from __future__ import annotations

import builtins
from collections.abc import Callable

import numpy as np

from flowedu._kernels import register
from flowedu.core.ops import axes
from flowedu.core.ops.concat import slice, slice_grad
from flowedu.core.ops.define import define
from flowedu.core.ops.record import Kernel, Laws, Meaning, Split
from flowedu.core.values.dtype import int64
from flowedu.core.values.spec import Spec
from flowedu.errors import DTypeError, ShapeError
from flowedu.ops.types import AnyTensor, Gradients

register("scan")


def _axes(x: Spec, axis: int) -> str:
    return "{0}->{0}".format(axes.same(x.ndim, [axis]))


def _check(name: str) -> Callable[..., None]:
    def check(x: Spec, axis: int) -> None:
        if not 0 <= axis < x.ndim:
            raise ShapeError(f"{name}: axis is out of range", expected=f"an axis of x {x.shape}",
                             got=str(axis), fix="count axes from the front")
    return check


def _cumsum_ref(x: np.ndarray, axis: int, backwards: bool) -> np.ndarray:
    wide = np.float64 if x.dtype.kind == "f" else x.dtype
    x = np.flip(x, axis) if backwards else x
    y = np.cumsum(x, axis, dtype=wide).astype(x.dtype)
    return np.flip(y, axis) if backwards else y


cumsum = define(
    "cumsum(x, *, axis, backwards=False) -> y", Meaning(_axes, _cumsum_ref, check=_check("cumsum")),
    Kernel("cumsum", pack=lambda axis, backwards: ((axis, int(backwards)), ())), Split(linear=["x"]),
    Laws([dict(shapes=[(6, 12)], axis=1), dict(shapes=[(12, 6)], axis=0, backwards=True),
          dict(shapes=[(6, 3, 140)], axis=1)], float_only=False),
    grad={"x": lambda dy, axis, backwards: cumsum(dy, axis=axis, backwards=not backwards)},
    doc="The sum of all elements up to each one along `axis`; backwards: from each one on.")


def shifted(x: AnyTensor, axis: int, back: bool) -> AnyTensor:
    """Shift x by one position along `axis`, to its end or (`back`) to its start, and fill with zeros."""
    n = x.shape[axis]
    start, stop, to = [0] * x.ndim, list(x.shape), [0] * x.ndim
    start[axis], stop[axis], to[axis] = (1, n, 0) if back else (0, n - 1, 1)
    part = slice(x, start=start, stop=stop, step=(1,) * x.ndim)
    return slice_grad(part, shape=x.shape, start=to, stop=[a + m for a, m in zip(to, part.shape)],
                      step=(1,) * x.ndim)


def _check_scan(a: Spec, b: Spec, axis: int) -> None:
    _check("linear_scan")(a, axis)
    if a.shape != b.shape or a.dtype is not b.dtype:
        raise (ShapeError if a.shape != b.shape else DTypeError)(
            "linear_scan: a and b differ", expected="one shape and dtype", got=f"a {a}, b {b}",
            fix="expand or cast one")


def _scan_ref(a: np.ndarray, b: np.ndarray, axis: int, backwards: bool) -> np.ndarray:
    a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    y, last = np.zeros(b.shape, b.dtype), None
    for t in (reversed(builtins.range(len(b))) if backwards else builtins.range(len(b))):
        last = y[t] = b[t] if last is None else a[t] * last + b[t]
    return np.ascontiguousarray(np.moveaxis(y, 0, axis))


def _scan_grad(dh: AnyTensor, a: AnyTensor, h: AnyTensor, axis: int, backwards: bool) -> Gradients:
    if not a.shape[axis]:
        return {"a": dh, "b": dh}
    db = linear_scan(shifted(a, axis, not backwards), dh, axis=axis, backwards=not backwards)
    return {"a": db * shifted(h, axis, backwards), "b": db}


linear_scan = define(
    "linear_scan(a, b, *, axis, backwards=False) -> h",
    Meaning(lambda a, axis: "{0},{0}->{0}".format(axes.same(a.ndim, [axis])), _scan_ref, check=_check_scan),
    Kernel("linear_scan", pack=lambda axis, backwards: ((axis, int(backwards)), ())), Split(linear=["b"]),
    Laws([dict(shapes=[(6, 5), (6, 5)], axis=1), dict(shapes=[(5, 6), (5, 6)], axis=0, backwards=True),
          dict(shapes=[(6, 3, 4), (6, 3, 4)], axis=1), dict(shapes=[(0, 6), (0, 6)], axis=0)],
         domain={"a": "unit"}, float_only=False),
    grad=_scan_grad, doc="h[t] = a[t] * h[t-1] + b[t] along `axis`, h[0] = b[0]; backwards: from the end.")


def _extreme_ref(x: np.ndarray, axis: int, smallest: bool) -> np.ndarray:
    x = np.moveaxis(x, axis, 0)
    y, place = np.zeros(x.shape, np.int64), np.zeros(x.shape[1:], np.int64)
    best = x[0].copy() if len(x) else None
    for t in builtins.range(len(x)):
        better = (x[t] <= best) if smallest else (x[t] >= best)
        better |= np.isnan(x[t])
        best = np.where(better, x[t], best)
        place = np.where(better, t, place)
        y[t] = place
    return np.ascontiguousarray(np.moveaxis(y, 0, axis))


extreme_place = define(
    "extreme_place(x, *, axis, smallest=False) -> y",
    Meaning(_axes, _extreme_ref, dtype=lambda: int64, check=_check("extreme_place")),
    Laws([dict(shapes=[(6, 5)], axis=1), dict(shapes=[(5, 6)], axis=0, smallest=True)], float_only=False),
    doc="Where the largest (smallest) element so far is, the last one of equals; a NaN stays.")


def _mode_ref(x: np.ndarray) -> np.ndarray:
    y = np.empty(x.shape[:-1], np.int64)
    for i in np.ndindex(x.shape[:-1]):
        values, counts = np.unique(x[i], return_counts=True)
        y[i] = (np.flatnonzero(x[i] == values[np.argmax(counts)])[-1]
                if not np.isnan(values[np.argmax(counts)]) else np.flatnonzero(np.isnan(x[i]))[-1])
    return y


def _check_mode(x: Spec) -> None:
    if not x.ndim or not x.shape[-1]:
        raise ShapeError("mode_place: there is no most frequent of zero elements",
                         expected="a last axis of size 1 or more",
                         got=str(x.shape), fix="check that the input is not empty")


mode_place = define(
    "mode_place(x) -> y",
    Meaning(lambda x: (lambda s: f"{s}->{s[:-1]}")(axes.same(x.ndim, [x.ndim - 1])), _mode_ref,
            shape=lambda x: x.shape[:-1], dtype=lambda: int64, check=_check_mode),
    Laws([dict(shapes=[(6, 5)]), dict(shapes=[(6, 2, 9)])], float_only=False),
    doc="Where, along the last axis, the most frequent element is (of several the smallest one).")
