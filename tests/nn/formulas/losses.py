"""Losses."""
import itertools
import math

import numpy as np

from .activations import log_softmax, sigmoid
from .table import REDUCTIONS, row


def reduced(loss, reduction):
    return {"mean": np.mean, "sum": np.sum, "none": np.asarray}[reduction](loss)


def pair(d):
    shape = d.shape(0, 3)
    return {"input": d.floats(*shape), "target": d.floats(*shape)} | d.options(reduction=REDUCTIONS)


# ---- regression
@row(pair, module="MSELoss")
def mse_loss(input, target, reduction="mean"):
    return reduced((input - target) ** 2, reduction)


@row(pair, module="L1Loss")
def l1_loss(input, target, reduction="mean"):
    return reduced(np.abs(input - target), reduction)


@row(lambda d: pair(d) | d.options(beta=(0.0, 0.5, 2.0)), module="SmoothL1Loss")
def smooth_l1_loss(input, target, reduction="mean", beta=1.0):
    d = np.abs(input - target)
    return reduced(np.where(d < beta, 0.5 * d * d / (beta or 1), d - 0.5 * beta), reduction)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    d = np.abs(input - target)
    loss = np.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta))
    return reduced(loss if weight is None else loss * weight, reduction)


def _weighted_pair(d):
    args = pair(d)
    return args | d.maybe(weight=lambda: d.positive(*args["input"].shape))


row(lambda d: _weighted_pair(d) | d.options(delta=(0.5, 2.0)))(huber_loss)
row(lambda d: pair(d) | d.options(delta=(0.5, 2.0)), function=None, module="HuberLoss")(huber_loss)


# ---- classification
def _classes(d, smoothing=False, probabilities=False):
    classes, rest = d.one_of(1, 2, 4), d.shape(0, 2)
    lead = () if not rest and d.one_of(True, False) else (d.one_of(1, 2, 5),)
    x = d.floats(*lead, classes, *rest)
    if probabilities and d.one_of(True, False, False):
        target = d.positive(*x.shape)
        target /= target.sum(len(lead), keepdims=True)
        args = {"input": x, "target": target} | d.options(reduction=REDUCTIONS)
    else:
        target = d.labels(classes, *lead, *rest)
        ignored = d.one_of(-100, *range(classes))
        counted = np.asarray(d.rng.random(target.shape) < 0.7)
        counted.flat[:1] = True                                    # the mean of no elements is NaN
        target = np.where(counted, target, ignored)
        args = {"input": x, "target": target} | d.options(reduction=REDUCTIONS)
        if ignored >= 0 and not (target == ignored).all():
            args["ignore_index"] = ignored
    if d.one_of(True, False):  # the unweighted case has a separate code path
        return args
    args |= d.maybe(weight=lambda: d.positive(classes))
    return args | (d.options(label_smoothing=(0.1, 0.5, 1.0)) if smoothing else {})


def _rows(x):
    """Move the classes to the last axis."""
    return np.moveaxis(x, 1 if x.ndim > 1 else 0, -1)


