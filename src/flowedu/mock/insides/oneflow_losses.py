"""OneFlow's cross entropy of class indices, which accepts labels with further axes of size 1."""
from __future__ import annotations

import math

from flowedu.nn.functional import class_losses
from flowedu.nn.modules import loss
from flowedu.tensor import Tensor


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
                  reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    """Return `nn.functional.cross_entropy` of labels in any shape that has one label for each sample.

    OneFlow flattens the labels, so labels (N, 1) have the same meaning as labels (N,). With
    `reduction="none"`, the losses have the shape of the labels.
    """
    labels = target
    if isinstance(input, Tensor) and isinstance(target, Tensor) and input.ndim > 1:
        samples = (input.shape[0], *input.shape[2:])
        is_index = not target.dtype.is_floating_point
        if is_index and target.numel() == math.prod(samples):
            labels = target.reshape(samples)
    result = class_losses.cross_entropy(input, labels, weight, ignore_index, reduction, label_smoothing)
    if reduction == "none" and labels is not target:
        return result.reshape(target.shape)
    return result


class CrossEntropyLoss(loss.CrossEntropyLoss):
    __doc__ = loss.CrossEntropyLoss.__doc__

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return cross_entropy(input, target, weight=self.weight, ignore_index=self.ignore_index,
                             reduction=self.reduction, label_smoothing=self.label_smoothing)


__all__ = ["CrossEntropyLoss", "cross_entropy"]
