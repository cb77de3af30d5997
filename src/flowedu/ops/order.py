"""range, argsort, and top_k: ops that return positions.

argsort and top_k sort along the last axis. The order is stable, so equal elements keep their order.

A NaN counts as the largest element, as in argmax.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flowedu._kernels import register
from flowedu.core.ops import axes
from flowedu.core.ops.define import define
from flowedu.core.ops.record import Kernel, Laws, Meaning
from flowedu.core.values.dtype import dtype, float32, float64, int32, int64
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError, DTypeError, ShapeError

register("sort")


def _check_range(step: int, size: int, dtype: dtype) -> None:
    if dtype not in (int32, int64, float32, float64):
        raise DTypeError("range: no kernel for this element type",
                         expected="int32, int64, float32 or float64",
                         got=dtype.name, fix="make it int32 and cast the result")
    if size < 0:
        raise ArgumentError("range: the size is negative", expected="0 or more elements", got=str(size))


range = define(
    "range(*, start=0, step=1, size, dtype) -> y",
    Meaning(lambda: "->A", lambda start, step, size, dtype: (start
                                                             + step * np.arange(size)).astype(dtype.numpy),
            shape=lambda size: (size,), dtype=lambda dtype: dtype, check=_check_range),
    Kernel("range", pack=lambda start, step: ((start, step), ()), numbers=True),
    Laws([dict(shapes=[], start=1, step=2, size=6, dtype=float32)]),
    doc="start, start + step, ...: `size` integers, in `dtype`.")


def _check_rows(name: str) -> Callable[..., None]:
    def check(x: Spec) -> None:
        if not x.ndim:
            raise ShapeError(f"{name}: x has no axis", expected="one axis or more; the last one counts",
                             got="a 0-d x", fix="reshape x to (1,)")
    return check


def _argsort_ref(x: np.ndarray, descending: bool) -> np.ndarray:
    if not descending:
        return np.argsort(x, axis=-1, kind="stable").astype(np.int32)
    backwards = np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]      # equals stay in their order
    return (x.shape[-1] - 1 - backwards).astype(np.int32)


argsort = define(
    "argsort(x, *, descending=False) -> y",
    Meaning(lambda x: "{0}->{0}".format(axes.same(x.ndim, [x.ndim - 1])), _argsort_ref, dtype=lambda: int32,
            check=_check_rows("argsort")),
    Kernel("argsort", pack=lambda descending: ((int(descending),), ())),
    Laws([dict(shapes=[(6, 12)]), dict(shapes=[(6, 2, 50)], descending=True), dict(shapes=[(7,)])],
         float_only=False),
    doc="The positions, along the last axis, that sort it: int32.")


def _check_top_k(x: Spec, k: int) -> None:
    _check_rows("top_k")(x)
    if not 0 <= k <= x.shape[-1]:
        raise ShapeError("top_k: k is out of range",
                         expected=f"0 <= k <= {x.shape[-1]}, the last axis of x {x.shape}",
                         got=f"k={k}", fix="k is a number of elements of one row")


top_k = define(
    "top_k(x, *, k) -> y",
    Meaning(lambda x: f"{axes.same(x.ndim, [x.ndim - 1])}->{axes.same(x.ndim - 1)}K",
            lambda x, k: _argsort_ref(x, True)[..., :k], shape=lambda x, k: (*x.shape[:-1], k),
            dtype=lambda: int32, check=_check_top_k),
    Kernel("top_k"),
    Laws([dict(shapes=[(6, 12)], k=3), dict(shapes=[(6, 2, 40)], k=40), dict(shapes=[(7,)], k=2)],
         float_only=False),
    doc="The positions of the k largest elements of each row, the largest first: int32.")