@row(lambda d: _classes(d, True, True), module="CrossEntropyLoss", fixed=("weight",))
def cross_entropy(input, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    logs = log_softmax(_rows(input), -1)
    classes = logs.shape[-1]
    weight = np.ones(classes) if weight is None else weight
    even = label_smoothing / classes
    if target.dtype.kind == "f":
        wanted = _rows(target) * (1 - label_smoothing) + even
        return reduced(-(wanted * weight * logs).sum(-1), reduction)
    counts = target != ignore_index
    wanted = np.eye(classes)[np.where(counts, target, 0)]
    each = weight * ((1 - label_smoothing) * wanted + even)
    loss = np.where(counts, -(each * logs).sum(-1), 0)
    return loss.sum() / (wanted @ weight)[counts].sum() if reduction == "mean" else reduced(loss, reduction)


@row(_classes, module="NLLLoss", fixed=("weight",))
def nll_loss(input, target, weight=None, ignore_index=-100, reduction="mean"):
    rows, counts = _rows(input), target != ignore_index
    wanted = np.eye(rows.shape[-1])[np.where(counts, target, 0)] * counts[..., None]
    share = wanted if weight is None else wanted * weight
    loss = -(share * rows).sum(-1)
    return loss.sum() / share.sum() if reduction == "mean" else reduced(loss, reduction)


def _rows_and_labels(d):
    x = d.floats(*d.shape(2, 3))
    return {"labels": d.labels(x.shape[-1], *x.shape[:-1]), "logits": x}


@row(_rows_and_labels)
def sparse_softmax_cross_entropy(labels, logits):
    return -np.take_along_axis(log_softmax(logits, -1), labels[..., None], -1)[..., 0]


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean",
             zero_infinity=False):
    """Sum over every alignment path."""
    losses, shared = [], targets.ndim == 1
    for n, (steps, count) in enumerate(zip(input_lengths, target_lengths)):
        start = sum(target_lengths[:n])
        want = list(targets[start:start + count] if shared else targets[n][:count])
        total = 0.0
        for path in itertools.product(range(log_probs.shape[2]), repeat=int(steps)):
            if [c for c, _ in itertools.groupby(path) if c != blank] == want:
                total = total + np.exp(sum(log_probs[t, n, c] for t, c in enumerate(path)))
        losses.append(-np.log(total) if total else 0.0 if zero_infinity else np.inf)
    losses = np.array(losses)
    return (np.mean(losses / np.maximum(target_lengths, 1)) if reduction == "mean"
            else reduced(losses, reduction))


def _alignments(d):
    time, batch, blank = d.one_of(2, 3, 4), d.one_of(1, 2), d.one_of(0, 2)
    x = log_softmax(d.floats(time, batch, 3), -1)
    steps = d.rng.integers(2, time + 1, batch)
    counts = d.rng.integers(0, 2 if d.smooth else 3, batch)
    labels = d.rng.choice([c for c in range(3) if c != blank], (batch, 2))
    if d.one_of(True, False) and counts.sum():
        labels = np.concatenate([row[:n] for row, n in zip(labels, counts)])
    args = {"log_probs": x, "targets": labels, "input_lengths": steps, "target_lengths": counts,
            "blank": blank}
    return args | d.options(zero_infinity=(True,), reduction=REDUCTIONS)


row(_alignments, module="CTCLoss")(ctc_loss)


# ---- probabilities
def _probabilities(d):
    shape = d.shape(1, 3)
    target = d.unit(*shape) if d.smooth else d.one_of(d.unit(*shape), np.round(d.unit(*shape)))
    return {"input": d.unit(*shape), "target": target} | d.options(reduction=REDUCTIONS) | \
        d.maybe(weight=lambda: d.positive(shape[-1]))


@row(_probabilities, module="BCELoss", fixed=("weight",))
def binary_cross_entropy(input, target, weight=None, reduction="mean"):
    loss = -(target * np.log(input) + (1 - target) * np.log(1 - input))
    return reduced(loss if weight is None else loss * weight, reduction)


def _logits(d):
    args = _probabilities(d)
    shape = args["input"].shape
    return args | {"input": d.floats(*shape)} | d.maybe(pos_weight=lambda: d.positive(shape[-1]))


@row(_logits, module="BCEWithLogitsLoss", fixed=("weight", "pos_weight"))
def binary_cross_entropy_with_logits(input, target, weight=None, reduction="mean", pos_weight=None):
    p = sigmoid(input)
    loss = -((1 if pos_weight is None else pos_weight) * target * np.log(p) + (1 - target) * np.log(1 - p))
    return reduced(loss if weight is None else loss * weight, reduction)


def _divergence(d):
    log = d.one_of(True, False)
    shape = d.shape(1, 3)
    target = d.floats(*shape) if log else d.positive(*shape) if d.smooth else np.maximum(d.floats(*shape), 0)
    return {"input": d.floats(*shape), "target": target, "log_target": log} | d.options(
        reduction=(*REDUCTIONS, "batchmean"))


