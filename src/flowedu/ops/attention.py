"""Attention, softmax(q k' * scale) v, as one op that does not store the scores.

The backward pass computes the scores again (Dao et al., 2022, "FlashAttention"; _kernels/fast/attention.pyx).

    scores = q k' * scale, -inf where the mask is not 0, and in later positions if causal
    y = softmax(scores) v        lse = log(sum(exp(scores))), from which backward recomputes the weights

In a fully masked row, y and lse are 0. With `nan` they are NaN, like the softmax of no elements.

Rounding errors in float32: sums run over blocks of 64 keys, so y is as accurate as the product of weights and
values. However, a weight less than e^-87 times the largest one becomes 0. The weights that the backward pass
recomputes have a relative error of |lse| roundings.
"""
from __future__ import annotations

import math

import numpy as np

from flowedu._kernels import register
from flowedu.core.ops import axes
from flowedu.core.ops.define import REGISTRY, define
from flowedu.core.ops.elementwise import exp, gt, where, where_false
from flowedu.core.ops.matmul import matmul
from flowedu.core.ops.record import Kernel, Laws, Meaning, Split
from flowedu.core.ops.reduce import sum
from flowedu.core.ops.reverse import vjp
from flowedu.core.ops.view import constant
from flowedu.core.values.dtype import int64
from flowedu.core.values.spec import Spec
from flowedu.errors import DTypeError, ShapeError
from flowedu.ops.terms import as_column
from flowedu.ops.types import AnyTensor, Gradients, Packed

register("attention")


# ---- what fits
def _terms(q: Spec, k: Spec, v: Spec, mask: Spec, causal: bool) -> tuple[str, ...]:
    """Letters of q, k, v, mask, lse, y. Keys stay whole in a softmax; so do queries whose place counts."""
    batch, row = axes.LETTERS[:q.ndim - 2], "M" if causal else "m"
    scores, shape = batch + row + "S", (*q.shape[:-1], k.shape[-2])
    shift = q.ndim - mask.ndim
    hidden = "".join("1" if n == 1 and shape[shift + i] != 1 else scores[shift + i]
                     for i, n in enumerate(mask.shape))
    return batch + row + "E", batch + "SE", batch + "SV", hidden, batch + row, batch + row + "V"


def _axes(q: Spec, k: Spec, v: Spec, mask: Spec, causal: bool) -> str:
    *inputs, lse, y = _terms(q, k, v, mask, causal)
    return f"{','.join(inputs)}->{y},{lse}"


def _axes_grad(q: Spec, k: Spec, v: Spec, mask: Spec, causal: bool) -> str:
    terms = _terms(q, k, v, mask, causal)
    if not causal:                                         # with lse known, each key counts for itself
        terms = tuple(t.replace("S", "s") for t in terms)
    *inputs, lse, y = terms
    return f"{y},{','.join(inputs)},{lse},{lse}->{','.join(inputs[:3])}"


def _check(q: Spec, k: Spec, v: Spec, mask: Spec, name: str = "attention") -> None:
    if mask.dtype.bytes != 1:
        raise DTypeError(f"{name}: the mask has the wrong element type", expected="int8, uint8 or bool",
                         got=str(mask), fix="compare first: mask = scores > limit")
    for what, x in (("k", k), ("v", v)):
        if x.dtype is not q.dtype:
            raise DTypeError(f"{name}: the element types differ", expected=q.dtype.name,
                             got=f"{what} {x.dtype.name}", fix="convert one with flow.cast")
    if q.ndim < 2 or k.shape != (*q.shape[:-2], *k.shape[-2:-1], q.shape[-1]) or v.shape[:-1] != k.shape[:-1]:
        raise ShapeError(f"{name}: q, k and v do not fit",
                         expected="q (..., L, E), k (..., S, E), v (..., S, V)",
                         got=f"q {q.shape}, k {k.shape}, v {v.shape}",
                         fix="the same leading axes: expand axes of size 1")
    scores = (*q.shape[:-1], k.shape[-2])
    shift = len(scores) - mask.ndim
    if shift < 0 or any(n not in (1, scores[shift + i]) for i, n in enumerate(mask.shape)):
        raise ShapeError(f"{name}: the mask does not broadcast to the scores",
                         expected=f"the last axes of {scores}, or 1 in their place", got=f"mask {mask.shape}",
                         fix="reshape the mask")


