"""The loss functions of OneFlow 0.4: flow.nn.L1Loss and its family, smooth_l1_loss, ctc_loss, combined_margin_loss.

reduction: "mean" (the default) and "sum" give one number, of shape (1,); "none" gives a loss for each element.
"""
from __future__ import annotations

import math

from flowedu import ops
from flowedu.blob import dtype as dt
from flowedu.errors import ArgumentError, CheckError, DTypeError, ShapeError
from flowedu.frontend import front
from flowedu.nn.functions import sparse_softmax_cross_entropy_with_logits

_o = ops.REGISTRY
_e = ops.elementwise
_LEAST = 1e-20                   # OneFlow's smallest probability to take a logarithm of


def _check_reduction(what: str, reduction: str) -> None:
    if reduction not in ("none", "mean", "sum"):
        raise CheckError(f"{what}: unknown reduction", expected='"none", "mean" or "sum"', got=repr(reduction),
                         fix='leave it out: "mean" is the default')


def _reduced(loss, reduction: str):
    if reduction == "none":
        return loss
    total = _o["sum"](loss, axis=tuple(range(loss.ndim)), keepdims=False)
    total = total * (1.0 / max(loss.spec.size, 1)) if reduction == "mean" else total
    return _o["reshape"](total, shape=(1,))


def _check_same(what: str, a, b, names: str = "input and target", error=CheckError) -> None:
    if a.shape != b.shape:
        raise error(f"{what}: {names} have different shapes", expected="one shape", got=f"{a.shape} and {b.shape}",
                    fix="flow.reshape or flow.broadcast_like one of them")
    if a.dtype is not b.dtype:
        raise DTypeError(f"{what}: {names} have different dtypes", expected="equal dtypes (blobs are never promoted)",
                         got=f"{a.dtype.name} and {b.dtype.name}", fix=f"flow.cast(x, flow.{a.dtype.name})")


def _weighted(what: str, loss, weight):
    if weight is None:
        return loss
    _check_same(what, loss, weight, "input and weight")
    return loss * weight


@front("L1Loss")
def L1Loss(input, target, reduction: str = "mean"):
    """|target - input|"""
    _check_reduction("L1Loss", reduction)
    _check_same("L1Loss", input, target)
    return _reduced(_e.abs(target - input), reduction)


@front("MSELoss")
def MSELoss(input, target, reduction: str = "mean"):
    """(target - input)^2"""
    _check_reduction("MSELoss", reduction)
    _check_same("MSELoss", input, target)
    return _reduced(_e.squared_difference(target, input), reduction)


@front("BCELoss")
def BCELoss(input, target, weight=None, reduction: str = "mean"):
    """-(target * log(input) + (1 - target) * log(1 - input)) * weight. input: probabilities, after a sigmoid.

    0 where input is exactly the target 0 or 1 (OneFlow 0.4: nan); infinite where it is exactly the other one.
    """
    _check_reduction("BCELoss", reduction)
    _check_same("BCELoss", input, target)
    loss = _e.neg(_e.xlogy(target, input) + _e.xlogy(1 - target, 1 - input))
    return _reduced(_weighted("BCELoss", loss, weight), reduction)


@front("BCEWithLogitsLoss")
def BCEWithLogitsLoss(input, target, weight=None, pos_weight=None, reduction: str = "mean"):
    """BCELoss(sigmoid(input), target), without overflow. pos_weight, one number per class (the last axis), weighs the
    positive examples (OneFlow 0.4 cannot do without it)."""
    _check_reduction("BCEWithLogitsLoss", reduction)
    _check_same("BCEWithLogitsLoss", input, target)
    scale = 1.0
    if pos_weight is not None:
        if pos_weight.shape != input.shape[-1:]:
            raise CheckError("BCEWithLogitsLoss: pos_weight does not fit", expected=f"{input.shape[-1:]}: one number for "
                             "each class, the last axis of input", got=str(pos_weight.shape),
                             fix="a weight for every element is weight=")
        scale = (pos_weight - 1) * target + 1
    loss = (1 - target) * input + _e.softplus(_e.neg(input)) * scale
    return _reduced(_weighted("BCEWithLogitsLoss", loss, weight), reduction)


