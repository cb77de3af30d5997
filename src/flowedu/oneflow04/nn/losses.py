"""Loss functions of OneFlow 0.4: flow.nn.L1Loss and others, smooth_l1_loss, ctc_loss, combined_margin_loss.

The reductions "mean" (the default) and "sum" return a value of shape (1,); "none" returns a loss for each
element.
"""
from __future__ import annotations

import math

from flowedu import ops
from flowedu.core.ops.reduce import max as max_op
from flowedu.core.ops.reduce import sum as sum_op
from flowedu.core.ops.view import constant, reshape
from flowedu.core.values.thread_state import thread_state
from flowedu.errors import ArgumentError, CheckError, DTypeError, ShapeError
from flowedu.errors.element_types import mixed
from flowedu.nn.functional import class_losses
from flowedu.nn.functional.class_losses import label_scores
from flowedu.nn.functional.common import reshaped, times, total
from flowedu.nn.functional.ctc import ctc_losses
from flowedu.nn.functional.loss import huber, weighted_logits
from flowedu.oneflow04.nn.functions import sparse_softmax_cross_entropy_with_logits
from flowedu.ops.front import front
from flowedu.ops.functions import squared_difference

_e = ops.elementwise
_LEAST = 1e-20                   # OneFlow's smallest probability to take a logarithm of


def _check(what: str, reduction: str, **values) -> None:
    """Raise unless the reduction is known and all values have one shape and dtype."""
    if reduction not in ("none", "mean", "sum"):
        raise CheckError(f"{what}: unknown reduction", expected='"none", "mean" or "sum"',
                         got=repr(reduction), fix='leave it out: "mean" is the default')
    (first, a), *others = values.items()
    for name, b in others:
        _check_same(what, a, b, f"{first} and {name}")


def _check_same(what: str, a, b, names: str, error=CheckError) -> None:
    if a.shape != b.shape:
        raise error(f"{what}: {names} have different shapes", expected="one shape",
                    got=f"{a.shape} and {b.shape}", fix="flow.reshape or flow.broadcast_like one of them")
    if a.dtype is not b.dtype and thread_state.amp is None:
        raise DTypeError(f"{what}: {names} have different dtypes",
                         expected="equal dtypes (blobs are never promoted)",
                         got=f"{a.dtype.name} and {b.dtype.name}",
                         fix=mixed(f"flow.cast(x, flow.{a.dtype.name})", a.dtype, b.dtype))


def _reduce(loss, reduction: str):
    """Apply a reduction to losses. A single value has the shape (1,), and the mean of no elements is 0."""
    if reduction == "none":
        return loss
    whole = total(loss)
    return reshaped(times(whole, 1.0 / max(loss.spec.size, 1)) if reduction == "mean" else whole, (1,))


def _apply_weight(what: str, loss, weight):
    if weight is None:
        return loss
    _check_same(what, loss, weight, "input and weight")
    return loss * weight


@front("L1Loss")
def L1Loss(input, target, reduction: str = "mean"):
    """Compute |target - input|.

    Args:
        input: a blob or tensor.
        target: a blob of the same shape and dtype.
        reduction: "mean", "sum", or "none".
    """
    _check("L1Loss", reduction, input=input, target=target)
    return _reduce(_e.abs(target - input), reduction)


@front("MSELoss")
def MSELoss(input, target, reduction: str = "mean"):
    """Compute (target - input)^2.

    Args:
        input: a blob or tensor.
        target: a blob of the same shape and dtype.
        reduction: "mean", "sum", or "none".
    """
    _check("MSELoss", reduction, input=input, target=target)
    return _reduce(squared_difference(target, input), reduction)


@front("BCELoss")
def BCELoss(input, target, weight=None, reduction: str = "mean"):
    """Compute -(target * log(input) + (1 - target) * log(1 - input)) * weight.

    The loss is 0 where input equals a target of 0 or 1 (NaN in OneFlow 0.4), and infinite for the opposite
    value.

    Args:
        input: probabilities.
        target: a blob of the same shape and dtype.
        weight: a factor per element, or None.
        reduction: "mean", "sum", or "none".
    """
    _check("BCELoss", reduction, input=input, target=target)
    loss = _e.neg(_e.xlogy(target, input) + _e.xlogy(1 - target, 1 - input))
    return _reduce(_apply_weight("BCELoss", loss, weight), reduction)


