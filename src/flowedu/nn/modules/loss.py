"""Losses as layers.

The function of the same name in nn.functional documents each computation. The argument `reduction` of all
losses is "mean" or "sum" for a 0-dim result, or "none" for one loss per element or sample. `size_average` and
`reduce` are deprecated arguments of PyTorch, which `reduction` replaces.
"""
from __future__ import annotations

from flowedu.core.layers.module import Module
from flowedu.errors import ArgumentError
from flowedu.nn import functional as F
from flowedu.tensor import Tensor


class _Loss(Module):
    """Base class of the losses, with the option `reduction`."""

    def __init__(self, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__()
        # Reduction's place in OneFlow.
        if isinstance(size_average, str) and reduce is None and reduction == "mean":
            size_average, reduction = None, size_average
        for name, given in (("size_average", size_average), ("reduce", reduce)):
            if given is not None and not isinstance(given, bool):
                raise ArgumentError(f"{type(self).__name__}: {name}", expected="True, False or None",
                                    got=repr(given)[:60],
                                    fix="name what comes here: PyTorch has size_average and reduce, OneFlow "
                                    "has not")
        if size_average is not None or reduce is not None:       # the names before reduction
            one, all_ = size_average is None or size_average, reduce is None or reduce
            reduction = "mean" if one else "sum"
            if not all_:
                reduction = "none"
        self.reduction = reduction


class _Weighted(_Loss):
    """Base class of the losses that weigh classes."""

    weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class MSELoss(_Loss):
    """Squared error: (input - target)^2.

    Args:
        size_average, reduce: deprecated; default: not used.
        reduction: "mean", "sum", or "none".

    Shape:
        input and target of the same shape.
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """Absolute error: |input - target|.

    Args:
        size_average, reduce: deprecated; default: not used.
        reduction: "mean", "sum", or "none".

    Shape:
        input and target of the same shape.
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Squared error for small differences, absolute error for large ones.

    The loss is 0.5 * d^2 / beta where d = |input - target| is below beta, and d - 0.5 * beta elsewhere.

    Args:
        size_average, reduce: deprecated; default: not used.
        reduction: "mean", "sum", or "none".
        beta: difference at which the loss becomes linear; 0 gives L1Loss.

    Shape:
        input and target of the same shape.
    """

    def __init__(self, size_average=None, reduce=None, reduction: str = "mean", beta: float = 1.0):
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Huber loss: 0.5 * d^2 where d = |input - target| is below delta, delta * (d - 0.5 * delta) elsewhere.

    Args:
        reduction: "mean", "sum", or "none".
        delta: difference at which the loss becomes linear.

    Shape:
        input and target of the same shape.
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0):
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class CrossEntropyLoss(_Weighted):
    """Cross entropy of logits and targets (class indices or class probabilities); see F.cross_entropy.

    Args:
        weight: (C,) weight of each class; default: 1.
        size_average, reduce: deprecated; default: not used.
        ignore_index: targets of this class contribute neither a loss nor a gradient.
        reduction: "mean", "sum", or "none".
        label_smoothing: part of the target, 0 to 1, that is spread evenly over all classes.

    Shape:
        input: (N, C, ...) or (C,). target: class indices, integers (N, ...) or (), or probabilities of the
            input's shape.

    Example:
        >>> loss = flow.nn.CrossEntropyLoss()
        >>> loss(flow.zeros(1, 2), flow.tensor([0])).item()
        0.6931471824645996
    """

    def __init__(self, weight: Tensor | None = None, size_average=None, ignore_index: int = -100, reduce=None,
                 reduction: str = "mean", label_smoothing: float = 0.0):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(input, target, weight=self.weight, ignore_index=self.ignore_index,
                               reduction=self.reduction, label_smoothing=self.label_smoothing)


class NLLLoss(_Weighted):
    """Negative log likelihood: -input at the target class.

    Args:
        weight: (C,) weight of each class; default: 1.
        size_average, reduce: deprecated; default: not used.
        ignore_index: targets of this class contribute neither a loss nor a gradient.
        reduction: "mean", "sum", or "none".

    Shape:
        input: log-probabilities (N, C, ...) or (C,). target: integers (N, ...) or ().
    """

    def __init__(self, weight: Tensor | None = None, size_average=None, ignore_index: int = -100, reduce=None,
                 reduction: str = "mean"):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index,
                          reduction=self.reduction)


class BCELoss(_Weighted):
    """Binary cross entropy of probabilities: -(target * log(input) + (1 - target) * log(1 - input)).

    Args:
        weight: weight of each element, of a shape that broadcasts with the input; default: 1.
        size_average, reduce: deprecated; default: not used.
        reduction: "mean", "sum", or "none".

    Shape:
        input and target of the same shape, in [0, 1].
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of logits: BCELoss of sigmoid(input), without overflow.

    Args:
        weight: weight of each element, of a shape that broadcasts with the input; default: 1.
        size_average, reduce: deprecated; default: not used.
        reduction: "mean", "sum", or "none".
        pos_weight: weight of positive targets, of a shape that broadcasts with the input (usually one weight
            per class, the last axis); default: 1.

    Shape:
        input and target of the same shape.
    """

    def __init__(self, weight: Tensor | None = None, size_average=None, reduce=None, reduction: str = "mean",
                 pos_weight: Tensor | None = None):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(input, target, self.weight, pos_weight=self.pos_weight,
                                                  reduction=self.reduction)


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence: target * (log(target) - input).

    Args:
        size_average, reduce: deprecated; default: not used.
        reduction: "batchmean" (the sum divided by the batch size), "mean", "sum", or "none".
        log_target: the target contains log-probabilities.

    Shape:
        input: log-probabilities. target: probabilities of the same shape.
    """

    def __init__(self, size_average=None, reduce=None, reduction: str = "mean", log_target: bool = False):
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(_Loss):
    """Negative log likelihood of a Poisson distribution with rate exp(input).

    Args:
        log_input: the input is the logarithm of the rate. False: the input is the rate itself.
        full: add Stirling's approximation of log(target!).
        size_average, reduce: deprecated; default: not used.
        eps: number added to the rate before the logarithm if log_input is False.
        reduction: "mean", "sum", or "none".

    Shape:
        input and target of the same shape.
    """

    def __init__(self, log_input: bool = True, full: bool = False, size_average=None, eps: float = 1e-8,
                 reduce=None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(input, target, log_input=self.log_input, full=self.full, eps=self.eps,
                                  reduction=self.reduction)


class GaussianNLLLoss(_Loss):
    """Negative log likelihood of a normal distribution: 0.5 * (log(var) + (input - target)^2 / var).

    Args:
        full: add the constant 0.5 * log(2 pi).
        eps: lower limit of the variance.
        reduction: "mean", "sum", or "none".

    Shape:
        input, target, and var of the same or broadcast shapes.
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"):
        super().__init__(reduction=reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class CTCLoss(_Loss):
    """Connectionist temporal classification (Graves et al. 2006); see F.ctc_loss.

    Args:
        blank: class index of the blank label.
        reduction: "mean" (each loss divided by the length of its target), "sum", or "none".
        zero_infinity: replace infinite losses by 0; the loss of a target that is too long for its input is
            infinite.

    Shape:
        log_probs: (time, batch, classes).
        targets: (batch, longest), or all targets concatenated in one vector.
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False):
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths, target_lengths) -> Tensor:
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction,
                          self.zero_infinity)


