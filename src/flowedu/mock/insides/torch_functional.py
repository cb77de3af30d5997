"""nn.functional with PyTorch's signatures.

Losses have size_average and reduce, which OneFlow removed, so that ignore_index and reduction keep PyTorch's
positions. softmax has the `_stacklevel` argument.
"""
from __future__ import annotations

from flowedu import Tensor
from flowedu.errors import ArgumentError
from flowedu.nn import functional as F


def _word(size_average, reduce, reduction: str) -> str:
    """Return the reduction that the old arguments mean; if one of them is given, `reduction` is ignored."""
    for argument, value in (("size_average", size_average), ("reduce", reduce)):
        if isinstance(value, str):
            raise ArgumentError(f"a loss: {argument} is no word", expected="True, False or None", got=repr(value),
                                fix=f"by name: reduction={value!r}")
    if size_average is None and reduce is None:
        return reduction
    if reduce is not None and not reduce:
        return "none"
    return "sum" if size_average is not None and not size_average else "mean"


def _weighted(loss, name: str, input: Tensor, target: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    """The losses, or their sum, each times its weight; or that by the weights' sum."""
    if weight is None:
        return loss(input, target, reduction=reduction)
    if tuple(weight.shape) != tuple(input.shape):
        raise ArgumentError(f"{name}: a weight for each element", expected=f"shape {tuple(input.shape)}",
                            got=str(tuple(weight.shape)), fix="weight=weight.expand_as(input)")
    y = loss(input, target, reduction="none") * weight
    return y if reduction == "none" else y.sum() if reduction == "sum" else y.sum() / weight.sum()


def mse_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
             reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """(input - target)^2"""
    return _weighted(F.mse_loss, "mse_loss", input, target, weight, _word(size_average, reduce, reduction))


def l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
            reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """|input - target|"""
    return _weighted(F.l1_loss, "l1_loss", input, target, weight, _word(size_average, reduce, reduction))


def smooth_l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                   reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """l1_loss, squared near 0."""
    return F.smooth_l1_loss(input, target, _word(size_average, reduce, reduction), beta)


def soft_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                     reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target * input))"""
    return F.soft_margin_loss(input, target, _word(size_average, reduce, reduction))


def kl_div(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
           reduction: str = "mean", log_target: bool = False) -> Tensor:
    """target * (log target - input)"""
    return F.kl_div(input, target, _word(size_average, reduce, reduction), log_target)


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None,
                         reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Distances of pairs that are near (target 1) or far (-1)."""
    return F.hinge_embedding_loss(input, target, margin, _word(size_average, reduce, reduction))


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: bool | None = None,
                        reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """max(0, -target * (input1 - input2) + margin)"""
    return F.margin_ranking_loss(input1, input2, target, margin,
                                 _word(size_average, reduce, reduction))


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                          size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Return 1 - cos for similar pairs (target 1), and max(0, cos - margin) for others (target -1)."""
    return F.cosine_embedding_loss(input1, input2, target, margin,
                                   _word(size_average, reduce, reduction))


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                         reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Of probabilities."""
    return F.binary_cross_entropy(input, target, weight, _word(size_average, reduce, reduction))


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                     size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
                                     pos_weight: Tensor | None = None) -> Tensor:
    """binary_cross_entropy of sigmoid(input)."""
    word = _word(size_average, reduce, reduction)
    return F.binary_cross_entropy_with_logits(input, target, weight, word, pos_weight)


def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                size_average: bool | None = None, reduce: bool | None = None,
                                reduction: str = "mean") -> Tensor:
    """binary_cross_entropy_with_logits, the mean over the classes."""
    word = _word(size_average, reduce, reduction)
    return F.multilabel_soft_margin_loss(input, target, weight, word)


def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                           reduction: str = "mean") -> Tensor:
    """Return the multi-label margin loss: max(0, 1 - (target score - other score)), averaged over the classes."""
    return F.multilabel_margin_loss(input, target, _word(size_average, reduce, reduction))


def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
                      size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Return the margin loss: max(0, margin - (target score - other score)) ** p, averaged over the classes."""
    return F.multi_margin_loss(input, target, p, margin, weight, _word(size_average, reduce, reduction))


def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
             ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """-input at the class that target names."""
    return F.nll_loss(input, target, weight, ignore_index, _word(size_average, reduce, reduction))


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                  ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:
    """nll_loss of log_softmax(input)."""
    return F.cross_entropy(input, target, weight, ignore_index, _word(size_average, reduce, reduction),
                           label_smoothing)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False,
                     size_average: bool | None = None, eps: float = 1e-8, reduce: bool | None = None,
                     reduction: str = "mean") -> Tensor:
    """exp(input) - target * input"""
    return F.poisson_nll_loss(input, target, log_input, full, eps,
                              _word(size_average, reduce, reduction))


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """exp(x) / sum of exp(x) along dim."""
    return F.softmax(input, dim, dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """log(softmax)"""
    return F.log_softmax(input, dim, dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """softmax(-x)"""
    return F.softmin(input, dim, dtype)