@front("BCEWithLogitsLoss")
def BCEWithLogitsLoss(input, target, weight=None, pos_weight=None, reduction: str = "mean"):
    """Compute BCELoss(sigmoid(input), target) without overflow.

    Args:
        input: logits.
        target: a blob of the same shape and dtype.
        weight: a factor per element, or None.
        pos_weight: the weight of the positive examples, one per class (the last axis), or None. OneFlow 0.4
            requires it.
        reduction: "mean", "sum", or "none".
    """
    _check("BCEWithLogitsLoss", reduction, input=input, target=target)
    if pos_weight is not None and pos_weight.shape != input.shape[-1:]:
        raise CheckError("BCEWithLogitsLoss: pos_weight does not fit",
                         expected=f"{input.shape[-1:]}: one number for each class, the last axis of input",
                         got=str(pos_weight.shape), fix="a weight for every element is weight=")
    loss = weighted_logits(input, target, 1.0 if pos_weight is None else (pos_weight - 1) * target + 1)
    return _reduce(_apply_weight("BCEWithLogitsLoss", loss, weight), reduction)


@front("KLDivLoss")
def KLDivLoss(input, target, log_target: bool = False, reduction: str = "mean"):
    """Compute the Kullback-Leibler divergence target * (log(target) - input), 0 where target is not positive.

    Args:
        input: logarithms of probabilities.
        target: probabilities of the same shape and dtype.
        log_target: True if `target` has logarithms. The loss is then exp(target) * (target - input).
        reduction: "mean" (over all elements), "sum", or "none".
    """
    _check("KLDivLoss", reduction, input=input, target=target)
    if log_target:
        return _reduce(_e.exp(target) * (target - input), reduction)
    there = _e.greater(target, 0.0)
    one, zero = (constant(shape=(), value=v, dtype=target.dtype) for v in (1.0, 0.0))
    safe = _e.where(there, target, one)               # no nan from log, nor in its gradient
    return _reduce(_e.where(there, safe * (_e.log(safe) - input), zero), reduction)


@front("MarginRankingLoss")
def MarginRankingLoss(input1, input2, target, margin: float = 0.0, reduction: str = "mean"):
    """Compute max(0, margin - target * (input1 - input2)).

    Args:
        input1: a blob or tensor.
        input2: a blob of the same shape and dtype.
        target: 1 where input1 should have the higher rank, -1 where input2 should.
        margin: the smallest difference without a loss.
        reduction: "mean", "sum", or "none".
    """
    _check("MarginRankingLoss", reduction, input1=input1, input2=input2, target=target)
    return _reduce(_e.relu(target * (input2 - input1) + float(margin)), reduction)


def _distance(x, p: float):
    """Return the p-norm of each row of x over axis 1."""
    x = _e.abs(x)
    if p == math.inf:
        return max_op(x, axis=(1,))
    if p == 1.0:
        return sum_op(x, axis=(1,))
    total = sum_op(_e.square(x) if p == 2.0 else _e.pow(x, p), axis=(1,))
    return _e.sqrt(total) if p == 2.0 else _e.pow(total, 1.0 / p)


