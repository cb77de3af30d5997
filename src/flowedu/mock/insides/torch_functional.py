"""nn.functional with PyTorch's signatures.

Losses have the deprecated arguments size_average and reduce, which OneFlow removed, so that ignore_index and
reduction have PyTorch's positions. softmax has the `_stacklevel` argument.
"""
from __future__ import annotations

from flowedu import Tensor
from flowedu.errors import ArgumentError
from flowedu.nn import functional as F


def _word(size_average, reduce, reduction: str) -> str:
    """Return the reduction. The deprecated arguments, if given, override `reduction`."""
    for argument, value in (("size_average", size_average), ("reduce", reduce)):
        if isinstance(value, str):
            raise ArgumentError(f"a loss: {argument} is no word", expected="True, False or None",
                                got=repr(value), fix=f"by name: reduction={value!r}")
    if size_average is None and reduce is None:
        return reduction
    if reduce is not None and not reduce:
        return "none"
    return "sum" if size_average is not None and not size_average else "mean"


def _weigh(loss, name: str, input: Tensor, target: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    """Return the weighted losses, their sum, or their mean (the sum divided by the sum of the weights)."""
    if weight is None:
        return loss(input, target, reduction=reduction)
    if tuple(weight.shape) != tuple(input.shape):
        raise ArgumentError(f"{name}: a weight for each element", expected=f"shape {tuple(input.shape)}",
                            got=str(tuple(weight.shape)), fix="weight=weight.expand_as(input)")
    y = loss(input, target, reduction="none") * weight
    if reduction == "none":
        return y
    return y.sum() if reduction == "sum" else y.sum() / weight.sum()


def mse_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
             reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """Return (input - target)^2, reduced."""
    return _weigh(F.mse_loss, "mse_loss", input, target, weight, _word(size_average, reduce, reduction))


def l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
            reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """Return |input - target|, reduced."""
    return _weigh(F.l1_loss, "l1_loss", input, target, weight, _word(size_average, reduce, reduction))


def smooth_l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None,
                   reduce: bool | None = None, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Return l1_loss, made quadratic near 0."""
    return F.smooth_l1_loss(input, target, _word(size_average, reduce, reduction), beta)


def soft_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None,
                     reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Return log(1 + exp(-target * input)), reduced."""
    return F.soft_margin_loss(input, target, _word(size_average, reduce, reduction))


def kl_div(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
           reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Return target * (log target - input), reduced."""
    return F.kl_div(input, target, _word(size_average, reduce, reduction), log_target)


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None,
                         reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Return the hinge loss of distances: input for target 1, and max(0, margin - input) for target -1."""
    return F.hinge_embedding_loss(input, target, margin, _word(size_average, reduce, reduction))


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                        size_average: bool | None = None,
                        reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Return max(0, -target * (input1 - input2) + margin), reduced."""
    return F.margin_ranking_loss(input1, input2, target, margin,
                                 _word(size_average, reduce, reduction))


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                          size_average: bool | None = None, reduce: bool | None = None,
                          reduction: str = "mean") -> Tensor:
    """Return 1 - cos for similar pairs (target 1), and max(0, cos - margin) for others (target -1)."""
    return F.cosine_embedding_loss(input1, input2, target, margin,
                                   _word(size_average, reduce, reduction))


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None,
                         size_average: bool | None = None,
                         reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Return the cross-entropy of probabilities and binary targets."""
    return F.binary_cross_entropy(input, target, weight, _word(size_average, reduce, reduction))


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                     size_average: bool | None = None, reduce: bool | None = None,
                                     reduction: str = "mean", pos_weight: Tensor | None = None) -> Tensor:
    """Return binary_cross_entropy of sigmoid(input)."""
    word = _word(size_average, reduce, reduction)
    return F.binary_cross_entropy_with_logits(input, target, weight, word, pos_weight)


def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                size_average: bool | None = None, reduce: bool | None = None,
                                reduction: str = "mean") -> Tensor:
    """Return binary_cross_entropy_with_logits, averaged over the classes."""
    word = _word(size_average, reduce, reduction)
    return F.multilabel_soft_margin_loss(input, target, weight, word)


def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None,
                           reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Return the multi-label margin loss max(0, 1 - (target score - other score)), averaged over classes."""
    return F.multilabel_margin_loss(input, target, _word(size_average, reduce, reduction))


def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0,
                      weight: Tensor | None = None,
                      size_average: bool | None = None, reduce: bool | None = None,
                      reduction: str = "mean") -> Tensor:
    """Return the margin loss max(0, margin - (target score - other score)) ** p, averaged over classes."""
    return F.multi_margin_loss(input, target, p, margin, weight, _word(size_average, reduce, reduction))


def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
             ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Return -input at the target class, reduced."""
    return F.nll_loss(input, target, weight, ignore_index, _word(size_average, reduce, reduction))


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None,
                  size_average: bool | None = None,
                  ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:
    """Return nll_loss of log_softmax(input)."""
    return F.cross_entropy(input, target, weight, ignore_index, _word(size_average, reduce, reduction),
                           label_smoothing)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False,
                     size_average: bool | None = None, eps: float = 1e-8, reduce: bool | None = None,
                     reduction: str = "mean") -> Tensor:
    """Return exp(input) - target * input, reduced."""
    return F.poisson_nll_loss(input, target, log_input, full, eps,
                              _word(size_average, reduce, reduction))


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """Return exp(x) / sum of exp(x) along dim."""
    return F.softmax(input, dim, dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """Return log(softmax(x))."""
    return F.log_softmax(input, dim, dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """Return softmax(-x)."""
    return F.softmin(input, dim, dtype)
