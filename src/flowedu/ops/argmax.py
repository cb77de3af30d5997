"""argmax: the index of the largest element along an axis."""
from __future__ import annotations

import numpy as np

from flowedu._kernels import register
from flowedu.core.ops.define import define
from flowedu.core.ops.record import Kernel, Laws, Meaning
from flowedu.core.ops.reduce import terms
from flowedu.core.values.dtype import int64
from flowedu.core.values.spec import Spec
from flowedu.errors import ShapeError

register("argmax")


def _check_argmax(x: Spec, axis: int) -> None:
    if not isinstance(axis, int) or not 0 <= axis < x.ndim:
        raise ShapeError("argmax: axis is out of range",
                         expected=f"an axis in [0, {x.ndim - 1}] of x {x.shape}",
                         got=f"axis={axis!r}", fix="count axes from the front: the last one is x.ndim - 1")
    if x.shape[axis] == 0:
        raise ShapeError("argmax: there is no largest of zero elements",
                         expected=f"size 1 or more on axis {axis}",
                         got=f"x {x.shape}", fix="check that the input is not empty")


argmax = define(
    "argmax(x, *, axis) -> y",
    Meaning(lambda x, axis: terms(x.ndim, (axis,), False, True),
            lambda x, axis: np.argmax(x, axis=axis).astype(np.int64),
            dtype=lambda x: int64, check=_check_argmax),
    Kernel("argmax", pack=lambda axis: ((axis,), ())),
    Laws([dict(shapes=[(6, 12)], axis=1), dict(shapes=[(6, 5, 6)], axis=1),
          dict(shapes=[(6, 6)], axis=0)], float_only=False),
    doc="Where the largest element along `axis` is: the first one of equals.")
