"""Distances between vectors, and losses of pairs and triplets."""
from __future__ import annotations

from flowedu.core.ops.elementwise import minimum, neg, softplus, sqrt
from flowedu.core.ops.promote import cast, scalar
from flowedu.core.ops.reduce import sum as sum_op
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, ShapeError
from flowedu.nn.functional.common import check_floats, check_tensor, reduced, times
from flowedu.ops.softmax import sigmoid_cross_entropy
from flowedu.tensor import Tensor
from flowedu.tensor import elementwise as E
from flowedu.tensor.arguments.dims import one_dim, reshaped
from flowedu.tensor.dtypes.promotion import check_rank
from flowedu.tensor.reductions.reduce import vector_norm


def _sum(x: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    return sum_op(x, axis=(dim,), keepdims=keepdim)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return x1 . x2 / (max(|x1|, eps) * max(|x2|, eps)) along an axis.

    Args:
        x1: floating tensor.
        x2: floating tensor; the shapes broadcast.
        dim: axis of the vectors.
        eps: lower limit of the norms.
    """
    check_floats("cosine_similarity", x1, "x1")
    check_floats("cosine_similarity", x2, "x2")
    a = one_dim(dim, max(x1.ndim, x2.ndim), "cosine_similarity")
    product = x1 * x2
    if not product.ndim:
        x1, x2, product = (reshaped(x, (1,)) for x in (x1, x2, product))
    x1, x2 = (x if x.shape == product.shape else x.expand(*product.shape) for x in (x1, x2))
    least = eps * eps
    n1, n2 = (sqrt(E.clamp(_sum(x * x, a), min=least)) for x in (x1, x2))
    return _sum(product, a) / (n1 * n2)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6,
                      keepdim: bool = False) -> Tensor:
    """Return the p-norm of x1 - x2 + eps along the last axis.

    Args:
        x1: (N, D) or (D,).
        x2: (N, D) or (D,).
        p: order of the norm.
        eps: number added to each difference.
        keepdim: keep the last axis, with size 1.
    """
    check_floats("pairwise_distance", x1, "x1")
    check_floats("pairwise_distance", x2, "x2")
    d = x1 - x2 + eps
    return vector_norm(d, float(p), d.ndim - 1, keepdim)


# ---- losses of pairs and triplets
def _plus_minus(what: str, target: Tensor, dtype: dt.dtype) -> Tensor:
    check_tensor(what, target, "target")
    return cast(target, dtype)


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0,
                        reduction: str = "mean") -> Tensor:
    """Return the loss max(0, margin - target * (input1 - input2)).

    Args:
        input1: scores.
        input2: scores of the same shape.
        target: 1 where input1 should be larger, -1 where input2 should be larger; same shape.
        margin: smallest value of target * (input1 - input2) for which the loss is 0.
        reduction: "mean", "sum", or "none".
    """
    check_floats("margin_ranking_loss", input1, "input1")
    if not input1.ndim == input2.ndim == target.ndim:
        raise ShapeError("margin_ranking_loss : All input tensors should have same dimension",
                         expected="equal numbers of axes",
                         got=f"{tuple(input1.shape)}, {tuple(input2.shape)}, {tuple(target.shape)}",
                         fix="reshape them alike")
    t = _plus_minus("margin_ranking_loss", target, input1.dtype)
    return reduced("margin_ranking_loss", E.clamp(t * (input2 - input1) + margin, min=0.0), reduction)


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0,
                         reduction: str = "mean") -> Tensor:
    """Return the loss: input where target is 1, max(0, margin - input) where target is -1.

    Args:
        input: distances, of any shape.
        target: 1 or -1, same shape. For other values, the loss is the sum of both terms.
        margin: smallest distance for which dissimilar pairs have a loss of 0.
        reduction: "mean", "sum", or "none".
    """
    check_floats("hinge_embedding_loss", input)
    t = _plus_minus("hinge_embedding_loss", target, input.dtype)
    zero = scalar(0.0, input.dtype)
    near = E.where(E.eq(t, -1), zero, input)
    far = E.where(E.eq(t, 1), zero, E.clamp(margin - input, min=0.0))
    return reduced("hinge_embedding_loss", near + far, reduction)


def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Return the loss log(1 + exp(-target * input)).

    Args:
        input: scores, of any shape.
        target: 1 or -1, same shape.
        reduction: "mean", "sum", or "none".
    """
    check_floats("soft_margin_loss", input)
    if input.shape != target.shape:
        raise ShapeError("soft_margin_loss: input and target have different shapes",
                         expected=str(tuple(input.shape)),
                         got=str(tuple(target.shape)), fix="target.reshape(input.shape)")
    t = _plus_minus("soft_margin_loss", target, input.dtype)
    return reduced("soft_margin_loss", softplus(neg(t * input)), reduction)


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0,
                          reduction: str = "mean") -> Tensor:
    """Return the loss: 1 - cos where target is 1, max(0, cos - margin) where target is -1.

    Here cos is the cosine of the angle between input1 and input2.

    Args:
        input1: vectors, (N, D) or (D,).
        input2: vectors of the same shape.
        target: 1 or -1, (N,) or ().
        margin: largest cosine for which dissimilar pairs have a loss of 0.
        reduction: "mean", "sum", or "none".
    """
    check_floats("cosine_embedding_loss", input1, "input1")
    if input1.ndim != input2.ndim or target.ndim + 1 != input1.ndim:
        raise ShapeError(f"cosine_embedding_loss: {target.ndim}D target tensor expects {target.ndim + 1}D "
                         f"input tensors, but found inputs with sizes {list(input1.shape)} and "
                         f"{list(input2.shape)}.", expected="inputs (N, D), "
                         "target (N,)", got=f"target {tuple(target.shape)}", fix="target.reshape(-1)")
    a = input1.ndim - 1
    eps = 1e-12
    product, s1, s2 = (_sum(p, a) for p in (input1 * input2, input1 * input1, input2 * input2))
    cos = product / sqrt((s1 + eps) * (s2 + eps))
    t = _plus_minus("cosine_embedding_loss", target, cos.dtype)
    zero = scalar(0.0, cos.dtype)
    loss = E.where(E.eq(t, 1), 1 - cos, zero) + E.where(E.eq(t, -1), E.clamp(cos - margin, min=0.0), zero)
    return reduced("cosine_embedding_loss", loss, reduction)


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0,
                        p: float = 2.0, eps: float = 1e-6, swap: bool = False,
                        size_average: bool | None = None, reduce: bool | None = None,
                        reduction: str = "mean") -> Tensor:
    """Return the loss max(0, d(anchor, positive) - d(anchor, negative) + margin).

    Here d(a, b) is the p-norm of a - b + eps.

    Args:
        anchor: vectors, (N, D) or (D,).
        positive: vectors of the same class, same shape.
        negative: vectors of another class, same shape.
        margin: smallest difference of the two distances for which the loss is 0.
        p: order of the norm.
        eps: number added to each difference.
        swap: replace d(anchor, negative) by d(positive, negative) where the latter is smaller.
        size_average: deprecated; False replaces `reduction` by "sum", True by "mean"; default: not used.
        reduce: deprecated; False replaces `reduction` by "none"; default: not used.
        reduction: "mean", "sum", or "none".
    """
    check_floats("triplet_margin_loss", anchor, "anchor")
    if size_average is not None or reduce is not None:
        reduction = "sum" if size_average is False else "mean"
        if reduce is False:
            reduction = "none"
    if margin <= 0:
        raise ArgumentError(f"triplet_margin_loss: margin must be greater than 0, got {margin}",
                            expected="above 0", got=str(margin), fix="margin=1.0 is the default")
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduced("triplet_margin_loss", E.clamp(near - far + margin, min=0.0), reduction)


def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                reduction: str = "mean") -> Tensor:
    """Return the mean over the classes (last axis) of -(t * log sigmoid(x) + (1 - t) * log sigmoid(-x)).

    Args:
        input: logits x, (N, C) or (C,).
        target: targets t, 0 or 1 for each class, of the same shape.
        weight: (C,) weight of each class; default: 1.
        reduction: "mean", "sum", or "none".
    """
    check_floats("multilabel_soft_margin_loss", input)
    check_rank("multilabel_soft_margin_loss", input, 1)
    loss = sigmoid_cross_entropy(cast(target, input.dtype), input)
    loss = loss if weight is None else loss * weight
    mean = times(_sum(loss, loss.ndim - 1), 1.0 / max(input.shape[-1], 1))
    return reduced("multilabel_soft_margin_loss", mean, reduction)


__all__ = ["cosine_embedding_loss", "cosine_similarity", "hinge_embedding_loss", "margin_ranking_loss",
           "multilabel_soft_margin_loss", "pairwise_distance", "soft_margin_loss", "triplet_margin_loss"]