@row(_divergence, module="KLDivLoss")
def kl_div(input, target, reduction="mean", log_target=False):
    if log_target:
        loss = np.exp(target) * (target - input)
    else:
        loss = np.where(target > 0, target * (np.log(np.where(target > 0, target, 1)) - input), 0)
    return loss.sum() / len(input) if reduction == "batchmean" else reduced(loss, reduction)


def _counts(d):
    log, shape = d.one_of(True, False), d.shape(0, 3)
    target = d.positive(*shape) * 3 if d.smooth else np.floor(d.positive(*shape) * 3)
    return {"input": d.floats(*shape) if log else d.positive(*shape), "target": target,
            "log_input": log} | d.options(
                full=(True,), eps=(1e-2,), reduction=REDUCTIONS)


@row(_counts, module="PoissonNLLLoss")
def poisson_nll_loss(input, target, log_input=True, full=False, eps=1e-8, reduction="mean"):
    loss = np.exp(input) - target * input if log_input else input - target * np.log(input + eps)
    if full:                                                       # Stirling's formula for log(target!)
        t = np.maximum(target, 1)
        loss = loss + np.where(target > 1, t * np.log(t) - t + 0.5 * np.log(2 * math.pi * t), 0)
    return reduced(loss, reduction)


def _gaussian(d):
    shape = d.shape(1, 3)
    var = d.one_of(d.positive(*shape), d.positive(*shape[:-1], 1), d.positive(*shape[:-1]))
    var = d.positive(*shape) if len(shape) == 1 else var  # a vector must not be mistaken for a batch of one
    return {"input": d.floats(*shape), "target": d.floats(*shape), "var": var} | d.options(
        full=(True,), eps=(1e-3,) if d.smooth else (1e-3, 0.7), reduction=REDUCTIONS)


@row(_gaussian, module="GaussianNLLLoss")
def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    var = np.maximum(var if var.ndim == input.ndim else var[..., None], eps)
    loss = 0.5 * (np.log(var) + (input - target) ** 2 / var) + (0.5 * math.log(2 * math.pi) if full else 0)
    return reduced(loss, reduction)


# ---- margins between classes
def _scores(d, many):
    lead, classes = d.one_of((), (d.one_of(1, 3),)), d.one_of(1, 2, 4)
    args = {"input": d.floats(*lead, classes), "target": d.labels(classes,
                                                                  *lead)} | d.options(reduction=REDUCTIONS)
    if many:
        target = np.stack([d.rng.permutation(classes) for _ in range(lead[0] if lead else 1)])
        # labels after -1 are ignored
        target[np.arange(classes) == d.labels(classes + 1, len(target), 1)] = -1
        return args | {"target": target.reshape(*lead, classes)}
    return args | d.options(p=(2,), margin=(0.3, 2.0)) | d.maybe(weight=lambda: d.positive(classes))


@row(lambda d: _scores(d, False), module="MultiMarginLoss", fixed=("weight",))
def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, reduction="mean"):
    def one(x, y):
        near = sum(max(0.0, margin - x[y] + x[j]) ** p for j in range(len(x)) if j != y)
        return near * (1 if weight is None else weight[y]) / len(x)

    return reduced(one(input, target) if input.ndim == 1 else np.array([*map(one, input, target)]), reduction)


@row(lambda d: _scores(d, True), module="MultiLabelMarginLoss")
def multilabel_margin_loss(input, target, reduction="mean"):
    def one(x, y):
        own = [*itertools.takewhile(lambda c: c >= 0, y)]
        return sum(max(0.0, 1 - x[i] + x[j]) for i in own for j in range(len(x)) if j not in own) / len(x)

    return reduced(one(input, target) if input.ndim == 1 else np.array([*map(one, input, target)]), reduction)
