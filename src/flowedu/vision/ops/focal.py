"""The focal loss, which reduces the weight of well-classified examples."""
from __future__ import annotations

from flowedu.errors import ArgumentError
from flowedu.nn import functional as F
from flowedu.tensor import Tensor


def sigmoid_focal_loss(inputs: Tensor, targets: Tensor, alpha: float = 0.25, gamma: float = 2,
                       reduction: str = "none") -> Tensor:
    """Return (1 - p)^gamma times the cross entropy of sigmoid(inputs), with p = P(target) (Lin et al., 2017).

    Args:
        inputs: logits, of any shape.
        targets: 0 or 1, same shape and dtype.
        alpha: weight of targets 1; targets 0 have weight 1 - alpha. A negative value means no weights.
        gamma: exponent.
        reduction: "none", "mean", or "sum".
    """
    if reduction not in ("none", "mean", "sum"):
        raise ArgumentError("sigmoid_focal_loss: reduction", expected='"none", "mean" or "sum"',
                            got=repr(reduction))
    p = inputs.sigmoid()
    loss = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none") * \
        (1 - (p * targets + (1 - p) * (1 - targets))) ** gamma
    if alpha >= 0:
        loss = (alpha * targets + (1 - alpha) * (1 - targets)) * loss
    return loss if reduction == "none" else getattr(loss, reduction)()
