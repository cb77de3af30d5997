"""matmul_update: a matrix product that is subtracted directly from the weights (plain SGD)."""
from __future__ import annotations

import numpy as np

from flowedu._kernels import register
from flowedu.core.ops.define import define
from flowedu.core.ops.matmul import check_matmul, matmul
from flowedu.core.ops.record import Effects, Kernel, Laws, Meaning
from flowedu.core.values.dtype import float32
from flowedu.core.values.spec import Spec
from flowedu.errors import ShapeError

register("matmul_update")


def _update_axes(a: Spec, b: Spec, transpose_a: bool, transpose_b: bool) -> str:
    """Return the axes. The contracted axis cannot be split: each device would have only a partial product."""
    return f"{'Km' if transpose_a else 'mK'},{'nK' if transpose_b else 'Kn'},Z,mn->"


def _check_update(a: Spec, b: Spec, lr: Spec, w: Spec, transpose_a: bool, transpose_b: bool) -> None:
    check_matmul(a, b, transpose_a, transpose_b, "matmul_update")
    want = (a.shape[-1 if transpose_a else -2], b.shape[-2 if transpose_b else -1])
    if (a.ndim != 2 or w.shape != want or w.dtype is not a.dtype or lr.shape != (1,)
        or lr.dtype is not float32):
        raise ShapeError("matmul_update: w or lr does not fit",
                         expected=f"w {a.dtype.name}{list(want)}, lr float32[1]",
                         got=f"w {w}, lr {lr}", fix="w has the shape of the product of two matrices")


def _update_ref(a: np.ndarray, b: np.ndarray, lr: np.ndarray, w: np.ndarray, transpose_a: bool,
                transpose_b: bool, scale: float) -> tuple[np.ndarray]:
    return ((w - w.dtype.type(lr[0] * scale) * matmul.ref(a, b, transpose_a, transpose_b)).astype(w.dtype),)


matmul_update = define(
    "matmul_update(a, b, lr, w, *, transpose_a=False, transpose_b=False, scale=1.0) -> ()",
    Meaning(_update_axes, _update_ref, shape=lambda: (), check=_check_update),
    Kernel("matmul_update", pack=lambda transpose_a, transpose_b, scale: ((transpose_a, transpose_b),
                                                                          (scale,))),
    Effects(mutates=lambda n: [3]),
    Laws([dict(shapes=[(6, 12), (12, 18), (1,), (6, 18)], scale=0.5),
          dict(shapes=[(12, 6), (12, 18), (1,), (6, 18)], transpose_a=True)]),
    doc="A matrix product that goes straight into the weights: w -= lr * scale * a @ b.")
