"""masked_softmax: attention's softmax of scaled, masked scores in one pass over memory instead of three."""
from __future__ import annotations

import numpy as np

from flowedu._kernels import register
from flowedu.core.ops import axes
from flowedu.core.ops.define import define
from flowedu.core.ops.elementwise import where_false
from flowedu.core.ops.record import Kernel, Laws, Meaning, Split
from flowedu.core.ops.reduce import sum
from flowedu.core.values.spec import Spec
from flowedu.errors import DTypeError, ShapeError
from flowedu.ops.softmax import softmax_grad
from flowedu.ops.types import AnyTensor, Shape

register("masked_softmax")


def _terms(x: Spec, mask: Spec) -> tuple[str, str]:
    """Return the terms of x and of the mask. Neither can be split along the last axis."""
    term = axes.same(x.ndim, [x.ndim - 1])
    shift = x.ndim - mask.ndim
    return (term, "".join("1" if n == 1 and x.shape[shift + i] != 1 else term[shift + i]
                          for i, n in enumerate(mask.shape)))


def _equation(x: Spec, mask: Spec) -> str:
    t, m = _terms(x, mask)
    return f"{t},{m}->{t}"


def _grad_equation(dy: Spec, mask: Spec) -> str:
    t, m = _terms(dy, mask)
    return f"{t},{t},{m}->{t}"


def _check(x: Spec, mask: Spec, name: str = "masked_softmax") -> None:
    if mask.dtype.bytes != 1:
        raise DTypeError(f"{name}: the mask has the wrong element type", expected="int8, uint8 or bool",
                         got=str(mask), fix="compare first: mask = scores > limit")
    shift = x.ndim - mask.ndim
    if x.ndim < 1 or shift < 0 or any(n not in (1, x.shape[shift + i]) for i, n in enumerate(mask.shape)):
        raise ShapeError(f"{name}: the mask does not broadcast to x",
                         expected=f"the last axes of {x.shape}, or 1 in their place",
                         got=f"mask {mask.shape}", fix="reshape the mask")


def _check_grad(dy: Spec, y: Spec, mask: Spec) -> None:
    _check(dy, mask, "masked_softmax_grad")
    if dy != y:
        raise ShapeError("masked_softmax_grad: dy and y differ", expected=f"dy {y}", got=f"dy {dy}",
                         fix="dy is the gradient of y, which has y's shape and dtype")


def _ref(x: np.ndarray, mask: np.ndarray, scale: float, fill: float) -> np.ndarray:
    z = np.where(mask != 0, np.array(fill, x.dtype), x * x.dtype.type(scale))
    e = np.exp(z - z.max(-1, keepdims=True, initial=-np.inf))
    return e / e.sum(-1, keepdims=True)


def _ref_grad(dy: np.ndarray, y: np.ndarray, mask: np.ndarray, scale: float) -> np.ndarray:
    return np.where(mask != 0, np.array(0, y.dtype),
                    y.dtype.type(scale) * y * (dy - (dy * y).sum(-1, keepdims=True)))


def _masked_grad(ddx: AnyTensor, mask: AnyTensor, scale: float) -> AnyTensor:
    return where_false(mask, ddx * scale)


def _grad_y(ddx: AnyTensor, dy: AnyTensor, y: AnyTensor, mask: AnyTensor, scale: float) -> AnyTensor:
    v, last = _masked_grad(ddx, mask, scale), (y.ndim - 1,)
    return v * (dy - sum(dy * y, axis=last, keepdims=True)) - dy * sum(v * y, axis=last, keepdims=True)


_SHAPES: list[list[Shape]] = [
    [(6, 12), (6, 12)], [(6, 2, 3, 70), (3, 70)], [(6, 2, 3, 5), (6, 1, 3, 1)], [(5,), (5,)]]
_FILL = -3.0             # finite, because -inf gives NaN if a mask of the laws covers a whole row

masked_softmax = define(
    "masked_softmax(x, mask, *, scale=1.0, fill) -> y",
    Meaning(_equation, _ref, shape=lambda x: x.shape, check=lambda x, mask: _check(x, mask)),
    Kernel("masked_softmax", pack=lambda scale, fill: ((), (scale, fill)), contiguous=["x"]),
    Laws([dict(shapes=s, scale=0.5, fill=_FILL) for s in _SHAPES], domain={"mask": "mask"}),
    grad={"x": lambda dy, mask, y, scale: masked_softmax_grad(dy, y, mask, scale=scale)},
    doc="softmax over the last axis of x * scale, with `fill` where the mask is not 0.")
masked_softmax_grad = define(
    "masked_softmax_grad(dy, y, mask, *, scale=1.0) -> dx",
    Meaning(_grad_equation, _ref_grad, shape=lambda dy: dy.shape, check=_check_grad),
    Kernel("masked_softmax_grad", pack=lambda scale: ((), (scale,)), contiguous=["dy", "y"], inplace=["dy"]),
    Split(linear=["dy"]), Laws([dict(shapes=[s[0], *s], scale=0.5) for s in _SHAPES],
                               domain={"mask": "mask"}),
    grad={"dy": lambda ddx, y, mask, scale: softmax_grad(_masked_grad(ddx, mask, scale), y),
          "y": _grad_y})