class SoftMarginLoss(_Loss):
    """Logistic loss: log(1 + exp(-target * input)).

    Args:
        size_average, reduce: deprecated; default: not used.
        reduction: "mean", "sum", or "none".

    Shape:
        input and target of the same shape; the target contains 1 and -1.
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class HingeEmbeddingLoss(_Loss):
    """Hinge loss of distances: input where target is 1, max(0, margin - input) where target is -1.

    Args:
        margin: smallest distance for which dissimilar pairs have a loss of 0.
        size_average, reduce: deprecated; default: not used.
        reduction: "mean", "sum", or "none".

    Shape:
        input and target of the same shape; the target contains 1 and -1.
    """

    def __init__(self, margin: float = 1.0, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """Ranking loss: max(0, margin - target * (input1 - input2)).

    Args:
        margin: smallest value of target * (input1 - input2) for which the loss is 0.
        size_average, reduce: deprecated; default: not used.
        reduction: "mean", "sum", or "none".

    Shape:
        input1, input2, and target of the same shape; the target is 1 if input1 should be larger, else -1.
    """

    def __init__(self, margin: float = 0.0, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """Cosine loss of pairs: 1 - cos where target is 1, max(0, cos - margin) where target is -1.

    Here cos is the cosine of the angle between input1 and input2.

    Args:
        margin: largest cosine (-1 to 1) for which dissimilar pairs have a loss of 0.
        size_average, reduce: deprecated; default: not used.
        reduction: "mean", "sum", or "none".

    Shape:
        input1, input2: (N, D) or (D,). target: (N,) or ().
    """

    def __init__(self, margin: float = 0.0, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """Triplet loss: max(0, d(anchor, positive) - d(anchor, negative) + margin).

    Here d(a, b) is the p-norm of a - b + eps.

    Args:
        margin: smallest difference of the two distances for which the loss is 0.
        p: order of the norm.
        eps: number added to each difference.
        swap: replace d(anchor, negative) by d(positive, negative) where the latter is smaller.
        size_average, reduce: deprecated; default: not used.
        reduction: "mean", "sum", or "none".

    Shape:
        Three tensors (N, D) or (D,).
    """

    def __init__(self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
                 size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin, self.p = margin, p
        self.eps, self.swap = eps, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps,
                                     swap=self.swap, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_Weighted):
    """Mean over the classes of the binary cross entropy of logits.

    Args:
        weight: (C,) weight of each class; default: 1.
        size_average, reduce: deprecated; default: not used.
        reduction: "mean", "sum", or "none".

    Shape:
        input and target: (N, C) or (C,); the target contains 0 and 1.
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class MultiMarginLoss(_Weighted):
    """Multi-class hinge loss: sum over the wrong classes j of max(0, margin - x[target] + x[j])^p / C.

    Args:
        p: 1 or 2.
        margin: smallest difference x[target] - x[j] for which a wrong class j adds no loss.
        weight: (C,) weight of each class; default: 1.
        size_average, reduce: deprecated; default: not used.
        reduction: "mean", "sum", or "none".

    Shape:
        input: (N, C) or (C,). target: integers (N,) or ().
    """

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, size_average=None,
                 reduce=None, reduction: str = "mean"):
        super().__init__(weight, size_average, reduce, reduction)
        self.p, self.margin = p, margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(input, target, p=self.p, margin=self.margin, weight=self.weight,
                                   reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """Multi-class hinge loss of samples with several classes; see F.multilabel_margin_loss.

    Args:
        size_average, reduce: deprecated; default: not used.
        reduction: "mean", "sum", or "none".

    Shape:
        input and target: (N, C) or (C,); each row of the target lists class indices and ends with -1.
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class CombinedMarginLoss(Module):
    """Margin added to the cosine of the label of each row; see F.combined_margin_loss.

    Args:
        m1: factor of the angle (SphereFace).
        m2: number added to the angle, in radians (ArcFace).
        m3: number subtracted from the cosine (CosFace).

    Shape:
        x: cosines (N, C). label: integers (N,). The result has the shape of x.

    Note:
        To get a loss, scale the result and pass it to a softmax cross entropy.
    """

    def __init__(self, m1: float = 1.0, m2: float = 0.0, m3: float = 0.0):
        super().__init__()
        self.m1, self.m2, self.m3 = m1, m2, m3

    def forward(self, x: Tensor, label: Tensor) -> Tensor:
        return F.combined_margin_loss(x, label, self.m1, self.m2, self.m3)
