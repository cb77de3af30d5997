"""softmax, log_softmax and the cross entropies.

In the axis equations the class axis is upper case, because a softmax needs all classes. Other axes may be
split.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowedu._kernels import register
from flowedu.core.ops import axes
from flowedu.core.ops.define import define
from flowedu.core.ops.elementwise import exp, log, maximum, neg, not_equal, softplus
from flowedu.core.ops.record import Kernel, Laws, Meaning, Split
from flowedu.core.ops.reduce import sum
from flowedu.core.ops.view import cast, constant
from flowedu.core.values.dtype import float32
from flowedu.core.values.spec import Spec
from flowedu.errors import DTypeError, ShapeError
from flowedu.ops.formula import elementwise
from flowedu.ops.index import LABELS, one_hot
from flowedu.ops.terms import add_known, as_column
from flowedu.ops.types import AnyTensor

register("softmax", "cross_entropy")


# ---- softmax and log_softmax
def _equation(x: Spec, axis: int) -> str:
    term = axes.same(x.ndim, [axis % x.ndim])
    return f"{term}->{term}"


def _like_softmax(x: Spec, axis: int) -> str:
    return softmax.axes(x, axis)


def _like_softmax_twice(dy: Spec, axis: int) -> str:
    """Of a gradient: dy and y have the letters of x."""
    x, _, y = softmax.axes(dy, axis).partition("->")
    return f"{x},{x}->{y}"


def _check(name: str) -> Callable[..., None]:
    def check(x: Spec, axis: int) -> None:
        if not isinstance(axis, int) or not -x.ndim <= axis < x.ndim:
            raise ShapeError(f"{name}: axis is out of range", got=f"axis={axis!r}, x {x.shape}",
                             expected=f"an axis in [{-x.ndim}, {x.ndim - 1}]" if x.ndim
                             else "x with one axis or more",
                             fix="axis=-1 is the last one" if x.ndim else "reshape x to (1, n)")
    return check


def _check_grad(name: str) -> Callable[..., None]:
    def check(dy: Spec, y: Spec, axis: int) -> None:
        _check(name)(dy, axis)
        if dy.dtype is not y.dtype:
            raise DTypeError(f"{name}: the element types differ", expected="equal types",
                             got=f"dy {dy}, y {y}", fix="convert one with flow.cast")
    return check


def _softmax_ref(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
    return e / e.sum(axis, keepdims=True)


def _log_softmax_ref(x: np.ndarray, axis: int) -> np.ndarray:
    x = x - x.max(axis, keepdims=True, initial=-np.inf)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def _along(x: AnyTensor, axis: int) -> AnyTensor:
    """Sum x over `axis`, which is kept with size 1."""
    return sum(x, axis=(axis % x.ndim,), keepdims=True)


_SHAPES: list[dict[str, Any]] = [
    dict(shapes=[(6, 12)]), dict(shapes=[(6, 5, 6)], axis=1), dict(shapes=[(5, 6)], axis=0),
    dict(shapes=[(5,)])]
_PAIRS = [{**e, "shapes": e["shapes"] * 2} for e in _SHAPES]

softmax = define(
    "softmax(x, *, axis=-1) -> y", Meaning(_equation, _softmax_ref, check=_check("softmax")),
    Kernel("softmax", pack=lambda x, axis: ((axis % x.ndim,), ())), Laws(_SHAPES),
    grad={"x": lambda dy, y, axis: softmax_grad(dy, y, axis=axis)})
softmax_grad = define(
    "softmax_grad(dy, y, *, axis=-1) -> dx",
    Meaning(_like_softmax_twice, lambda dy, y, axis: y * (dy - (dy * y).sum(axis, keepdims=True)),
            check=_check_grad("softmax_grad")),
    Kernel("softmax_grad", pack=lambda y, axis: ((axis % y.ndim,), ())), Split(linear=["dy"]), Laws(_PAIRS),
    grad={"dy": lambda ddx, y, axis: softmax_grad(ddx, y, axis=axis),
          "y": lambda ddx, dy, y, axis: ddx * (dy - _along(dy * y, axis))
          - dy * _along(ddx * y, axis)})
log_softmax = define(
    "log_softmax(x, *, axis=-1) -> y", Meaning(_like_softmax, _log_softmax_ref, check=_check("log_softmax")),
    Kernel("log_softmax", pack=lambda x, axis: ((axis % x.ndim,), ())), Laws(_SHAPES),
    grad={"x": lambda dy, y, axis: log_softmax_grad(dy, y, axis=axis)})
log_softmax_grad = define(
    "log_softmax_grad(dy, y, *, axis=-1) -> dx",
    Meaning(_like_softmax_twice, lambda dy, y, axis: dy - np.exp(y) * dy.sum(axis, keepdims=True),
            check=_check_grad("log_softmax_grad")),
    Kernel("log_softmax_grad", pack=lambda y, axis: ((axis % y.ndim,), ())), Split(linear=["dy"]),
    Laws(_PAIRS), grad={"dy": lambda ddx, y, axis: ddx - _along(ddx * exp(y), axis),
          "y": lambda ddx, dy, y, axis: neg(ddx * exp(y) * _along(dy, axis))})


# ---- cross entropy
def _check_labels(name: str, labels: Spec, logits: Spec) -> None:
    """Labels are integers, one for each row of the logits; the commonest mistake is to swap the two."""
    if labels.dtype.is_floating_point:
        swapped = not logits.dtype.is_floating_point
        raise DTypeError(f"{name}: labels must be integers",
                         expected="(labels, logits): integer labels come first",
                         got=f"labels {labels}, logits {logits}",
                         fix="swap the two arguments: labels come first" if swapped
                         or labels.ndim > logits.ndim else
                         "cast the labels: flow.cast(labels, flow.int64); for probabilities use "
                         "softmax_cross_entropy")
    if labels.dtype not in LABELS:
        raise DTypeError(f"{name}: labels have the wrong element type",
                         expected="int32, int64, int16, int8 or uint8",
                         got=labels.dtype.name, fix="cast the labels: flow.cast(labels, flow.int64)")
    if labels.shape != logits.shape[:-1] or logits.ndim == 0:
        fix = "make them equal but for the last axis of the logits, which is the classes"
        if labels.ndim == logits.ndim and labels.shape[-1:] == (1,):
            fix = f"drop the last axis of the labels: reshape them to {labels.shape[:-1]}"
        elif labels.ndim == logits.ndim:
            fix = "one-hot labels: take their argmax, or use softmax_cross_entropy"
        raise ShapeError(f"{name}: labels and logits do not fit",
                         expected="labels (a, ...), logits (a, ..., classes)",
                         got=f"labels {labels.shape}, logits {logits.shape}", fix=fix)


NOBODY = -2 ** 63                 # ignore_index=None: no label is this one


def _ignored(ignore_index: int | None) -> tuple[tuple[int], tuple[()]]:
    return ((NOBODY if ignore_index is None else ignore_index,), ())


def _sparse_axes(labels: Spec, logits: Spec) -> str:
    a = axes.same(labels.ndim)
    return f"{a},{a}V->{a},{a}V"


def _sparse_ref(labels: np.ndarray, logits: np.ndarray,
                ignore_index: int | None) -> tuple[np.ndarray, np.ndarray]:
    logp, counts = _log_softmax_ref(logits, -1), labels != _ignored(ignore_index)[0][0]
    safe = np.where(counts, labels, 0).astype(np.int64)
    return (np.where(counts, -np.take_along_axis(logp, safe[..., None], -1)[..., 0], logp.dtype.type(0)),
            np.exp(logp))


def _sparse_grad(dloss: AnyTensor | None, dprob: AnyTensor | None, labels: AnyTensor, prob: AnyTensor,
                 ignore_index: int | None) -> AnyTensor | None:
    through_loss = through_prob = None
    if dloss is not None:
        through_loss = sparse_softmax_cross_entropy_grad.call((dloss, labels, prob), (ignore_index,))
    if dprob is not None:
        through_prob = softmax_grad(dprob, prob)
    return add_known([through_loss, through_prob])


_SPARSE = [dict(shapes=[(6,), (6, 5)]), dict(shapes=[(6, 2), (6, 2, 5)]), dict(shapes=[(), (5,)])]

sparse_softmax_cross_entropy = define(
    "sparse_softmax_cross_entropy(labels, logits, *, ignore_index=None) -> (loss, prob)",
    Meaning(_sparse_axes, _sparse_ref, dtype=lambda logits: logits.dtype,
            check=lambda labels, logits: _check_labels("sparse_softmax_cross_entropy", labels, logits)),
    Kernel("sparse_softmax_cross_entropy", key="logits", pack=_ignored, numbers=True,
           range_help="0 <= label < number of classes (the last axis of logits)"),
    Laws([*_SPARSE, dict(shapes=[(6,), (6, 5)], ignore_index=2)], domain={"labels": "index:5"}),
    grad={"logits": _sparse_grad},
    doc="loss = -log(softmax(logits)[label]) for every row, 0 where the label is ignore_index; prob = "
    "softmax(logits). Labels come first.")


def _sparse_grad_axes(dloss: Spec, labels: Spec, prob: Spec) -> str:
    a = axes.same(labels.ndim)
    return f"{a},{a},{a}V->{a}V"


def _check_sparse_grad(dloss: Spec, labels: Spec, prob: Spec) -> None:
    _check_labels("sparse_softmax_cross_entropy_grad", labels, prob)
    if dloss.shape != labels.shape or dloss.dtype is not prob.dtype:
        raise (ShapeError if dloss.shape != labels.shape else DTypeError)(
            "sparse_softmax_cross_entropy_grad: dloss does not fit", got=f"dloss {dloss}",
            expected=f"dloss {prob.dtype.name}{list(labels.shape)}", fix="pass one gradient for each label")


def _hot(labels: AnyTensor, prob: AnyTensor) -> AnyTensor:
    wide = prob.dtype if prob.dtype.bytes > 2 else float32
    return cast(one_hot(labels, depth=prob.shape[-1], dtype=wide), dtype=prob.dtype)


def _sparse_grad_ref(dloss: np.ndarray, labels: np.ndarray, prob: np.ndarray,
                     ignore_index: int | None) -> np.ndarray:
    dloss = np.where(labels != _ignored(ignore_index)[0][0], dloss, dloss.dtype.type(0))
    return dloss[..., None] * (prob - (labels[..., None] == np.arange(prob.shape[-1])))


def _counting(d: AnyTensor, labels: AnyTensor, ignore_index: int | None) -> AnyTensor:
    """d, 0 where the label does not count."""
    if ignore_index is None:
        return d
    return d * cast(not_equal(labels, constant(shape=(), value=ignore_index, dtype=labels.dtype)),
                    dtype=d.dtype)


def _ddloss(ddlogits: AnyTensor, labels: AnyTensor, prob: AnyTensor, ignore_index: int | None) -> AnyTensor:
    return _counting(sum(ddlogits * (prob - _hot(labels, prob)), axis=(prob.ndim - 1,)), labels, ignore_index)


sparse_softmax_cross_entropy_grad = define(
    "sparse_softmax_cross_entropy_grad(dloss, labels, prob, *, ignore_index=None) -> dlogits",
    Meaning(_sparse_grad_axes, _sparse_grad_ref, shape=lambda prob: prob.shape, dtype=lambda prob: prob.dtype,
            check=_check_sparse_grad),
    Kernel("sparse_softmax_cross_entropy_grad", key="prob", pack=_ignored, numbers=True,
           range_help=sparse_softmax_cross_entropy.range_help),
    Split(linear=["dloss"]),
    Laws([*({"shapes": [e["shapes"][0], *e["shapes"]]} for e in _SPARSE),
          dict(shapes=[(6,), (6,), (6, 5)], ignore_index=2)], domain={"labels": "index:5"}),
    grad={"dloss": _ddloss, "prob": lambda ddlogits, dloss, labels, ignore_index: ddlogits * as_column(
        _counting(dloss, labels, ignore_index))})


def _check_dense(labels: Spec, logits: Spec) -> None:
    if labels.dtype is not logits.dtype or labels.shape != logits.shape or not logits.ndim:
        kind = DTypeError if labels.dtype is not logits.dtype else ShapeError
        fix = ("for integer labels use sparse_softmax_cross_entropy" if not labels.dtype.is_floating_point
               else \
             "make the labels one probability for every logit")
        raise kind("softmax_cross_entropy: labels and logits do not fit",
                   got=f"labels {labels}, logits {logits}",
                   expected="(labels, logits) of one shape and dtype", fix=fix)


def _dense_axes(labels: Spec) -> str:
    a = axes.same(labels.ndim - 1)
    return f"{a}V,{a}V->{a},{a}V"


def _dense_ref(labels: np.ndarray, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    logp = _log_softmax_ref(logits, -1)
    return -(labels * logp).sum(-1), np.exp(logp)


def _dense_grad(dloss: AnyTensor | None, dprob: AnyTensor | None, labels: AnyTensor,
                prob: AnyTensor) -> AnyTensor | None:
    """Return d loss / d logits = prob * sum(labels) - labels.

    The formula also holds if the labels do not add up to 1.
    """
    through_loss = through_prob = None
    if dloss is not None:
        through_loss = as_column(dloss) * (prob * _along(labels, -1) - labels)
    if dprob is not None:
        through_prob = softmax_grad(dprob, prob)
    return add_known([through_loss, through_prob])


softmax_cross_entropy = define(
    "softmax_cross_entropy(labels, logits) -> (loss, prob)", Meaning(_dense_axes, _dense_ref,
                                                                     check=_check_dense),
    Kernel("softmax_cross_entropy", key="logits"), Split(linear=["labels->loss"]),
    Laws([dict(shapes=[(6, 5), (6, 5)]), dict(shapes=[(6, 2, 5), (6, 2, 5)]), dict(shapes=[(5,), (5,)])],
         domain={"labels": "positive"}),
    grad={"labels": lambda dloss, logits: None if dloss is None
          else neg(as_column(dloss) * log_softmax(logits)), "logits": _dense_grad},
    doc="loss = -sum(labels * log_softmax(logits)) over the last axis; prob = softmax(logits). Labels come "
    "first.")

sigmoid_cross_entropy = elementwise(
    "sigmoid_cross_entropy(labels, logits) -> loss", formula=lambda labels, logits: softplus(logits) - logits
    * labels,
    doc="-labels * log(sigmoid(logits)) - (1 - labels) * log(1 - sigmoid(logits)), without overflow.")


def _bounded(p: AnyTensor) -> AnyTensor:
    """log(p), no less than -100."""
    return maximum(log(p), -100.0)


binary_cross_entropy = elementwise(
    "binary_cross_entropy(p, labels) -> loss", Laws(domain={"p": "share"}),
    formula=lambda p, labels: _bounded(1 - p) * (labels - 1) - _bounded(p) * labels,
    grad={"p": lambda dloss, p, labels: dloss * (p - labels) / maximum((1 - p) * p, 1e-12),
          "labels": lambda dloss, p: dloss * (_bounded(1 - p) - _bounded(p))},
    doc="-labels * log(p) - (1 - labels) * log(1 - p), the logarithms at least -100; with a slope at p = 0 "
    "and 1.")