@front("TripletMarginLoss")
def TripletMarginLoss(anchor, positive, negative, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
                      swap: bool = False, reduction: str = "mean"):
    """Compute max(0, |anchor - positive + eps| - |anchor - negative + eps| + margin).

    The norms are p-norms over axis 1.

    Args:
        anchor: a blob of shape (samples, features, ...).
        positive: a blob of the same shape and dtype.
        negative: a blob of the same shape and dtype.
        margin: the smallest difference of the distances without a loss.
        p: the degree of the norm, above 0.
        eps: a constant added to the differences.
        swap: use the distance of negative and positive where it is smaller than that of negative and anchor.
            OneFlow 0.4 does not support it.
        reduction: "mean", "sum", or "none".
    """
    what = "TripletMarginLoss"
    _check(what, reduction, anchor=anchor, positive=positive, negative=negative)
    if anchor.ndim < 2:
        raise ShapeError(f"{what}: there is no axis 1 to measure distances along",
                         expected="(samples, features, ...)",
                         got=str(anchor.shape), fix="flow.expand_dims(x, 0) makes one sample of it")
    if not p > 0:
        raise ArgumentError(f"{what}: p is not the degree of a norm", expected="p > 0", got=repr(p),
                            fix="p=2.0")
    near, far = (_distance(anchor - positive + float(eps), float(p)),
                 _distance(anchor - negative + float(eps), float(p)))
    if swap:
        far = _e.minimum(far, _distance(positive - negative + float(eps), float(p)))
    return _reduce(_e.relu(near - far + float(margin)), reduction)


@front("SparseCrossEntropy")
def sparse_cross_entropy(labels, prediction):
    """Compute -log(prediction[label]) of each row.

    Args:
        labels: class indices of shape prediction.shape[:-1]. They are the first argument.
        prediction: probabilities of shape (..., classes). As in OneFlow, values below 1e-20 count as 1e-20.
            For logits use sparse_softmax_cross_entropy_with_logits.
    """
    _, score = label_scores("sparse_cross_entropy", labels, prediction)
    return _e.neg(_e.log(reshape(_e.maximum(score, _LEAST), shape=prediction.shape[:-1])))


distributed_sparse_softmax_cross_entropy_with_logits = sparse_softmax_cross_entropy_with_logits


@front("SmoothL1Loss")
def smooth_l1_loss(prediction, label, beta: float = 1.0):
    """Compute x^2 / (2 beta) where x = |prediction - label| is below beta, and x - beta / 2 elsewhere.

    Args:
        prediction: a blob or tensor.
        label: a blob of the same shape and dtype.
        beta: the bound between the two formulas; 0 returns |prediction - label|.

    Returns: one loss per element.
    """
    _check_same("smooth_l1_loss", prediction, label, "prediction and label", ShapeError)
    if not beta >= 0:
        raise ArgumentError("smooth_l1_loss: beta is negative", expected="beta of 0 or more", got=repr(beta),
                            fix="beta=1.0; 0 is plain |prediction - label|")
    x = _e.abs(prediction - label)
    return huber(x, beta) * (1.0 / beta) if beta else x


@front("CTCLoss")
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank: int = 0, reduction: str = "mean",
             zero_infinity: bool = False):
    """Compute the loss of connectionist temporal classification (CTC).

    The loss is -log of the probability of each label sequence, summed over all alignments.

    Args:
        log_probs: logarithms of probabilities, such as nn.logsoftmax of the logits, of shape (time, batch,
            classes).
        targets: labels of shape (batch, longest), int32 or int64. Labels after the end of a target are
            ignored.
        input_lengths: the number of time steps of each sample, of shape (batch,).
        target_lengths: the number of labels of each sample, of shape (batch,).
        blank: the class without a label.
        reduction: "none" returns (batch,); "sum"; "mean" divides each loss by the length of its target (at
            least 1) and averages.
        zero_infinity: return 0 instead of infinity for sequences that are too short for their labels. Their
            gradient is 0 in both cases.
    """
    _check("ctc_loss", reduction, log_probs=log_probs)
    loss = ctc_losses(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity,
                      reduction == "mean")
    return _reduce(loss, reduction)


combined_margin_loss = front("CombinedMarginLoss")(class_losses.combined_margin_loss)

__all__ = ["BCELoss", "BCEWithLogitsLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss",
           "TripletMarginLoss", "combined_margin_loss", "ctc_loss",
           "distributed_sparse_softmax_cross_entropy_with_logits", "smooth_l1_loss", "sparse_cross_entropy"]
