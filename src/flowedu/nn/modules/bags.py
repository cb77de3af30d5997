"""EmbeddingBag: an embedding layer that returns a sum, mean, or maximum of vectors per bag of indices."""
from __future__ import annotations

from flowedu.nn import functional as F
from flowedu.nn.modules.linear import _Table
from flowedu.tensor import Tensor


class EmbeddingBag(_Table):
    """Embedding that reduces the vectors of each bag of indices to one vector; see F.embedding_bag.

    `weight`, of shape (num_embeddings, embedding_dim), is initialized with normal(0, 1).

    Args:
        num_embeddings: number of rows of the table.
        embedding_dim: size of a vector.
        max_norm: largest norm of a row; default: no limit. Rows with a larger norm are scaled down in place
            when they are read.
        norm_type: order p of the norm that `max_norm` limits.
        scale_grad_by_freq: divide the gradient of a row by the number of its uses in the batch.
        mode: "sum", "mean", or "max".
        sparse: accepted for compatibility; gradients are dense.
        include_last_offset: the last offset is the end of the last bag.
        padding_idx: row that is initialized with zeros, gets no gradient, and is left out of the bags;
            default: no such row.
        device: device of the weight; default: the CPU.
        dtype: dtype of the weight; default: the default dtype.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None,
                 norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                 _weight: Tensor | None = None,
                 include_last_offset: bool = False, padding_idx: int | None = None, device=None, dtype=None):
        super().__init__(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq,
                         sparse, _weight, device, dtype)
        self.mode, self.include_last_offset = mode, include_last_offset

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, max_norm: float | None = None,
                        norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
                        sparse: bool = False, include_last_offset: bool = False,
                        padding_idx: int | None = None) -> EmbeddingBag:
        """Return a layer whose table contains the given rows.

        Args:
            embeddings: the table, (rows, size).
            freeze: exclude the table from training.
            max_norm, norm_type, scale_grad_by_freq, mode, sparse, include_last_offset, padding_idx: see the
                class.
        """
        return cls._from_rows(embeddings, freeze, max_norm=max_norm, norm_type=norm_type,
                              scale_grad_by_freq=scale_grad_by_freq, mode=mode, sparse=sparse,
                              include_last_offset=include_last_offset, padding_idx=padding_idx)

    def forward(self, input: Tensor, offsets: Tensor | None = None,
                per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type,
                               self.scale_grad_by_freq,
                               self.mode, self.sparse, per_sample_weights, self.include_last_offset,
                               self.padding_idx)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, mode={self.mode!r}"