def _check_grad(dy: Spec, q: Spec, k: Spec, v: Spec, mask: Spec, lse: Spec, delta: Spec) -> None:
    _check(q, k, v, mask, "attention_grad")
    rows = q.shape[:-1]
    for what, x, shape in (("dy", dy, (*rows, v.shape[-1])), ("lse", lse, rows), ("delta", delta, rows)):
        if x.shape != shape or x.dtype is not q.dtype:
            raise ShapeError(f"attention_grad: {what} does not fit",
                             expected=f"{what} {shape} of {q.dtype.name}",
                             got=str(x), fix=f"an array of the other inputs' sizes for {what}")


# ---- reference functions
def _scores_ref(q: np.ndarray, k: np.ndarray, mask: np.ndarray, scale: float,
                causal: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores, and a mask of the hidden ones."""
    z = q @ np.swapaxes(k, -1, -2) * q.dtype.type(scale)
    hidden = np.broadcast_to(mask != 0, z.shape) | (np.triu(np.ones(z.shape[-2:], bool), 1) & causal)
    return np.where(hidden, q.dtype.type(-math.inf), z), hidden


def _ref(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray, scale: float, causal: bool,
         nan: bool) -> tuple[np.ndarray, np.ndarray]:
    z, _ = _scores_ref(q, k, mask, scale, causal)
    most = z.max(-1, keepdims=True, initial=-math.inf)
    most = np.where(np.isneginf(most), 0, most)
    e = np.exp(z - most)
    total = e.sum(-1, keepdims=True)
    nothing = total == 0
    total = np.where(nothing, np.nan if nan else 1, total)
    return ((e / total @ v).astype(q.dtype), np.where(nothing, np.log(total),
                                                      most + np.log(total)).astype(q.dtype)[..., 0])


def _ref_grad(dy: np.ndarray, q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray, lse: np.ndarray,
              delta: np.ndarray, scale: float, causal: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    z, hidden = _scores_ref(q, k, mask, scale, causal)
    weights = np.exp(z - lse[..., None])
    d = np.where(hidden, 0, weights * (dy @ np.swapaxes(v, -1, -2) - delta[..., None])) * q.dtype.type(scale)
    back = np.swapaxes(d, -1, -2)
    return (d @ k).astype(q.dtype), (back @ q).astype(q.dtype), np.swapaxes(weights, -1, -2) @ dy


# ---- gradients
def _again(dy: AnyTensor, q: AnyTensor, k: AnyTensor, v: AnyTensor, mask: AnyTensor, lse: AnyTensor,
           delta: AnyTensor, scale: float, causal: bool) -> tuple[AnyTensor, AnyTensor, AnyTensor]:
    """Compute attention_grad from ops, for its own gradient."""
    hidden, low = [mask], constant(shape=(), value=-math.inf, dtype=q.dtype)
    if causal:
        place = REGISTRY["range"](size=q.shape[-2], dtype=int64)
        hidden.append(gt(REGISTRY["range"](size=k.shape[-2], dtype=int64), as_column(place)))
    scores, d = matmul(q, k, transpose_b=True) * scale, matmul(dy, v, transpose_b=True) - as_column(delta)
    for part in hidden:
        scores = where(part, low, scores)
    weights = exp(scores - as_column(lse))
    d = weights * d * scale
    for part in hidden:
        d = where_false(part, d)
    return matmul(d, k), matmul(d, q, transpose_a=True), matmul(weights, dy, transpose_a=True)


def _backward(dy: AnyTensor | None, dlse: AnyTensor | None, q: AnyTensor, k: AnyTensor, v: AnyTensor,
              mask: AnyTensor, y: AnyTensor, lse: AnyTensor, scale: float, causal: bool) -> Gradients:
    if dy is None:
        dy = constant(shape=y.shape, value=0.0, dtype=y.dtype)
    delta = sum(dy * y, axis=(y.ndim - 1,), keepdims=False)
    if dlse is not None:
        delta = delta - dlse
    return dict(zip("qkv", attention_grad(dy, q, k, v, mask, lse, delta, scale=scale, causal=causal)))


def _backward_again(ddq: AnyTensor | None, ddk: AnyTensor | None, ddv: AnyTensor | None, dy: AnyTensor,
                    q: AnyTensor, k: AnyTensor, v: AnyTensor, mask: AnyTensor, lse: AnyTensor,
                    delta: AnyTensor, scale: float, causal: bool) -> Gradients:
    def f(dy: AnyTensor, q: AnyTensor, k: AnyTensor, v: AnyTensor, lse: AnyTensor,
          delta: AnyTensor) -> tuple[AnyTensor, AnyTensor, AnyTensor]:
        return _again(dy, q, k, v, mask, lse, delta, scale, causal)

    return dict(zip(("dy", "q", "k", "v", "lse", "delta"), vjp(f, (dy, q, k, v, lse, delta),
                                                               (ddq, ddk, ddv))))


# ---- the records
def _pack(scale: float, causal: bool, nan: bool) -> Packed:
    return (int(causal), int(nan)), (scale,)


def _of_values(n: int, attrs: dict) -> dict:
    """Return the signature that splits the columns of v, on which lse does not depend."""
    split = f"S{n - 1}"
    return {("B", "B", split, "B", split, "B"): (attention, lambda start, stop: attrs)}


def _of_values_grad(n: int, attrs: dict) -> dict:
    split = f"S{n - 1}"
    return {(split, "B", "B", split, "B", "B", "P", "P", "P", split): (attention_grad,
                                                                       lambda start, stop: attrs)}


_SHAPES = [((2,), 5, 7, 3, 4, (5, 7)), ((2, 3), 3, 4, 2, 2, (3, 1, 4)), ((), 6, 6, 3, 2, (6, 6))]
_ATTRS = [dict(scale=0.01), dict(scale=0.02), dict(scale=0.01, causal=True)]

attention = define(
    "attention(q, k, v, mask, *, scale=1.0, causal=False, nan=False) -> (y, lse)",
    Meaning(_axes, _ref, shape=lambda q, v: ((*q.shape[:-1], v.shape[-1]), q.shape[:-1]),
            check=lambda q, k, v, mask: _check(q, k, v, mask)),
    Kernel("attention", pack=_pack, contiguous=False),
    Split(linear=["v->y"], spread=lambda q, attributes: _of_values(q.ndim, attributes)),
    Laws([dict(shapes=[(*b, rows, e), (*b, keys, e), (*b, keys, d), mask], **attrs)
          for (b, rows, keys, e, d, mask), attrs in zip(_SHAPES, _ATTRS)], domain={"mask": "mask"}),
    grad=_backward, doc="softmax(q k' * scale) v, and the logarithm of the softmax's sums.")
attention_grad = define(
    "attention_grad(dy, q, k, v, mask, lse, delta, *, scale=1.0, causal=False) -> (dq, dk, dv)",
    Meaning(_axes_grad, _ref_grad, shape=lambda q, k, v: (q.shape, k.shape, v.shape), check=_check_grad),
    Kernel("attention_grad", pack=lambda scale, causal: _pack(scale, causal, False),
           contiguous=["lse", "delta"]),
    Split(linear=[("dy", "delta"), "v,delta->dq,dk"],
          spread=lambda q, attributes: _of_values_grad(q.ndim, attributes)),
    Laws([dict(shapes=[(*b, rows, d), (*b, rows, e), (*b, keys, e), (*b, keys, d), mask, (*b, rows),
                       (*b, rows)], **attrs)
          for (b, rows, keys, e, d, mask), attrs in zip(_SHAPES, _ATTRS)], domain={"mask": "mask"}),
    grad=_backward_again)
