"""bias_add: adds one number per position along an axis."""
from __future__ import annotations

import numpy as np

from flowedu.core.ops import axes
from flowedu.core.ops.define import define
from flowedu.core.ops.program import Formula
from flowedu.core.ops.record import Kernel, Laws, Meaning, Split
from flowedu.core.ops.reduce import sum
from flowedu.core.values.spec import Spec
from flowedu.errors import ShapeError


def _check_bias(x: Spec, b: Spec, axis: int) -> None:
    if b.ndim != 1 or not 0 <= axis < x.ndim or x.shape[axis] != b.shape[0]:
        raise ShapeError("bias_add: the bias does not fit", expected=f"one axis as long as axis {axis} of x",
                         got=f"x {x.shape}, b {b.shape}", fix="pass the axis the bias belongs to")


def _broadcast_bias(x: np.ndarray, b: np.ndarray, axis: int) -> np.ndarray:
    return b.reshape((1,) * axis + (-1,) + (1,) * (x.ndim - axis - 1))


bias_add = define(
    "bias_add(x, b, *, axis) -> y",
    Meaning(lambda x, b, axis: (lambda s: f"{s},{s[axis]}->{s}")(axes.same(x.ndim)),
            lambda x, b, axis: x + _broadcast_bias(x, b, axis), check=_check_bias),
    Kernel("elementwise", program=Formula.single("add", 2), pack=lambda axis: ((1, 0, axis), ()),
           contiguous=False, inplace=["x"]),
    Split(linear=[("x", "b")]),
    Laws([dict(shapes=[(6, 12), (12,)], axis=1), dict(shapes=[(6, 6, 2, 2), (6,)], axis=1),
          dict(shapes=[(6, 12), (6,)], axis=0)], float_only=False),
    grad={"x": lambda dy: dy, "b": lambda dy, axis: sum(
        dy, axis=tuple(i for i in range(dy.ndim) if i != axis), keepdims=False)})
