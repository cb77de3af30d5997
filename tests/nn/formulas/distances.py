"""Distances between vectors, and losses of pairs, triplets, and margins."""
import numpy as np

from .activations import sigmoid
from .losses import reduced
from .table import REDUCTIONS, row


def _vectors(d):
    shape = d.shape(1, 3)
    dim = d.whole(-len(shape), len(shape) - 1)
    given = {"dim": dim} if len(shape) == 1 or d.one_of(True, False) else {}
    return {"x1": d.floats(*shape), "x2": d.floats(*shape)} | given | d.options(eps=(1e-8,) if d.smooth
                                                                                else (0.5, 1e-8))


@row(_vectors, module="CosineSimilarity")
def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    n1, n2 = (np.maximum(np.sqrt((x * x).sum(dim)), eps) for x in (x1, x2))
    return (x1 * x2).sum(dim) / (n1 * n2)


def _norm(x, p, axis=-1, keepdims=False):
    x = np.abs(x)
    return x.max(axis, keepdims=keepdims) if p == np.inf else (x ** p).sum(axis, keepdims=keepdims) ** (1 / p)


def _two(d):
    shape = d.shape(1, 3)
    return {"x1": d.floats(*shape), "x2": d.floats(*shape)} | d.options(p=(1.0, 2.0, 3.0, np.inf), eps=(0.1,),
                                                                        keepdim=(True,))


@row(_two, module="PairwiseDistance")
def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    return _norm(x1 - x2 + eps, p, -1, keepdim)


@row(lambda d: {"input": d.floats(*d.shape(2, 3))} | d.options(p=(1.0, 3.0), dim=(0, -1),
                                                               eps=(1e-12,) if d.smooth
                                                               else (2.5, 1e-12)))
def normalize(input, p=2.0, dim=1, eps=1e-12):
    return input / np.maximum(_norm(input, p, dim, True), eps)


def _ranked(d):
    shape = d.shape(0, 2)
    return {"input1": d.floats(*shape), "input2": d.floats(*shape), "target": d.signs(*shape)} | d.options(
        margin=(0.5, 2.0), reduction=REDUCTIONS)


@row(_ranked, module="MarginRankingLoss", fixed=("target",))
def margin_ranking_loss(input1, input2, target, margin=0.0, reduction="mean"):
    return reduced(np.maximum(0, margin - target * (input1 - input2)), reduction)


def _signed(d):
    shape = d.shape(0, 3)
    return {"input": d.floats(*shape), "target": d.signs(*shape)} | d.options(reduction=REDUCTIONS)


@row(lambda d: _signed(d) | d.options(margin=(0.5, 2.0)), module="HingeEmbeddingLoss", fixed=("target",))
def hinge_embedding_loss(input, target, margin=1.0, reduction="mean"):
    return reduced(np.where(target == 1, input, np.maximum(0, margin - input)), reduction)


@row(_signed, module="SoftMarginLoss", fixed=("target",))
def soft_margin_loss(input, target, reduction="mean"):
    return reduced(np.log1p(np.exp(-target * input)), reduction)


def _angles(d):
    lead, size = d.one_of((), (1,), (4,)), d.one_of(1, 2, 5)
    return {"input1": d.rng.standard_normal((*lead, size)), "input2": d.rng.standard_normal((*lead, size)),
            "target": d.signs(*lead)} | d.options(margin=(-0.5, 0.3), reduction=REDUCTIONS)


@row(_angles, module="CosineEmbeddingLoss", fixed=("target",))
def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction="mean"):
    n1, n2 = ((x * x).sum(-1) + 1e-12 for x in (input1, input2))
    cos = (input1 * input2).sum(-1) / np.sqrt(n1 * n2)
    return reduced(np.where(target == 1, 1 - cos, np.maximum(0, cos - margin)), reduction)


def _triplet(d):
    shape = d.shape(1, 2)
    return {"anchor": d.floats(*shape), "positive": d.floats(*shape),
            "negative": d.floats(*shape)} | d.options(
                margin=(0.3, 3.0), p=(1.0, 3.0), eps=(0.01,), swap=(True,), reduction=REDUCTIONS)


@row(_triplet, module="TripletMarginLoss")
def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False,
                        size_average=None, reduce=None, reduction="mean"):
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    far = np.minimum(far, pairwise_distance(positive, negative, p, eps)) if swap else far
    return reduced(np.maximum(0, near - far + margin), reduction)


def _labelled(d):
    shape = d.shape(1, 3)
    return {"input": d.floats(*shape),
            "target": np.round(d.unit(*shape))} | d.options(reduction=REDUCTIONS) | \
        d.maybe(weight=lambda: d.positive(shape[-1]))


@row(_labelled, module="MultiLabelSoftMarginLoss", fixed=("target", "weight"))
def multilabel_soft_margin_loss(input, target, weight=None, reduction="mean"):
    p = sigmoid(input)
    loss = -(target * np.log(p) + (1 - target) * np.log(1 - p))
    return reduced((loss if weight is None else loss * weight).mean(-1), reduction)


def _cosines(d):
    n, classes = d.one_of(1, 4), d.one_of(1, 3)
    return {"x": d.rng.uniform(-0.9, 0.9, (n, classes)), "label": d.labels(classes, n)} | d.options(
        m1=(1.1,), m2=(0.2,), m3=(0.1,))


@row(_cosines, module="CombinedMarginLoss")
def combined_margin_loss(x, label, m1=1.0, m2=0.0, m3=0.0):
    own = np.arange(x.shape[1]) == label[:, None]
    return np.where(own, np.cos(m1 * np.arccos(x) + m2) - m3, x)
