"""Batch norm followed by an activation: clip(batch_norm(x), low, high).

relu is clip(0, inf), and relu6 is clip(0, 6). The pass fast/passes/norm_clip.py substitutes these ops for
batch_norm and relu. The backward pass computes the clipped elements from x, which it reads anyway, so neither
the normalized nor the clipped value is saved.
"""
from __future__ import annotations

import numpy as np

from flowedu.core.ops.define import define
from flowedu.core.ops.elementwise import greater, less, logical_and, mul
from flowedu.core.ops.record import Kernel, Laws, Meaning, Split
from flowedu.core.ops.view import cast
from flowedu.core.values.spec import Spec
from flowedu.errors import ShapeError
from flowedu.ops import norm
from flowedu.ops.types import AnyTensor, Gradients

# For the laws' numerical derivatives, no value that inputs in FEW can produce is within 0.01 of a limit.
LIMITS = dict(low=-1.622, high=1.622)
FEW = dict.fromkeys(("x", "gamma", "beta", "mean"), "few")


def _ref(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, axis: int, epsilon: float, low: float,
         high: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    y, mean, var = norm._batch_norm_ref(x, gamma, beta, axis, epsilon)
    return np.clip(y, low, high), mean, var


def _backward(dy: AnyTensor | None, dmean: AnyTensor | None, dvar: AnyTensor | None, x: AnyTensor,
              gamma: AnyTensor, beta: AnyTensor, mean: AnyTensor, var: AnyTensor, axis: int, epsilon: float,
              low: float, high: float) -> Gradients:
    grads = norm._batch_norm_backward(None, dmean, dvar, x, gamma, mean, var, axis, epsilon)
    if dy is not None:
        dx, grads["gamma"], grads["beta"] = batch_norm_clip_grad(
            dy, x, gamma, beta, mean, var, axis=axis, epsilon=epsilon, low=low, high=high)
        grads["x"] = norm._total([dx, grads["x"]], x.dtype)
    return grads


batch_norm_clip = define(
    "batch_norm_clip(x, gamma, beta, *, axis=1, epsilon, low, high) -> (y, mean, var)",
    Meaning(norm._batch_norm_axes, _ref, dtype=lambda x: (x.dtype, norm._wide(x), norm._wide(x)),
            check=lambda x, gamma, beta, axis: norm._check_channels("batch_norm_clip")(x, axis, gamma=gamma,
                                                                                       beta=beta)),
    Kernel("batch_norm_clip", pack=lambda x, axis, epsilon, low, high: ((axis % x.ndim,),
                                                                        (epsilon, low, high))),
    Laws([dict(e, **LIMITS) for e in norm._channel_examples(1, 2)], domain=FEW), grad=_backward,
    doc="batch_norm, and the result clipped to [low, high].")


def _grad_axes(x: Spec, axis: int) -> str:
    t, c = norm._channel_terms(x, axis)
    return f"{t},{t},{c},{c},{c},{c}->{t},{c},{c}"


def _check_grad(dy: Spec, x: Spec, gamma: Spec, beta: Spec, mean: Spec, var: Spec, axis: int) -> None:
    norm._check_channels("batch_norm_clip_grad")(x, axis, gamma=gamma, beta=beta, mean=mean, var=var)
    if dy != x:
        raise ShapeError("batch_norm_clip_grad: dy and x differ", expected=f"dy {x}", got=f"dy {dy}",
                         fix="dy is the gradient of y, which has x's shape and dtype")


def _grad_ref(dy: np.ndarray, x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, mean: np.ndarray,
              var: np.ndarray, axis: int, epsilon: float, low: float,
              high: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    y = norm._infer_ref(x, gamma, beta, mean, var, axis, epsilon)
    dy = np.where((y > low) & (y < high), dy, dy.dtype.type(0))
    return norm._batch_norm_grad_ref(dy, x, gamma, mean, var, axis, epsilon)


def _grad_backward(ddx: AnyTensor | None, ddgamma: AnyTensor | None, ddbeta: AnyTensor | None, dy: AnyTensor,
                   x: AnyTensor, gamma: AnyTensor, beta: AnyTensor, mean: AnyTensor, var: AnyTensor,
                   axis: int, epsilon: float, low: float, high: float) -> Gradients:
    """Return batch_norm_grad of dy times the clipping mask. The mask has no gradient."""
    y = norm.batch_norm_infer(x, gamma, beta, mean, var, axis=axis, epsilon=epsilon)
    mask = cast(logical_and(greater(y, low), less(y, high)), dtype=x.dtype)
    grads = norm._batch_norm_grad_backward(ddx, ddgamma, ddbeta, dy * mask, x, gamma, mean, var, axis,
                                           epsilon)
    grads["dy"] = mul(grads["dy"], mask) if grads.get("dy") is not None else None
    grads["beta"] = beta * 0               # beta affects only the mask
    return grads


batch_norm_clip_grad = define(
    "batch_norm_clip_grad(dy, x, gamma, beta, mean, var, *, axis=1, epsilon, low, high) -> (dx, dgamma, "
    "dbeta)",
    Meaning(_grad_axes, _grad_ref, check=_check_grad, dtype=lambda x, gamma: (x.dtype, gamma.dtype,
                                                                              gamma.dtype)),
    Kernel("batch_norm_clip_grad", pack=lambda x, axis, epsilon, low, high: ((axis % x.ndim,),
                                                                             (epsilon, low, high)),
           inplace=["dy", "x"]),
    Split(linear=["dy"]),
    Laws([dict(e, **LIMITS) for e in norm._channel_examples(2, 4)], domain={**FEW, "var": "positive"}),
    grad=_grad_backward)
