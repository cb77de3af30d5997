"""EmbeddingBag: an Embedding whose vectors are summed, averaged, or reduced to their maximum at once."""
from __future__ import annotations

from flowedu.nn import functional as F
from flowedu.nn.modules.linear import Embedding
from flowedu.tensor import Tensor


class EmbeddingBag(Embedding):
    """A table of vectors, of which each bag of indices gets one. weight (num_embeddings, embedding_dim) starts
    normal(0, 1); see F.embedding_bag.

    padding_idx: this row starts as zeros, is not learnt and counts for nothing.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
                 include_last_offset: bool = False, padding_idx: int | None = None, device=None, dtype=None):
        super().__init__(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
                         _weight, device, dtype)
        self.mode, self.include_last_offset = mode, include_last_offset

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
                               self.mode, self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, mode={self.mode!r}"