@front("KLDivLoss")
def KLDivLoss(input, target, log_target: bool = False, reduction: str = "mean"):
    """target * (log(target) - input), 0 where target is not above 0; with log_target exp(target) * (target - input).

    input: logarithms of probabilities. "mean" divides by the number of elements.
    """
    _check_reduction("KLDivLoss", reduction)
    _check_same("KLDivLoss", input, target)
    if log_target:
        return _reduced(_e.exp(target) * (target - input), reduction)
    there = _e.greater(target, 0.0)
    one, zero = (_o["constant"](shape=(), value=v, dtype=target.dtype) for v in (1.0, 0.0))
    safe = _e.where(there, target, one)               # no nan from log, nor in its gradient
    return _reduced(_e.where(there, safe * (_e.log(safe) - input), zero), reduction)


@front("MarginRankingLoss")
def MarginRankingLoss(input1, input2, target, margin: float = 0.0, reduction: str = "mean"):
    """max(0, margin - target * (input1 - input2)). target: 1 where input1 should rank higher, -1 where input2 should."""
    _check_reduction("MarginRankingLoss", reduction)
    _check_same("MarginRankingLoss", input1, input2, "input1 and input2")
    _check_same("MarginRankingLoss", input1, target, "input1 and target")
    return _reduced(_e.relu(target * (input2 - input1) + float(margin)), reduction)


def _distance(x, p: float):
    """The p-norm of each row of x, over axis 1."""
    x = _e.abs(x)
    if p == math.inf:
        return _o["max"](x, axis=(1,))
    if p == 1.0:
        return _o["sum"](x, axis=(1,))
    total = _o["sum"](_e.square(x) if p == 2.0 else _e.pow(x, p), axis=(1,))
    return _e.sqrt(total) if p == 2.0 else _e.pow(total, 1.0 / p)


@front("TripletMarginLoss")
def TripletMarginLoss(anchor, positive, negative, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
                      swap: bool = False, reduction: str = "mean"):
    """max(0, |anchor - positive + eps| - |anchor - negative + eps| + margin), with the p-norm over axis 1.

    swap: the negative's distance is that to the positive where this is smaller (OneFlow 0.4 refuses it).
    """
    what = "TripletMarginLoss"
    _check_reduction(what, reduction)
    _check_same(what, anchor, positive, "anchor and positive")
    _check_same(what, anchor, negative, "anchor and negative")
    if anchor.ndim < 2:
        raise ShapeError(f"{what}: there is no axis 1 to measure distances along", expected="(samples, features, ...)",
                         got=str(anchor.shape), fix="flow.expand_dims(x, 0) makes one sample of it")
    if not p > 0:
        raise ArgumentError(f"{what}: p is not the degree of a norm", expected="p > 0", got=repr(p), fix="p=2.0")
    near, far = _distance(anchor - positive + float(eps), float(p)), _distance(anchor - negative + float(eps), float(p))
    if swap:
        far = _e.minimum(far, _distance(positive - negative + float(eps), float(p)))
    return _reduced(_e.relu(near - far + float(margin)), reduction)


def _label_scores(what: str, labels, x):
    """(labels, x[i, labels[i]]) with the labels as a column; those of shape (n, 1) are one already."""
    if labels.dtype not in (dt.int32, dt.int64):
        raise DTypeError(f"{what}: labels have the wrong element type", expected="int32 or int64", got=labels.dtype.name,
                         fix="flow.cast(labels, flow.int32); check the order of the arguments")
    if labels.shape not in (x.shape[:-1], (*x.shape[:-1], 1)) or not x.ndim:
        raise CheckError(f"{what}: the labels do not fit", expected=f"labels {x.shape[:-1]}, one for each row of {x.shape}",
                         got=str(labels.shape), fix="check the order of the arguments")
    column = _o["reshape"](labels, shape=(*x.shape[:-1], 1))
    return column, _o["dim_gather"](x, column, axis=x.ndim - 1)


