"""Distances and similarities of vectors."""
from __future__ import annotations

from flowedu.core.layers.module import Module
from flowedu.nn import functional as F
from flowedu.tensor import Tensor


class CosineSimilarity(Module):
    """Cosine of the angle between the vectors of two tensors.

    Args:
        dim: axis of the vectors.
        eps: lower limit of the norms, which avoids a division by zero.

    Shape:
        Two tensors of the same or broadcast shapes; the result has no axis `dim`.
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8):
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """p-norm of x1 - x2 + eps along the last axis.

    Args:
        p: order of the norm.
        eps: number added to each difference, which avoids an infinite gradient at 0.
        keepdim: keep the last axis, with size 1.

    Shape:
        Two tensors (N, D) or (D,) to (N,) or ().
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