@front("SparseCrossEntropy")
def sparse_cross_entropy(labels, prediction):
    """-log(prediction[label]) for every row: prediction holds probabilities, labels come first.

    Probabilities below 1e-20 count as 1e-20, as in OneFlow. From logits: sparse_softmax_cross_entropy_with_logits.
    """
    _, score = _label_scores("sparse_cross_entropy", labels, prediction)
    return _e.neg(_e.log(_o["reshape"](_e.maximum(score, _LEAST), shape=prediction.shape[:-1])))


distributed_sparse_softmax_cross_entropy_with_logits = sparse_softmax_cross_entropy_with_logits


@front("SmoothL1Loss")
def smooth_l1_loss(prediction, label, beta: float = 1.0):
    """x^2 / (2 beta) where x = |prediction - label| is below beta, x - beta / 2 elsewhere; one loss per element."""
    _check_same("smooth_l1_loss", prediction, label, "prediction and label", ShapeError)
    if not beta >= 0:
        raise ArgumentError("smooth_l1_loss: beta is negative", expected="beta of 0 or more", got=repr(beta),
                            fix="beta=1.0; 0 is plain |prediction - label|")
    x = _e.abs(prediction - label)
    if beta == 0:
        return x
    bent = _e.minimum(x, float(beta))
    return bent * (x - bent * 0.5) * (1.0 / beta)


@front("CTCLoss")
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank: int = 0, reduction: str = "mean",
             zero_infinity: bool = False):
    """Connectionist temporal classification: -log of the probability of each sequence of labels, over all alignments.

    Args:
        log_probs: (time, batch, classes), logarithms of probabilities: nn.logsoftmax of the logits.
        targets: (batch, longest) labels, int32 or int64; what lies behind a target's length is not read.
        input_lengths, target_lengths: (batch,) how much of each counts.
        blank: the class that stands for no label.
        reduction: "none": (batch,); "sum"; "mean": each loss divided by its target's length (at least 1), then the mean.
        zero_infinity: 0 for sequences too short to hold their labels, which else have an infinite loss. Their gradient is
            0 in both cases.
    """
    _check_reduction("ctc_loss", reduction)
    loss = _o["ctc_loss"](log_probs, targets, input_lengths, target_lengths, blank=int(blank),
                          zero_infinity=bool(zero_infinity))
    if reduction == "mean":
        loss = loss / _o["cast"](_e.maximum(target_lengths, 1), dtype=loss.dtype)
    return _reduced(loss, reduction)


@front("CombinedMarginLoss")
def combined_margin_loss(x, label, m1: float = 1.0, m2: float = 0.0, m3: float = 0.0):
    """x, cosines (n, classes), with that of each row's label made harder: cos(m1 * acos(x) + m2) - m3.

    SphereFace: m1; ArcFace: m2; CosFace: m3. The result is no loss yet: scale it and go on to the softmax cross entropy.
    A cosine that rounding took to 1 or beyond counts as just below (OneFlow 0.4: nan).
    """
    if x.ndim != 2:
        raise ShapeError("combined_margin_loss: x does not fit", expected="(n, classes)", got=str(x.shape),
                         fix="flow.flatten or flow.reshape it")
    column, score = _label_scores("combined_margin_loss", label, x)
    if (m1, m2) != (1, 0):
        top = 1 - (1e-7 if x.dtype is dt.float32 else 1e-15)
        angle = _e.acos(_e.minimum(_e.maximum(score, -top), top))
        score = _e.cos(angle * float(m1) + float(m2))
    hot = _e.equal(_o["cast"](column, dtype=dt.int64), _o["range"](size=x.shape[1], dtype=dt.int64))
    return _e.where(hot, score - float(m3), x)


__all__ = ["BCELoss", "BCEWithLogitsLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss", "TripletMarginLoss",
           "combined_margin_loss", "ctc_loss", "distributed_sparse_softmax_cross_entropy_with_logits", "smooth_l1_loss",
           "sparse_cross_entropy"]
